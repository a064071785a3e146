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

TEST_CASE("tensor: impossible shapes throw before anything is allocated") {
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
