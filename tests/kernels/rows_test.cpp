// Softmax and norms row by row, there and back, against plain loops in long double: every length around the
// vectors' edges, every alignment, and special values.
#include "kernels/rows.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/norm.hpp"
#include "testing.hpp"

using namespace tapehead::kernels;
using std::int64_t;

namespace {

template <class T> constexpr T inf = std::numeric_limits<T>::infinity();
template <class T> constexpr T quiet_nan = std::numeric_limits<T>::quiet_NaN();

using Wide = long double;
using Row = std::vector<Wide>;

/// Numbers in (-2, 2) that do not repeat.
template <class T> std::vector<T> numbers(int64_t n, double seed) {
  std::vector<T> x;
  for (int64_t i = 0; i < n; ++i)
    x.push_back(static_cast<T>(2 * std::sin(seed + 1.7 * static_cast<double>(i * i + i))));
  return x;
}
template <class T> Row wide(const std::vector<T>& x) { return Row(x.begin(), x.end()); }

template <class F> Wide sum(const Row& x, const F& f) {
  Wide total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) total += f(i);
  return total;
}
Row softmax(const Row& x) {
  Wide most = -inf<Wide>;
  for (Wide v : x) most = std::max(most, v);
  const Wide total = sum(x, [&](std::size_t i) { return std::exp(x[i] - most); });
  Row y;
  for (Wide v : x) y.push_back(std::exp(v - most) / total);
  return y;
}
constexpr Wide eps = 1e-5L;
struct Normalised {
  explicit Normalised(const Row& x, bool centred) : n(static_cast<Wide>(x.size())) {
    const Wide mean = centred ? sum(x, [&](std::size_t i) { return x[i]; }) / n : 0;
    scale = 1 / std::sqrt(sum(x, [&](std::size_t i) { return (x[i] - mean) * (x[i] - mean); }) / n + eps);
    for (Wide v : x) hat.push_back((v - mean) * scale);
  }
  Wide n, scale;
  Row hat;
};

template <class T> void compare(const Row& expected, const std::vector<T>& y) {
  CHECK(y.front() == T(-7));
  CHECK(y.back() == T(-7));
  Wide worst = 0;  // some twenty roundings; exp's result is off by its own and the argument's
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::abs(y[i + 1] - expected[i]) / (1 + std::abs(expected[i])));
  CHECK(worst <= 20 * std::numeric_limits<T>::epsilon());
}
/// Runs f(where to write) at an address that is off by one element, and compares; nothing behind may change.
template <class T, class F> void check(const Row& expected, const F& f) {
  std::vector<T> y(expected.size() + 2, T(-7));
  f(y.data() + 1);
  compare(expected, y);
}

}  // namespace

TEST_CASE_TEMPLATE("rows: softmax and norms of every length, there and back", T, float, double) {
  for (int64_t n = 1; n < 70; ++n) {
    CAPTURE(n);
    const auto x = numbers<T>(n, 0.3), dy = numbers<T>(n, 1.1), w = numbers<T>(n, 2.9), b = numbers<T>(n, 4.2);
    const Row X = wide(x), DY = wide(dy);
    const Row A = softmax(X);
    check<T>(A, [&](T* y) { softmax_row(n, x.data(), y, false); });
    check<T>(A, [&](T* y) { std::copy(x.begin(), x.end(), y), softmax_row(n, y, y, true); });  // in place
    std::vector<T> a(x.size());
    softmax_row(n, x.data(), a.data(), false);
    const Wide along = sum(X, [&](std::size_t i) { return DY[i] * A[i]; });
    Row dS;
    for (std::size_t i = 0; i < X.size(); ++i) dS.push_back(A[i] * (DY[i] - along));
    check<T>(dS, [&](T* ds) { softmax_pull_row(n, a.data(), dy.data(), ds); });
    check<T>(dS, [&](T* ds) { std::copy(dy.begin(), dy.end(), ds), softmax_pull_row(n, a.data(), ds, ds); });

    for (bool centred : {false, true})
      for (bool weighted : {false, true}) {
        const Normalised norm(X, centred);
        Row y, dx, dw, db;
        const auto g = [&](std::size_t i) { return DY[i] * (weighted ? Wide(w[i]) : 1); };
        const Wide mean = centred ? sum(X, g) / norm.n : 0;
        const Wide part = sum(X, [&](std::size_t i) { return g(i) * norm.hat[i]; }) / norm.n;
        for (std::size_t i = 0; i < X.size(); ++i) {
          y.push_back(norm.hat[i] * (weighted ? Wide(w[i]) : 1) + Wide(b[i]));
          dx.push_back((g(i) - mean - norm.hat[i] * part) * norm.scale);
          dw.push_back(0.5L + DY[i] * norm.hat[i]);
          db.push_back(0.5L + DY[i]);
        }
        const T* weight = weighted ? w.data() : nullptr;
        if (n == 1 && centred) continue;  // x - mean x is 0, and all that is left is a rounding error times 1/√ε
        check<T>(y, [&](T* to) { norm_row(n, x.data(), weight, b.data(), double(eps), centred, to); });
        const auto pull = [&](T* to_x, double* to_w, double* to_b) {
          norm_pull_row(n, x.data(), dy.data(), weight, double(eps), centred, to_x, to_w, to_b);
        };
        check<T>(dx, [&](T* to) { pull(to, nullptr, nullptr); });
        if (n == 2) continue;
        check<double>(dw, [&](double* to) {
          std::fill_n(to, n, 0.5);
          pull(nullptr, to, nullptr);
        });
        check<double>(db, [&](double* to) {
          std::fill_n(to, n, 0.5);
          std::vector<T> also_x(x.size());
          pull(also_x.data(), nullptr, to);
        });
      }
  }
}

TEST_CASE_TEMPLATE("rows: infinity, NaN and subnormal numbers", T, float, double) {
  const T least = std::numeric_limits<T>::denorm_min();
  for (int64_t n : {3, 17, 40}) {
    const auto at = static_cast<std::size_t>(n - 2);
    std::vector<T> x(static_cast<std::size_t>(n), -inf<T>), a(x.size()), ds(x.size()), dy(x.size(), T(1));
    x[at] = least;  // the only one: it takes all the weight
    softmax_row(n, x.data(), a.data(), false);
    CHECK((a[at] == 1 && a[0] == 0 && a.back() == 0));
    softmax_pull_row(n, a.data(), dy.data(), ds.data());
    CHECK(ds == std::vector<T>(x.size(), T(0)));
    x[at] = quiet_nan<T>;  // in a row of NaN all is NaN, whatever is asked for where nothing is left
    softmax_row(n, x.data(), a.data(), true);
    CHECK((std::isnan(a[0]) && std::isnan(a[at])));
    dy[at] = inf<T>;  // and what arrives infinite spreads as in plain loops
    softmax_row(n, numbers<T>(n, 1).data(), a.data(), false);
    softmax_pull_row(n, a.data(), dy.data(), ds.data());
    CHECK((ds[0] == -inf<T> && std::isnan(ds[at])));

    std::vector<T> small(x.size(), least), y(x.size());
    small[at] = 5 * least;
    const bool squares_fit = sizeof(T) == 4;  // into double, in which they are summed
    norm_row<T>(n, small.data(), nullptr, nullptr, squares_fit ? 0.0 : 1e-5, true, y.data());
    CHECK((y[at] > (squares_fit ? T(1) : T(0)) && std::isfinite(y[at])));
    small[at] = quiet_nan<T>;
    norm_row<T>(n, small.data(), nullptr, nullptr, 1e-5, true, y.data());
    CHECK((std::isnan(y[0]) && std::isnan(y[at])));
  }
}

TEST_CASE_TEMPLATE("rows: any NaN gives NaN, beside infinities and in rows of nothing but NaN too", T, float, double) {
  const T nan = quiet_nan<T>, far = inf<T>;
  for (int64_t n : {2, 15, 16, 17, 40})
    for (T other : {nan, -far, far, T(1), std::numeric_limits<T>::lowest()})
      for (int64_t place : {int64_t(0), n / 2, n - 1}) {
        CAPTURE(n);
        CAPTURE(other);
        CAPTURE(place);
        std::vector<T> x(static_cast<std::size_t>(n), other), a(x.size());
        x[static_cast<std::size_t>(place)] = nan;
        const auto total = sum_exp_row(n, x.data());
        CHECK(std::isnan(total.log));
        CHECK(std::isnan(static_cast<double>(total.max) + total.log));
        CHECK(!std::isinf(total.max));
        for (bool empty_is_zero : {false, true}) {
          softmax_row(n, x.data(), a.data(), empty_is_zero);
          for (T v : a) CHECK(std::isnan(v));
        }
      }
  const std::vector<T> nothing(20, -far);
  std::vector<T> a(20);
  CHECK(sum_exp_row<T>(20, nothing.data()).max == -far);
  softmax_row<T>(20, nothing.data(), a.data(), true);
  CHECK(a == std::vector<T>(20, T(0)));
  softmax_row<T>(20, nothing.data(), a.data(), false);
  for (T v : a) CHECK(std::isnan(v));
  CHECK(sum_exp_row<T>(0, nullptr).max == -far);
}

TEST_CASE_TEMPLATE("rows: the logarithm of a sum survives beside large numbers", T, float, double) {
  const T large = sizeof(T) == 4 ? T(1e17) : T(1e300);
  const std::vector<T> x{large, large};
  const auto total = sum_exp_row<T>(2, x.data());
  CHECK((static_cast<double>(total.max) - static_cast<double>(x[0])) + total.log == doctest::Approx(std::log(2.0)));
}
