#include <cmath>
#include <limits>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "values.hpp"

using namespace tapehead;
using testing::gradient;

TEST_CASE("select: the where trap: two wheres are safe, one is not") {
  const Tensor<double> x{-1, -4, 9};
  const auto two = [](const auto& v) { return sum(where(v > 0, sqrt(where(v > 0, v, ones_like(v))), v)); };
  CHECK(allclose(gradient(two, x), Tensor<double>{1, 1, 1.0 / 6}));
  const auto one = gradient([](const auto& v) { return sum(where(v > 0, sqrt(v), v)); }, x);
  CHECK((std::isnan(one.at({0})) && std::isnan(one.at({1})) && one.at({2}) == doctest::Approx(1.0 / 6)));
  const Tensor<float> a{100};
  CHECK(gradient([](const auto& v) { return where(v <= 0, exp(where(v <= 0, v, zeros_like(v))), v + 1); }, a).item() ==
        1);
  CHECK(std::isnan(gradient([](const auto& v) { return where(v <= 0, exp(v), v + 1); }, a).item()));
  // What the library itself masks is selected away, forward and backward.
  const Tensor<double> bad{std::nan(""), std::numeric_limits<double>::infinity(), 2};
  const Tensor<bool> hide{true, true, false};
  CHECK(equal(gradient([&](const auto& v) { return sum(masked_fill(v, hide, 0)); }, bad), Tensor<double>{0, 0, 1}));
  CHECK(
      equal(gradient([&](const auto& v) { return sum(where(hide, zeros_like(v), v)); }, bad), Tensor<double>{0, 0, 1}));
  CHECK(equal(gradient([&](const auto& v) { return sum(dropout(v, 0.5, ~hide)); }, bad), Tensor<double>{0, 0, 2}));
  CHECK(equal(tril(Tensor<double>{{1, std::nan("")}, {2, 3}}), Tensor<double>{{1, 0}, {2, 3}}));
}
