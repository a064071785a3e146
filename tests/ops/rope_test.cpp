#include "tapehead/ops/rope.hpp"

#include <cmath>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;
using Index = Tensor<std::int64_t>;

TEST_CASE("rope: position 0 changes nothing, lengths stay, and scores depend on the distance alone") {
  NumpyRandom rng(4);
  const auto q = rng.randn({1, 8}), k = rng.randn({1, 8});
  CHECK(equal(rope(q, Index{0}), q));
  CHECK(norm(rope(q, Index{12345})).item() == doctest::Approx(norm(q).item()));
  const auto score = [&](std::int64_t m, std::int64_t n) { return sum(rope(q, Index{m}) * rope(k, Index{n})).item(); };
  CHECK(score(7, 3) == doctest::Approx(score(104, 100)).epsilon(1e-12));
  CHECK(score(7, 3) != doctest::Approx(score(7, 4)));
}

TEST_CASE("rope: the angles, and which elements make a pair") {
  const Tensor<double> x{{1, 0, 0, 10}};
  const double a = 3, b = 3 * std::pow(100.0, -0.5);
  CHECK(allclose(rope(x, Index{3}, 100),
                 Tensor<double>{{std::cos(a), -10 * std::sin(b), std::sin(a), 10 * std::cos(b)}}, 1e-15, 1e-15));
}

TEST_CASE("rope: large positions keep their digits in float") {
  const Tensor<float> x{{1, 0}};
  const auto y = rope(x, Index{1'000'000'007});
  CHECK(y.at({0, 0}) == static_cast<float>(std::cos(1'000'000'007.0)));
  CHECK(y.at({0, 1}) == static_cast<float>(std::sin(1'000'000'007.0)));
}

TEST_CASE("rope: positions for each batch, or each row alone; empty") {
  NumpyRandom rng(5);
  const auto x = rng.randn({2, 3, 4, 6});
  const Index each{{0, 1, 2, 3}, {7, 8, 9, 10}};
  const auto y = rope(x, each.reshape({2, 1, 4}));
  CHECK(equal(y[0], rope(x[0], each[0])));
  CHECK(equal(y[1], rope(x[1], each[1])));
  CHECK(equal(rope(x, Index{5}), rope(x, Index{5, 5, 5, 5})));
  CHECK(equal(rope(x[0][0][0], scalar<std::int64_t>(5)), rope(x, Index{5})[0][0][0]));
  CHECK(rope(zeros<double>({0, 4}), zeros<std::int64_t>({0})).shape() == Shape{0, 4});
  CHECK(rope(zeros<double>({3, 0}), Index{0, 1, 2}).shape() == Shape{3, 0});
}

TEST_CASE("rope: what it refuses") {
  const auto x = zeros<double>({2, 3, 4});
  CHECK(message<ShapeError>([&] {
          rope(zeros<double>({3, 5}), Index{0, 1, 2});
        }) == "rope: shape (3, 5); the last axis is turned in pairs, so its size must be even"sv);
  CHECK(message<ShapeError>([&] { rope(scalar(1.0), Index{0}); }).find("rope: shape ()") == 0);
  CHECK(message<ShapeError>([&] {
          rope(x, Index{0, 1});
        }) ==
        "rope: positions (2,) for shape (2, 3, 4); they must have one axis, or 2 axes, and broadcast to (2, "
        "3): a batch "
        "with heads takes (batch, 1, L)"sv);
  CHECK(message<ValueError>([&] { rope(x, Index{0, 1, 2}, -1); }) == "rope: theta -1; it must be positive"sv);
}

TEST_CASE("rope: positions of a batch are never taken for positions of heads") {
  NumpyRandom rng(3);
  const auto x = rng.randn({2, 2, 3, 4});  // (batch, heads, L, D)
  const Index by_batch{{0, 1, 2}, {5, 6, 7}};
  CHECK_THROWS_AS(rope(x, by_batch), ShapeError);
  const auto y = rope(x, by_batch.reshape({2, 1, 3}));
  for (std::int64_t b = 0; b < 2; ++b) CHECK(equal(y[b], rope(x[b], by_batch[b])));
  CHECK(equal(rope(x[0], by_batch)[1], rope(x[0][1], by_batch[1])));  // one axis less than x: no doubt
}
