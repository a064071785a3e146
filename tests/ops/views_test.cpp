#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "values.hpp"

using namespace tapehead;
using testing::message;
using testing::same_bits;

namespace {
Tensor<double> counting(const Shape& shape) {
  return arange<double>(static_cast<double>(shape.numel())).reshape(shape);
}
}  // namespace

TEST_CASE_TEMPLATE("views: views are read as views, at every size", T, float, double) {
  const Tensor<T> V{{1, 10}, {2, 20}};
  CHECK(equal(matmul(softmax(zeros<T>({2, 1, 2}), -1), V.T().reshape({2, 2, 1})).reshape({2}), Tensor<T>{T(1.5), 15}));
  NumpyRandom rng(1);
  for (std::int64_t n : {1, 2, 3, 15, 16, 17, 31, 33, 64, 70, 257}) {
    CAPTURE(n);
    const auto view = to<T>(rng.randn({n, 3, 5})).permute({2, 0, 1});  // (5, n, 3)
    const auto copy = contiguous(view), sliced = slice(view, 1, n / 3, n, 2);
    const auto pair = [&](auto f) {
      return same_bits(f(view), f(copy)) && same_bits(f(sliced), f(contiguous(sliced)));
    };
    for (int axis : {0, 1, 2}) {
      CHECK(pair([axis](const auto& x) { return sum(x, axis); }));
      CHECK(pair([axis](const auto& x) { return mean(x, axis, true); }));
      CHECK(pair([axis](const auto& x) { return var(x, axis); }));
      CHECK(pair([axis](const auto& x) { return norm(x, axis); }));
      CHECK(pair([axis](const auto& x) { return softmax(x, axis); }));
      CHECK(pair([axis](const auto& x) { return logsumexp(x, axis); }));
      CHECK(pair([axis](const auto& x) { return cumsum(x, axis); }));
    }
    CHECK(pair([](const auto& x) { return sum(x); }));
    CHECK(pair([](const auto& x) { return sum(x, {0, 2}); }));
    CHECK(pair([](const auto& x) { return matmul(x, mT(x)); }));
    CHECK(pair([](const auto& x) { return matmul(mT(x), x); }));
    CHECK(pair([](const auto& x) { return exp(x) * x; }));
    CHECK(pair([](const auto& x) { return layer_norm(x); }));
  }
}

TEST_CASE("views: reshape is a view where strides can say it and a copy where not") {
  const Tensor<double> x = counting({2, 3});
  CHECK(x.T().reshape({6}).to_vector() == std::vector<double>{0, 3, 1, 4, 2, 5});
  CHECK(x.reshape({3, 2}).data() == x.data());
  CHECK(x.T().reshape({3, 1, 2}).data() == x.data());
  CHECK(counting({2, 3, 4}).transpose(0, 1).reshape({3, 8}).to_vector()[4] == 12);
  CHECK(counting({4, 6}).slice(1, 0, 4).reshape({2, 2, 4}).to_vector()[8] == 12);
  CHECK(broadcast_to(Tensor<double>{1, 2}, {3, 2}).reshape({6}).to_vector() == std::vector<double>{1, 2, 1, 2, 1, 2});
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
  CHECK(message<ShapeError>([&] { zeros<double>({0}).reshape({-1, 0}); }).find("do not divide") != std::string::npos);
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
  CHECK(message<IndexError>([&] { x[3]; }) == "select: index 3 on axis 0 of shape (3, 4); it must be in -3 to 2"sv);
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

TEST_CASE("views: a clone has elements and an identity of its own") {
  const Tensor<double> x{{1, 2}, {3, 4}};
  const auto y = clone(x), t = clone(x.T());
  CHECK(equal(y, x));
  CHECK(y.data() != x.data());
  CHECK(y.id() != x.id());
  CHECK(equal(t, x.T()));
  CHECK(t.is_contiguous());
  CHECK(clone(zeros<bool>({0, 3})).shape() == Shape{0, 3});
  Tape<double> tape;
  tape.watch(x);
  CHECK(equal(tape.backward(sum(clone(x) * x))[x], 2 * x));
}
