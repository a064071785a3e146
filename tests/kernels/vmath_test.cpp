// One vector, and the mathematical functions on vectors.
#include "kernels/vmath.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/gelu.hpp"
#include "testing.hpp"

using namespace tapehead::kernels;

namespace {

template <class T> constexpr T inf = std::numeric_limits<T>::infinity();
template <class T> constexpr T quiet_nan = std::numeric_limits<T>::quiet_NaN();

/// Equal as values and in the sign of zero; NaN equals NaN.
template <class T> bool same(T a, T b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

/// The next of a fixed sequence of 64-bit patterns (xorshift).
std::uint64_t next_pattern() {
  static std::uint64_t s = 88172645463325252u;
  s ^= s << 13, s ^= s >> 7, s ^= s << 17;
  return s;
}
double next_uniform() { return static_cast<double>(next_pattern() >> 11) * 0x1p-53; }

/// The size of the last place of T near r, or of a subnormal.
template <class T, class R> R ulp(R r) {
  const int digits = std::numeric_limits<T>::digits;
  int e = 0;
  std::frexp(std::abs(r), &e);
  return std::ldexp(R(1), std::max(e, std::numeric_limits<T>::min_exponent) - digits);
}

/// A function under test: in T, and in a wider type R that serves as the truth.
template <class T, class R> struct Function {
  const char* name;
  void (*ours)(std::int64_t, const T*, T*);
  R (*truth)(R);
  double max_ulp;
  double lo, hi;  ///< where it is neither constant nor infinite
};

template <class R> R logistic(R x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

/// x Φ(x); its limit, 0, at -∞.
template <class R> R normal_gate(R x) { return x == -inf<R> ? -R(0) : x / 2 * std::erfc(-x / std::sqrt(R(2))); }

template <class T, class R> std::vector<Function<T, R>> functions() {
  const bool f = sizeof(T) == 4;
  const double e = f ? 100 : 750;
  return {
      {"exp", exp_n<T>, [](R x) { return std::exp(x); }, exp_max_ulp, -1.04 * e, e},
      {"exp2", exp2_n<T>, [](R x) { return std::exp2(x); }, exp2_max_ulp, -1.5 * e, 1.5 * e},
      {"expm1", expm1_n<T>, [](R x) { return std::expm1(x); }, expm1_max_ulp, -40, e},
      {"log", log_n<T>, [](R x) { return std::log(x); }, log_max_ulp, 0, 3},
      {"tanh", tanh_n<T>, [](R x) { return std::tanh(x); }, tanh_max_ulp, -3, 3},
      {"sigmoid", sigmoid_n<T>, [](R x) { return logistic(x); }, sigmoid_max_ulp, -1.04 * e, 40},
      {"erf", erf_n<T>, [](R x) { return std::erf(x); }, erf_max_ulp, -6.5, 6.5},
      {"gelu", gelu_n<T>, normal_gate<R>, gelu_max_ulp, f ? -13 : -37, 6},
  };
}

/// Half of the arguments are drawn where the function is interesting, a quarter around 0 at every scale, a
/// quarter from all bit patterns: NaN, infinities, subnormals.
template <class T> T draw(int i, double lo, double hi) {
  if (i % 4 == 0) {
    const auto pattern = next_pattern();
    T x;
    std::memcpy(&x, &pattern, sizeof x);
    return x;
  }
  if (i % 4 == 1) return static_cast<T>(std::ldexp(2 * next_uniform() - 1, -static_cast<int>(next_pattern() % 64)));
  return static_cast<T>(lo + (hi - lo) * next_uniform());
}

/// The largest error over `count` arguments in ulps; infinite where a special value or a sign is wrong.
template <class T, class R> double largest_error(const Function<T, R>& f, int count) {
  double worst = 0;
  std::vector<T> x(1000), y(1000);
  for (int done = 0; done < count; done += 1000) {
    for (int i = 0; i < 1000; ++i) x[static_cast<std::size_t>(i)] = draw<T>(i, f.lo, f.hi);
    f.ours(1000, x.data(), y.data());
    for (std::size_t i = 0; i < 1000; ++i) {
      const R r = f.truth(static_cast<R>(x[i]));
      const T rounded = static_cast<T>(r);
      if (std::isfinite(rounded) && std::isfinite(y[i]) && std::signbit(rounded) == std::signbit(y[i]))
        worst = std::max(worst, static_cast<double>(std::abs(static_cast<R>(y[i]) - r) / ulp<T>(r)));
      else if (!same(y[i], rounded))
        worst = inf<double>;
    }
  }
  return worst;
}

template <class T, class R> void check_bounds(int count) {
  for (const auto& f : functions<T, R>()) {
    CAPTURE(f.name);
    const double worst = largest_error(f, count);
    const std::string name = (sizeof(T) == 4 ? "float " : "double ") + std::string(f.name);
    MESSAGE(name, ": ", worst, " ulp, bound ", f.max_ulp);
    CHECK(worst <= f.max_ulp);
    CHECK(worst > 0.4);  // nothing rounds better than half an ulp: a smaller figure means nothing was measured
  }
}

template <class T> T apply(void (*f)(std::int64_t, const T*, T*), T x) {
  T y;
  f(1, &x, &y);
  return y;
}

}  // namespace

TEST_CASE_TEMPLATE("vec: partial loads and stores touch n elements and no more", T, float, double) {
  std::vector<T> a(3 * lanes<T>), b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(i) + T(0.5);
  for (int n = 0; n <= lanes<T>; ++n) {
    const Vec<T> x = load_n(a.data() + 1, n);
    for (int i = 0; i < lanes<T>; ++i) CHECK(x[i] == (i < n ? T(i) + T(1.5) : T(0)));
    std::fill(b.begin(), b.end(), T(-1));
    store_n(b.data() + 1, x + Vec<T>(T(1)), n);
    for (int i = 0; i < 3 * lanes<T>; ++i)
      CHECK(b[static_cast<std::size_t>(i)] == (i >= 1 && i <= n ? T(i) + T(1.5) : T(-1)));
  }
}

TEST_CASE_TEMPLATE("vec: across the lanes", T, float, double) {
  for (int at = 0; at < lanes<T>; ++at) {  // every lane reaches the result
    std::vector<T> a(lanes<T>, T(0));
    a[static_cast<std::size_t>(at)] = T(3);
    CHECK(horizontal_sum(load(a.data())) == T(3));
    CHECK(horizontal_max(load(a.data())) == T(3));
    CHECK(any(load(a.data()) > Vec<T>(T(2))));
    CHECK_FALSE(all(load(a.data()) > Vec<T>(T(2))));
    CHECK_FALSE(all(load(a.data()) < Vec<T>(T(2))));
    CHECK(all(load(a.data()) < Vec<T>(T(4))));
    CHECK_FALSE(any(load(a.data()) > Vec<T>(T(3))));
  }
}

TEST_CASE_TEMPLATE("vec: rounding, signs, choice", T, float, double) {
  const T big = sizeof(T) == 4 ? T(8388608) : T(4503599627370496);
  for (T x : {T(0.5), T(1.5), T(2.5), T(0.49), T(-0.3), T(-0.0), T(-2.5), T(1e30), big - T(0.5), big / 2 - T(0.25),
              T(-1e9), inf<T>, -inf<T>, quiet_nan<T>}) {
    CAPTURE(x);
    CHECK(same(round_nearest(Vec<T>(x))[lanes<T> - 1], std::nearbyint(x)));
  }
  CHECK(same(broadcast(T(-0.0))[0], T(-0.0)));
  CHECK(same((-Vec<T>(T(0)))[0], T(-0.0)));
  CHECK(same(copysign(Vec<T>(T(2)), Vec<T>(T(-0.0)))[0], T(-2)));
  CHECK(same(abs(Vec<T>(-inf<T>))[0], inf<T>));
  CHECK(max(Vec<T>(quiet_nan<T>), Vec<T>(T(1)))[0] == T(1));
  CHECK(std::isnan(max(Vec<T>(T(1)), Vec<T>(quiet_nan<T>))[0]));
  CHECK(select(Vec<T>(T(1)) < Vec<T>(quiet_nan<T>), Vec<T>(T(1)), Vec<T>(T(2)))[0] == T(2));
  CHECK(to_real<T>(to_int(Vec<T>(T(-2.75))))[0] == T(-2));
}

TEST_CASE("vmath: float errors stay under the stated bounds") { check_bounds<float, double>(2'000'000); }

TEST_CASE("vmath: double errors stay under the stated bounds") {
#if LDBL_MANT_DIG >= 64
  check_bounds<double, long double>(1'000'000);
#else
  MESSAGE("long double is no wider than double here: nothing to measure double against");
#endif
}

TEST_CASE_TEMPLATE("vmath: special values are exact", T, float, double) {
  const T least = std::numeric_limits<T>::denorm_min(), most = std::numeric_limits<T>::max();
  struct Case {
    const char* name;
    void (*f)(std::int64_t, const T*, T*);
    T x, y;
  };
  const Case cases[] = {
      {"exp", exp_n<T>, -inf<T>, 0},
      {"exp", exp_n<T>, inf<T>, inf<T>},
      {"exp", exp_n<T>, 0, 1},
      {"exp", exp_n<T>, -most, 0},
      {"exp", exp_n<T>, most, inf<T>},
      {"exp", exp_n<T>, least, 1},
      {"exp2", exp2_n<T>, -inf<T>, 0},
      {"exp2", exp2_n<T>, inf<T>, inf<T>},
      {"exp2", exp2_n<T>, 10, 1024},
      {"exp2", exp2_n<T>, std::log2(least), least},
      {"expm1", expm1_n<T>, -inf<T>, -1},
      {"expm1", expm1_n<T>, inf<T>, inf<T>},
      {"expm1", expm1_n<T>, T(-0.0), T(-0.)},
      {"expm1", expm1_n<T>, least, least},
      {"expm1", expm1_n<T>, most, inf<T>},
      {"expm1", expm1_n<T>, -most, -1},
      {"log", log_n<T>, 0, -inf<T>},
      {"log", log_n<T>, T(-0.0), -inf<T>},
      {"log", log_n<T>, -1, quiet_nan<T>},
      {"log", log_n<T>, -least, quiet_nan<T>},
      {"log", log_n<T>, -inf<T>, quiet_nan<T>},
      {"log", log_n<T>, inf<T>, inf<T>},
      {"log", log_n<T>, 1, 0},
      {"log", log_n<T>, least, std::log(least)},
      {"tanh", tanh_n<T>, inf<T>, 1},
      {"tanh", tanh_n<T>, -inf<T>, -1},
      {"tanh", tanh_n<T>, T(-0.0), T(-0.0)},
      {"tanh", tanh_n<T>, -least, -least},
      {"sigmoid", sigmoid_n<T>, inf<T>, 1},
      {"sigmoid", sigmoid_n<T>, -inf<T>, 0},
      {"sigmoid", sigmoid_n<T>, 0, T(0.5)},
      {"erf", erf_n<T>, inf<T>, 1},
      {"erf", erf_n<T>, -inf<T>, -1},
      {"erf", erf_n<T>, T(-0.0), T(-0.0)},
      {"erf", erf_n<T>, least, least},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CAPTURE(c.x);
    CHECK(same(apply(c.f, c.x), c.y));
  }
  for (const auto& f : functions<T, T>()) {
    CAPTURE(f.name);
    CHECK(std::isnan(apply(f.ours, quiet_nan<T>)));
  }
}

TEST_CASE_TEMPLATE("vmath: a value depends neither on its place nor on its neighbours", T, float, double) {
  const std::int64_t n = 3 * lanes<T> + 1;
  std::vector<T> x(static_cast<std::size_t>(n)), y(x.size() + 1);
  for (const auto& f : functions<T, T>()) {
    CAPTURE(f.name);
    for (int i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = draw<T>(i, f.lo, f.hi);
    for (std::int64_t from = 0; from < lanes<T>; ++from)
      for (std::int64_t count = 0; from + count <= n; ++count) {
        std::fill(y.begin(), y.end(), T(-7));
        f.ours(count, x.data() + from, y.data());
        bool ok = y[static_cast<std::size_t>(count)] == T(-7);  // nothing is written behind the end
        for (std::int64_t i = 0; i < count; ++i)
          ok = ok && same(y[static_cast<std::size_t>(i)], apply(f.ours, x[static_cast<std::size_t>(from + i)]));
        CHECK(ok);
      }
    std::vector<T> in_place = x;
    f.ours(n, x.data(), y.data());
    f.ours(n, in_place.data(), in_place.data());
    CHECK(std::equal(in_place.begin(), in_place.end(), y.begin(), same<T>));
  }
}
