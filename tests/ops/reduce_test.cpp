#include <cmath>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "values.hpp"

using namespace tapehead;
using testing::all_nan;
using testing::gradient;
using testing::has;
using testing::message;

TEST_CASE_TEMPLATE("reduce: reductions over nothing, and products over nothing", T, float, double) {
  CHECK(equal(matmul(softmax(zeros<T>({2, 0}), -1), zeros<T>({0, 3})), zeros<T>({2, 3})));
  CHECK(matmul(zeros<T>({0, 4}), zeros<T>({4, 3})).shape() == Shape{0, 3});
  const auto x = zeros<T>({2, 0});
  CHECK(sum(x).item() == 0);
  CHECK(equal(sum(x, 1), zeros<T>({2})));
  CHECK(all_nan(mean(x, 1)));
  CHECK(max(x, 0).shape() == Shape{0});
  CHECK(has(message<ShapeError>([&] { max(x, 1); }), "max: shape (2, 0) has nothing along the reduced axes"));
  CHECK(has(message<ShapeError>([&] { max(x); }), "max: shape (2, 0)"));
  for (const Shape& shape : {Shape{0}, Shape{2, 0}, Shape{0, 3}, Shape{2, 0, 3}}) {
    const auto e = zeros<T>(shape);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      CAPTURE(shape.str());
      const bool nothing = shape[axis] == 0 && shape.without(axis).numel() > 0;
      CHECK(sum(e, axis).shape() == shape.without(axis));
      CHECK(sum(e, axis, true).shape() == shape.replaced(axis, 1));
      CHECK(equal(sum(e, axis), zeros<T>(shape.without(axis))));
      CHECK(all_nan(mean(e, axis)));
      CHECK(equal(norm(e, axis), zeros<T>(shape.without(axis))));
      if (nothing)
        CHECK_THROWS_AS(min(e, axis), ShapeError);
      else
        CHECK(min(e, axis).shape() == shape.without(axis));
      CHECK(softmax(e, axis).shape() == shape);
      CHECK(cumsum(e, axis).shape() == shape);
      CHECK(gradient([axis](const auto& v) { return sum(sum(v, axis)); }, e).shape() == shape);
    }
    CHECK(std::isnan(mean(e).item()));
    CHECK(std::isnan(var(e).item()));
  }
}

TEST_CASE_TEMPLATE("reduce: winners of a maximum share its gradient", T, float, double) {
  CHECK(equal(gradient([](const auto& x) { return max(x); }, Tensor<T>{2, 2, 1}), Tensor<T>{T(0.5), T(0.5), 0}));
  NumpyRandom rng(2);
  for (int round = 0; round < 50; ++round) {
    const auto x = to<T>(rng.randint(0, 4, {3, 4, 2}));
    for (int axis : {0, 1, 2})
      for (bool largest : {true, false}) {
        const auto f = [&](const auto& v) { return largest ? max(v, axis, true) : min(v, axis, true); };
        const auto won = where(eq(x, f(x)), ones_like(x), zeros_like(x));
        CHECK(equal(gradient([&](const auto& v) { return sum(f(v)); }, x), won / sum(won, axis, true)));
      }
  }
  const Tensor<T> a{1, 2, 3}, b{3, 2, 1};
  CHECK(equal(gradient([&](const auto& v) { return sum(maximum(v, b)); }, a), Tensor<T>{0, T(0.5), 1}));
  CHECK(equal(gradient([&](const auto& v) { return sum(minimum(v, b)); }, a), Tensor<T>{1, T(0.5), 0}));
  CHECK(equal(gradient([](const auto& v) { return sum(maximum(v, v)); }, a), ones<T>({3})));
}

TEST_CASE("reduce: variances of float at a large mean") {
  const Tensor<float> x{40000, 40001, 40002, 40003};
  CHECK(allclose(layer_norm(x), Tensor<float>{-1.3416355f, -0.4472118f, 0.4472118f, 1.3416355f}, 0, 1e-6));
  CHECK(var(x).item() == doctest::Approx(5.0 / 3));
  for (float mean : {0.0f, -1e3f, 4e4f, 1e6f}) {
    const auto shifted = Tensor<float>{{0, 1, 2, 3}, {3, 3, 3, 4}, {-8, 0, 8, 1}} + mean;
    const auto exact = to<double>(shifted);
    for (int axis : {0, 1}) {
      CHECK(allclose(to<double>(var(shifted, axis)), var(exact, axis), 1e-6, 1e-6));
      CHECK(allclose(to<double>(std_dev(shifted, axis)), std_dev(exact, axis), 1e-6, 1e-6));
    }
    CHECK(allclose(to<double>(layer_norm(shifted)), layer_norm(exact), 1e-6, 1e-6));
  }
}

TEST_CASE("reduce: sums of float do not stop growing at 2^24") {
  CHECK(sum(Tensor<float>{16777216, 1, 1, 1, 1}).item() == 16777220);
  const auto many = broadcast_to(ones<float>({1}), {20'000'000});
  CHECK(mean(many).item() == 1);
  CHECK(sum(many).item() == 20'000'000);
  const auto columns = broadcast_to(ones<float>({1, 1}), {20'000'000, 1});
  CHECK(sum(columns, 0).item() == 20'000'000);
  CHECK(norm(many).item() == doctest::Approx(4472.13595));
  CHECK(cumsum(Tensor<float>{16777216, 1, 1, 1, 1}, 0).at({4}) == 16777220);
  CHECK(logsumexp(broadcast_to(zeros<float>({1}), {20'000'000}), 0).item() == doctest::Approx(std::log(2e7)));
  Tape<float> tape;  // and as a gradient: one element used twenty million times
  const auto one = ones<float>({1});
  tape.watch(one);
  CHECK(tape.backward(sum(broadcast_to(one, {20'000'000})))[one].item() == 20'000'000);
}

TEST_CASE("any, all, sum and mean of bool, along axes and of nothing") {
  const Tensor<bool> m{{true, false, true}, {true, true, true}};
  CHECK((any(m).item() && !all(m).item()));
  CHECK((equal(all(m, 0), Tensor<bool>{true, false, true}) && equal(any(m, 1), Tensor<bool>{true, true})));
  CHECK(equal(sum(m, 1, true), Tensor<std::int64_t>{{2}, {3}}));
  CHECK(mean(m).item() == doctest::Approx(5.0 / 6));
  CHECK((all(zeros<bool>({0})).item() && !any(zeros<bool>({0})).item() && std::isnan(mean(zeros<bool>({0})).item())));
  CHECK((argmin(Tensor<double>{3, 1, 1}).item() == 1 && argmin(Tensor<double>{3, std::nan(""), 1}).item() == 1));
}

TEST_CASE("reduce: a negative correction would divide by more than there is, and is refused") {
  const Tensor<double> x{1, 2, 4};
  CHECK(message<ValueError>([&] { var(x, {}, -1); }) == "var: correction -1; it must not be negative"sv);
  CHECK(message<ValueError>([&] { std_dev(x, 0, -2); }) == "std: correction -2; it must not be negative"sv);
  CHECK(var(x, {}, 0).item() == doctest::Approx(14.0 / 9));
}
