#include "kernels/vec.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "testing.hpp"

using namespace tapehead::kernels;
using std::int64_t;

namespace {
template <class T> Vec<T> counted(T first) {
  T x[lanes<T>];
  for (int i = 0; i < lanes<T>; ++i) x[i] = first + static_cast<T>(i);
  return load(x);
}
}  // namespace

TEST_CASE_TEMPLATE("vec: partial loads and stores read and write nothing behind", T, float, double) {
  for (int64_t n = 0; n <= lanes<T>; ++n) {
    std::vector<T> x(static_cast<std::size_t>(n), T(3));  // exactly n: the address sanitizer sees more
    std::vector<T> y(static_cast<std::size_t>(lanes<T> + 1), T(-7));
    const Vec<T> v = load_n(x.data(), n);
    for (int i = 0; i < lanes<T>; ++i) CHECK(v[i] == (i < n ? T(3) : T(0)));
    store_n(y.data(), counted<T>(1), n);
    for (int i = 0; i <= lanes<T>; ++i) CHECK(y[static_cast<std::size_t>(i)] == (i < n ? T(i + 1) : T(-7)));
  }
}

TEST_CASE_TEMPLATE("vec: arithmetic, comparisons and choice lane by lane", T, float, double) {
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  const Vec<T> a = counted<T>(1), b = T(3);
  for (int i = 0; i < lanes<T>; ++i) {
    const T x = a[i];
    CHECK((a + b)[i] == x + 3);
    CHECK((a - b)[i] == x - 3);
    CHECK((a * b)[i] == x * 3);
    CHECK((a / b)[i] == x / 3);
    CHECK(fma(a, b, a)[i] == x * 4);
    CHECK(select(a < b, a, b)[i] == std::min(x, T(3)));
    CHECK(max(a, b)[i] == std::max(x, T(3)));
    CHECK(min(a, b)[i] == std::min(x, T(3)));
  }
  CHECK(max(Vec<T>(nan), b)[0] == 3);  // the second operand where either is NaN
  CHECK(std::isnan(max(b, Vec<T>(nan))[0]));
  CHECK(std::signbit(broadcast(T(-0.0))[0]));
  CHECK((abs(-a)[0] == 1 && copysign(a, -b)[0] == -1));
}

TEST_CASE_TEMPLATE("vec: rounding is to even and keeps the sign of zero; powers of two reach subnormal numbers", T,
                   float, double) {
  for (T x : {T(0.5), T(1.5), T(2.5), T(-0.5), T(-0.2), T(1e30), T(-7.7), T(0)}) {
    const T y = round_nearest(Vec<T>(x))[0];
    CHECK(y == std::nearbyint(x));
    CHECK(std::signbit(y) == std::signbit(x));
  }
  for (int n = -1080; n < 1030; n += 7) {
    if (sizeof(T) == 4 && (n < -150 || n > 130)) continue;
    CHECK(scale2(Vec<T>(T(1.25)), Vec<T>(T(n)))[0] == std::ldexp(T(1.25), n));
  }
  CHECK(from_bits<T>(bits(Vec<T>(T(2.5))))[0] == T(2.5));
  CHECK((to_int(Vec<T>(T(-2.7)))[0] == -2 && to_real<T>(to_int(Vec<T>(T(5.9))))[0] == 5));
}
