#include "kernels/gelu.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "testing.hpp"

using namespace tapehead::kernels;

namespace {

constexpr long double pi = 3.14159265358979323846264338327950288L;

/// Φ(x) + x Φ'(x) to about 19 digits. Near its root, where that sum cancels, Taylor's series about the root:
/// the derivatives of the slope are Φ'(x) times 2 - x², x³ - 4x, -x⁴ + 7x² - 4, x⁵ - 11x³ + 18x.
long double exact_slope(double x) {
  const long double v = x, bell = std::exp(-v * v / 2) / std::sqrt(2 * pi);
  constexpr long double root = -0.7517915246935644574579L;
  const long double d = (v - static_cast<long double>(-0.75179152469356447241)) - 1.4956759177009883273e-17L;
  if (std::abs(d) > 2e-4L) return std::erfc(-v / std::sqrt(2.0L)) / 2 + v * bell;
  const long double r = root, at_root = std::exp(-r * r / 2) / std::sqrt(2 * pi);
  const long double first = 2 - r * r, second = r * r * r - 4 * r, third = -r * r * r * r + 7 * r * r - 4,
                    fourth = r * r * r * r * r - 11 * r * r * r + 18 * r;
  return at_root * d * (first + d / 2 * (second + d / 3 * (third + d / 4 * fourth)));
}

template <class T> double slope_error(T x) {
  const T one = 1;
  T dx;
  gelu_pull_n<T>(1, &x, &one, &dx);
  const long double truth = exact_slope(static_cast<double>(x));
  if (std::abs(truth) < static_cast<long double>(std::numeric_limits<T>::min())) return 0;
  const T rounded = static_cast<T>(std::abs(truth)), next = std::nextafter(rounded, T(2));
  return static_cast<double>(std::abs(static_cast<long double>(dx) - truth) / static_cast<long double>(next - rounded));
}

}  // namespace

TEST_CASE_TEMPLATE("gelu: the slope has all its digits in the tails, at its root and everywhere", T, float, double) {
  const double lo = sizeof(T) == 4 ? -15 : -42;
  double worst = 0;
  for (double at = lo; at < 12; at += 0.000573) worst = std::max(worst, slope_error(static_cast<T>(at)));
  T above = T(-0.7517915246935645), below = above;
  for (int i = 0; i < 3000; ++i) {
    worst = std::max({worst, slope_error(above), slope_error(below)});
    above = std::nextafter(above, T(0)), below = std::nextafter(below, T(-1));
  }
  for (double step = 1e-9; step < 0.1; step *= 1.01)
    worst = std::max({worst, slope_error(T(-0.75179152 + step)), slope_error(T(-0.75179152 - step)),
                      slope_error(T(step)), slope_error(T(-step))});
  CHECK(worst <= gelu_slope_max_ulp);
  CHECK(gelu_slope_max_ulp <= 8);
  CHECK(worst > 0.4);
}

TEST_CASE_TEMPLATE("gelu: infinities give the limits, NaN stays, and what arrives is a factor", T, float, double) {
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x{-inf, inf, 0, nan, 2, T(-1e30), std::numeric_limits<T>::lowest()}, dy{3, 3, 3, 3, nan, 3, 3};
  std::vector<T> dx(x.size()), y(x.size());
  const auto n = static_cast<std::int64_t>(x.size());
  gelu_pull_n<T>(n, x.data(), dy.data(), dx.data());
  CHECK((dx[0] == 0 && dx[1] == 3 && std::abs(dx[2] - T(1.5)) < T(1e-6) && std::isnan(dx[3])));
  CHECK((std::isnan(dx[4]) && dx[5] == 0 && dx[6] == 0));
  gelu_n<T>(n, x.data(), y.data());
  CHECK((y[0] == 0 && y[1] == inf && y[2] == 0 && std::isnan(y[3]) && y[5] == 0 && y[6] == 0));
}

TEST_CASE_TEMPLATE("gelu: an element's result does not depend on its place, and it may be computed in place", T, float,
                   double) {
  std::vector<T> x;
  for (int i = 0; i < 37; ++i) x.push_back(T(0.4) * T(i - 18));
  for (std::int64_t n = 0; n <= 37; ++n) {
    std::vector<T> y(x.begin(), x.begin() + n);
    gelu_n(n, y.data(), y.data());
    for (std::int64_t i = 0; i < n; ++i) {
      T one;
      gelu_n(1, x.data() + i, &one);
      CHECK(y[static_cast<std::size_t>(i)] == one);
    }
  }
}
