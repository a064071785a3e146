#include "tapehead/autograd/accumulate.hpp"

#include <limits>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "values.hpp"

using namespace tapehead;
using testing::gradient;
using testing::message;

TEST_CASE_TEMPLATE("accumulate: sum_to sums the axes along which the smaller shape would be repeated", T, float,
                   double) {
  NumpyRandom rng(4);
  const auto x = to<T>(rng.randint(-9, 9, {2, 3, 4}));
  CHECK(equal(sum_to(x, {2, 3, 4}), x));
  CHECK(equal(sum_to(x, {3, 4}), sum(x, 0)));
  CHECK(equal(sum_to(x, {3, 1}), sum(x, {0, 2}).reshape({3, 1})));
  CHECK(equal(sum_to(x, {1, 1, 4}), sum(x, {0, 1}, false).reshape({1, 1, 4})));
  CHECK(equal(sum_to(x, {2, 1, 1}), sum(x, {1, 2}, true)));
  CHECK(equal(sum_to(x, {}), sum(x)));
  CHECK(equal(sum_to(x, {1}), sum(x).reshape({1})));
  CHECK(equal(sum_to(x.transpose(0, 2), {3, 1}), sum(x.transpose(0, 2), {0, 2}).reshape({3, 1})));
  CHECK(equal(sum_to(flip(x, 1), {2, 1, 4}), sum(x, 1, true)));
  CHECK(equal(sum_to(broadcast_to(x, {5, 2, 3, 4}), {2, 3, 4}), x * 5));
}

TEST_CASE("accumulate: sum_to over nothing is 0, and float does not stop growing") {
  CHECK(equal(sum_to(zeros<double>({0, 3}), {3}), zeros<double>({3})));
  CHECK(equal(sum_to(zeros<double>({0, 3}), {1, 1}), zeros<double>({1, 1})));
  CHECK(sum_to(zeros<double>({2, 0}), {0}).shape() == Shape{0});
  CHECK(sum_to(Tensor<float>{16777216, 1, 1, 1, 1}, {}).item() == 16777220);
}

TEST_CASE("accumulate: what does not broadcast back is refused") {
  const auto x = zeros<double>({2, 3});
  for (const Shape& shape : {Shape{2}, Shape{3, 2}, Shape{2, 3, 1}, Shape{1, 2, 3}, Shape{0}, Shape{2, 0}})
    CHECK_THROWS_AS(sum_to(x, shape), ShapeError);
  CHECK(message<ShapeError>([&] { sum_to(x, {2}); }) ==
        "sum_to: shape (2, 3) cannot be summed to (2,), which does not broadcast to it"sv);
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 4}, Shape{3, 3}, Shape{2, 3, 4}, Shape{2, 0}})
    CHECK_THROWS_AS(broadcast_to(x, shape), ShapeError);
  CHECK(message<ShapeError>([&] { broadcast_to(ones<double>({1}), {-1}); }) ==
        "broadcast_to: (-1,) has a negative size"sv);
}

TEST_CASE("accumulate: sum_to and broadcast_to are each other's pullbacks") {
  const Tensor<double> x{{1, 2, 3}, {4, 5, 6}}, row{7, 8, 9};
  CHECK(equal(gradient([&](const auto& v) { return sum(sum_to(v, {3}) * row); }, x), broadcast_to(row, {2, 3})));
  CHECK(equal(gradient([&](const auto& v) { return sum(broadcast_to(v, {2, 3}) * x); }, row), sum(x, 0)));
  CHECK(gradcheck([](auto v) { return sum_to(v * v, {2, 1}); }, {x}, {.order = 2}));
  CHECK(gradcheck([](auto v) { return broadcast_to(v * v, {2, 2, 3}); }, {x}, {.order = 2}));
}

TEST_CASE("accumulate: add broadcasts, and whole numbers wrap around") {
  CHECK(equal(add(Tensor<double>{{1}, {2}}, Tensor<double>{10, 20}), Tensor<double>{{11, 21}, {12, 22}}));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(add(Tensor<std::int64_t>{most}, Tensor<std::int64_t>{1}).item() == std::numeric_limits<std::int64_t>::min());
  CHECK(equal(gradient([](const auto& v) { return sum(add(v, v)); }, Tensor<double>{1, 2}), Tensor<double>{2, 2}));
}
