#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {
const double NaN = std::numeric_limits<double>::quiet_NaN();
Tensor<double> counting(const Shape& shape) {
  return arange<double>(static_cast<double>(shape.numel())).reshape(shape);
}
}  // namespace

TEST_CASE("tensor: braces are values at every depth, and one element is not a number") {
  CHECK(Tensor<double>{{1}, {2}}.shape() == Shape{2, 1});
  CHECK(Tensor<double>{{1, 2}}.shape() == Shape{1, 2});
  CHECK(Tensor<float>{{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, {{9, 10}, {11, 12}}}.shape() == Shape{3, 2, 2});
  CHECK(Tensor<bool>{{true, false}}.at({0, 1}) == false);
  CHECK(Tensor<std::int64_t>{7}.shape() == Shape{1});
  CHECK(Tensor<double>{1, 2.5f, 3L}.at({1}) == 2.5);
  CHECK(message<ShapeError>([] {
          Tensor<double>{{1, 2}, {3}};
        }) == "tensor: ragged braces: a list of 1 where its neighbours have 2 (depth 1)"sv);
  CHECK(message<ShapeError>([] {
          Tensor<double>{{1, 2}, 3};
        }).find("a number stands among lists") != std::string::npos);
  CHECK(message<ShapeError>([] { Tensor<double>{{{{{{{1}}}}}}}; }).find("deeper than 6") !=
        std::string::npos);
}

TEST_CASE("tensor: default and moved-from tensors have shape (0,) and every access is checked") {
  Tensor<double> x, y{1, 2};
  CHECK(x.shape() == Shape{0});
  CHECK(x.to_vector().empty());
  Tensor<double> z = std::move(y);
  CHECK(y.shape() == Shape{0});  // NOLINT: the moved-from state is what is tested
  CHECK(sum(y).item() == 0);
  CHECK((x + 1).shape() == Shape{0});
  CHECK(x.reshape({0, 3}).shape() == Shape{0, 3});
  CHECK(message<IndexError>([&] { y.at({0}); }) ==
        "at: index 0 on axis 0 of shape (0,); it must be in 0 to -1"sv);
  CHECK(message<ShapeError>([&] { x.item(); }).find("item: shape (0,) has 0 elements") == 0);
}

TEST_CASE("tensor: zero-dimensional and empty tensors are ordinary") {
  CHECK(scalar(2.5).shape() == Shape{});
  CHECK(scalar(2.5).item() == 2.5);
  CHECK((scalar(2.5) * zeros<double>({0, 3})).shape() == Shape{0, 3});
  CHECK(sum(zeros<double>({0, 3}), 0).to_vector() == std::vector<double>{0, 0, 0});
  CHECK(matmul(zeros<double>({2, 0}), zeros<double>({0, 3})).to_vector() == std::vector<double>(6, 0.0));
  CHECK(softmax(zeros<double>({0, 3}), -1).shape() == Shape{0, 3});
  CHECK(softmax(zeros<double>({3, 0}), -1).shape() == Shape{3, 0});
  CHECK(arange<double>(0).numel() == 0);
  CHECK(arange<double>(5, 1, -2).to_vector() == std::vector<double>{5, 3});
  CHECK(eye<double>(2).to_vector() == std::vector<double>{1, 0, 0, 1});
}

TEST_CASE("tensor: impossible shapes throw before anything is allocated (row 39)") {
  const auto huge = std::int64_t{1} << 62;
  CHECK(Shape{4740, 840, 840}.numel() == 3'344'544'000);
  CHECK(message<ShapeError>([&] { zeros<float>({huge + 2}); }).find("more memory than there can be") !=
        std::string::npos);
  CHECK(message<ShapeError>([&] {
          zeros<float>({std::int64_t{1} << 32, std::int64_t{1} << 32});
        }).find("2^63") != std::string::npos);
  CHECK(message<ShapeError>([&] { zeros<float>({-1}); }) == "zeros: (-1,) has a negative size"sv);
  CHECK(message<ShapeError>([&] {
          zeros<float>({1, 1, 1, 1, 1, 1, 1});
        }) == "shape: 7 axes; a tensor has at most 6"sv);
  CHECK(message<Error>([&] { zeros<float>({huge / 8}); }).find("memory") == 0);
  CHECK(zeros<float>({0, huge, 4}).numel() == 0);
}

TEST_CASE("tensor: views share elements, copies share everything, and operations change nothing") {
  Tensor<double> x = counting({2, 3});
  CHECK(x.T().data() == x.data());
  CHECK(x.slice(1, 1, 3).data() == x.data() + 1);
  CHECK(Tensor<double>(x).id() == x.id());
  CHECK(x.reshape({2, 3}).id() != x.id());
  const auto before = x.to_vector();
  x + 1, exp(x), softmax(x, 0), x.T() * 2;
  CHECK(x.to_vector() == before);
}

TEST_CASE("views: reshape is a view where strides can say it and a copy where not (row 40)") {
  const Tensor<double> x = counting({2, 3});
  CHECK(x.T().reshape({6}).to_vector() == std::vector<double>{0, 3, 1, 4, 2, 5});
  CHECK(x.reshape({3, 2}).data() == x.data());
  CHECK(x.T().reshape({3, 1, 2}).data() == x.data());
  CHECK(counting({2, 3, 4}).transpose(0, 1).reshape({3, 8}).to_vector()[4] == 12);
  CHECK(counting({4, 6}).slice(1, 0, 4).reshape({2, 2, 4}).to_vector()[8] == 12);
  CHECK(broadcast_to(Tensor<double>{1, 2}, {3, 2}).reshape({6}).to_vector() ==
        std::vector<double>{1, 2, 1, 2, 1, 2});
  CHECK(broadcast_to(Tensor<double>{{1}, {2}}, {2, 3}).reshape({6}).to_vector() ==
        std::vector<double>{1, 1, 1, 2, 2, 2});
  CHECK(x.reshape({-1, 2}).shape() == Shape{3, 2});
  CHECK(zeros<double>({2, 0}).reshape({0, 5}).shape() == Shape{0, 5});
  CHECK(message<ShapeError>([&] { x.reshape({4}); }) ==
        "reshape: shape (2, 3) has 6 elements and (4,) has 4; they must be equal"sv);
  CHECK(message<ShapeError>([&] {
          x.reshape({-1, -1});
        }) == "reshape: (-1, -1) leaves two sizes open; only one may be -1"sv);
  CHECK(message<ShapeError>([&] { x.reshape({-1, 4}); }).find("do not divide") != std::string::npos);
  CHECK(message<ShapeError>([&] {
          zeros<double>({0}).reshape({-1, 0});
        }).find("do not divide") != std::string::npos);
}

TEST_CASE("views: slices, selections and turns, forwards and backwards") {
  const Tensor<double> x = counting({3, 4});
  CHECK(x.slice(1, 1, 4, 2).to_vector() == std::vector<double>{1, 3, 5, 7, 9, 11});
  CHECK(x.slice(0, -2, 100).to_vector() == x.slice(0, 1, 3).to_vector());
  CHECK(x.slice(0, 2, 1).shape() == Shape{0, 4});
  CHECK(x[-1].to_vector() == std::vector<double>{8, 9, 10, 11});
  CHECK(select(x, 1, 2).to_vector() == std::vector<double>{2, 6, 10});
  CHECK(flip(x, 1)[0].to_vector() == std::vector<double>{3, 2, 1, 0});
  CHECK(flip(flip(x, 0), 1).reshape({12}).to_vector()[0] == 11);
  CHECK(permute(x, {-1, -2}).to_vector() == x.T().to_vector());
  CHECK(x.unsqueeze(-1).shape() == Shape{3, 4, 1});
  CHECK(x.unsqueeze(0).squeeze(0).shape() == x.shape());
  CHECK(unslice(Tensor<double>{1, 2}, {5}, 0, 1, 3).to_vector() == std::vector<double>{0, 1, 0, 0, 2});
  CHECK(contiguous(x.T()).is_contiguous());

  CHECK(message<ValueError>([&] { x.slice(0, 0, 3, 0); }) ==
        "slice: step 0; it must be positive (flip() turns an axis round)"sv);
  CHECK(message<IndexError>([&] { x[3]; }) ==
        "select: index 3 on axis 0 of shape (3, 4); it must be in -3 to 2"sv);
  CHECK(message<IndexError>([&] { x.transpose(0, 2); }) ==
        "transpose: axis 2 is out of range for shape (3, 4); it has axes -2 to 1"sv);
  CHECK(message<ShapeError>([&] { x.unsqueeze(0).T(); }).find("T: shape (1, 3, 4)") == 0);
  CHECK(message<ValueError>([&] {
          permute(x, {0, 0});
        }) == "permute: axis 0 is named twice for shape (3, 4); name each once"sv);
  CHECK(message<ShapeError>([&] { permute(x, {0}); }).find("permute: 1 axes for shape (3, 4)") == 0);
  CHECK(message<ShapeError>([&] { squeeze(x, 0); }).find("squeeze: axis 0 of shape (3, 4) has size 3") == 0);
  CHECK(message<ShapeError>([&] {
          broadcast_to(x, {4});
        }).find("broadcast_to: shape (3, 4) does not broadcast to (4,)") == 0);
}

TEST_CASE("arithmetic: NumPy's broadcasting, and its errors") {
  CHECK((counting({3, 1}) + counting({1, 4})).shape() == Shape{3, 4});
  CHECK((counting({2, 1, 3}) * counting({4, 1})).shape() == Shape{2, 4, 3});
  CHECK((1 - Tensor<double>{1, 2}).to_vector() == std::vector<double>{0, -1});
  CHECK((Tensor<float>{1, 2} / 4).to_vector() == std::vector<float>{0.25f, 0.5f});
  CHECK((6 / Tensor<double>{2, 3}).to_vector() == std::vector<double>{3, 2});
  CHECK((Tensor<std::int64_t>{1, 2} + 3).to_vector() == std::vector<std::int64_t>{4, 5});
  CHECK((Tensor<std::int64_t>{std::numeric_limits<std::int64_t>::max()} + 1).item() ==
        std::numeric_limits<std::int64_t>::min());
  CHECK((Tensor<double>{1, 2} > 1).to_vector() == std::vector<bool>{false, true});
  CHECK(message<ShapeError>([] {
          counting({2, 3}) + counting({2, 4});
        }) ==
        "add: shapes (2, 3) and (2, 4) do not broadcast: sizes 3 and 4 meet on axis -1; they must be equal, "
        "or one of them 1"sv);
  CHECK(message<ShapeError>([] {
          zeros<double>({0, 3}) + counting({2, 3});
        }).find("sizes 0 and 2 meet on axis -2") != std::string::npos);
  CHECK(maximum(Tensor<double>{1, NaN}, Tensor<double>{NaN, 1}).at({0}) != 1);
  CHECK(std::isnan(maximum(Tensor<double>{1, NaN}, Tensor<double>{NaN, 1}).at({1})));
}

TEST_CASE("arithmetic: large tensors take the same values on every path (threads, views, broadcasts)") {
  const std::int64_t n = 300'001;
  const Tensor<double> x = arange<double>(static_cast<double>(n));
  CHECK((x + x).at({n - 1}) == 2.0 * static_cast<double>(n - 1));
  CHECK(sum(x).item() == static_cast<double>(n) * static_cast<double>(n - 1) / 2);
  const Tensor<double> grid = arange<double>(700 * 501).reshape({700, 501});
  CHECK(equal(grid.T() + grid.T(), contiguous(grid.T()) * 2));
  CHECK(equal(sum(grid, 0), sum(grid.T(), 1)));
  CHECK(equal(sum(grid, 1), sum(contiguous(grid.T()), 0)));
  CHECK(equal(flip(grid, 1) + grid, flip(grid + flip(grid, 1), 1)));
}

TEST_CASE("conversion: to<>() says what it would lose") {
  CHECK(to<float>(Tensor<double>{0.1}).item() == 0.1f);
  CHECK(to<double>(Tensor<bool>{true, false}).to_vector() == std::vector<double>{1, 0});
  CHECK(to<std::int64_t>(Tensor<double>{-2.9}).item() == -2);
  CHECK(message<ValueError>([] { to<std::int64_t>(Tensor<double>{NaN}); }) ==
        "to<int64>: nan does not fit a 64-bit integer"sv);
  Tensor<double> x{1, 2};
  Tape<double> tape;
  tape.watch(x);
  CHECK(message<GradientError>([&] { to<float>(x * 2); }).find("its gradient would be lost") !=
        std::string::npos);
  CHECK(to<float>(detach(x * 2)).at({1}) == 4);
}

TEST_CASE("joining: cat, stack and split are each other's reverse") {
  const Tensor<double> a = counting({2, 3}), b = counting({1, 3});
  CHECK(cat<double>({a, b}).shape() == Shape{3, 3});
  CHECK(cat<double>({a.T(), b.T(), zeros<double>({3, 0})}, -1).shape() == Shape{3, 3});
  CHECK(stack<double>({a, a}, -1).shape() == Shape{2, 3, 2});
  CHECK(equal(cat(split(counting({5, 2}), 2, 0), 0), counting({5, 2})));
  CHECK(split(a, std::vector<std::int64_t>{1, 2}, 1)[1].shape() == Shape{2, 2});
  CHECK(message<ValueError>([] { cat<double>({}); }) == "cat: no tensors; give at least one"sv);
  CHECK(message<ShapeError>([&] {
          cat<double>({a, b.T()}, 0);
        }) == "cat: shapes (2, 3) and (3, 1); all sizes but those along axis 0 must be equal"sv);
  CHECK(message<ShapeError>([&] {
          split(a, std::vector<std::int64_t>{1, 1}, 1);
        }).find("add up to 2") != std::string::npos);
}

TEST_CASE("memory: blocks given back are the blocks that were taken") {
  const auto before = memory_use();
  {
    Tensor<double> x = zeros<double>({1000});
    auto y = exp(x.reshape({10, 100}).T() + 1);
    CHECK(memory_use().blocks > before.blocks);
  }
  CHECK(memory_use().blocks == before.blocks);
  CHECK(memory_use().bytes == before.bytes);
}
