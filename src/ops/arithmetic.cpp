#include "tapehead/ops/arithmetic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "autograd/recorded.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/select.hpp"
#include "tensor/copy.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

using detail::map;
using detail::recorded;

namespace {

// int64 wraps around as unsigned numbers do, where signed overflow would be undefined.
template <class T, class F>
T wrapped(T a, T b, F f) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  else
    return f(a, b);
}

}  // namespace

const Op add_op{"add", "c = a + b", "da = dc, db = dc"};
template <class T>
Tensor<T> add(const Tensor<T>& a, const Tensor<T>& b) {
  auto c = map<T>("add", a, b, [](T x, T y) { return wrapped(x, y, [](auto u, auto v) { return u + v; }); });
  return recorded(add_op, std::move(c), wrt(a, [](const auto& dc) { return dc; }),
                  wrt(b, [](const auto& dc) { return dc; }));
}

const Op sub_op{"sub", "c = a - b", "da = dc, db = -dc"};
template <class T>
Tensor<T> sub(const Tensor<T>& a, const Tensor<T>& b) {
  auto c = map<T>("sub", a, b, [](T x, T y) { return wrapped(x, y, [](auto u, auto v) { return u - v; }); });
  return recorded(sub_op, std::move(c), wrt(a, [](const auto& dc) { return dc; }),
                  wrt(b, [](const auto& dc) { return -dc; }));
}

const Op mul_op{"mul", "c = a b", "da = dc b, db = dc a"};
template <class T>
Tensor<T> mul(const Tensor<T>& a, const Tensor<T>& b) {
  auto c = map<T>("mul", a, b, [](T x, T y) { return wrapped(x, y, [](auto u, auto v) { return u * v; }); });
  return recorded(mul_op, std::move(c), wrt(a, [b](const auto& dc) { return dc * b; }),
                  wrt(b, [a](const auto& dc) { return dc * a; }));
}

const Op div_op{"div", "c = a / b", "da = dc / b, db = -dc c / b"};
template <class T>
Real<T> div(const Tensor<T>& a, const Tensor<T>& b) {
  auto c = map<T>("div", a, b, [](T x, T y) { return x / y; });
  return record(div_op, c, wrt(a, [b](const auto& dc) { return dc / b; }),
                wrt(b, [b, c](const auto& dc) { return -(dc * c / b); }));
}

const Op neg_op{"neg", "y = -x", "dx = -dy"};
template <class T>
Tensor<T> neg(const Tensor<T>& x) {
  auto y = map<T>("neg", x, [](T v) { return wrapped(T{}, v, [](auto, auto u) { return -u; }); });
  return recorded(neg_op, std::move(y), wrt(x, [](const auto& dy) { return -dy; }));
}

const Op add_number_op{"add_number", "y = x + c", "dx = dy"};
template <class T>
Tensor<T> add(const Tensor<T>& x, std::type_identity_t<T> c) {
  auto y = map<T>("add", x, [c](T v) { return wrapped(v, c, [](auto a, auto b) { return a + b; }); });
  return recorded(add_number_op, std::move(y), wrt(x, [](const auto& dy) { return dy; }));
}

const Op mul_number_op{"mul_number", "y = s x", "dx = s dy"};
template <class T>
Tensor<T> mul(const Tensor<T>& x, std::type_identity_t<T> s) {
  auto y = map<T>("mul", x, [s](T v) { return wrapped(v, s, [](auto a, auto b) { return a * b; }); });
  return recorded(mul_number_op, std::move(y), wrt(x, [s](const auto& dy) { return dy * s; }));
}

const Op div_number_op{"div_number", "y = x / s", "dx = dy / s"};
template <class T>
Real<T> div(const Tensor<T>& x, std::type_identity_t<T> s) {
  auto y = map<T>("div", x, [s](T v) { return v / s; });
  return record(div_number_op, std::move(y), wrt(x, [s](const auto& dy) { return dy / s; }));
}

// What one side of max(a, b) or min(a, b) gets: 1 where it was chosen, ½ where both were equal.
template <class T>
Tensor<T> share(const Tensor<T>& won, const Tensor<T>& other, bool larger) {
  return map<T>("maximum", won, other, [larger](T a, T b) {
    return a == b ? T(0.5) : (larger ? a > b : a < b) ? T{1} : T{};
  });
}

const Op maximum_op{"maximum", "c = max(a, b)", "da = dc [a > b] + ½ dc [a = b], db likewise"};
template <class T>
Real<T> maximum(const Tensor<T>& a, const Tensor<T>& b) {
  auto c = map<T>("maximum", a, b, [](T x, T y) { return x > y || std::isnan(x) ? x : y; });
  return record(maximum_op, std::move(c), wrt(a, [a, b](const auto& dc) { return dc * share(a, b, true); }),
                wrt(b, [a, b](const auto& dc) { return dc * share(b, a, true); }));
}

const Op minimum_op{"minimum", "c = min(a, b)", "da = dc [a < b] + ½ dc [a = b], db likewise"};
template <class T>
Real<T> minimum(const Tensor<T>& a, const Tensor<T>& b) {
  auto c = map<T>("minimum", a, b, [](T x, T y) { return x < y || std::isnan(x) ? x : y; });
  return record(minimum_op, std::move(c), wrt(a, [a, b](const auto& dc) { return dc * share(a, b, false); }),
                wrt(b, [a, b](const auto& dc) { return dc * share(b, a, false); }));
}

// Where a is 0, c log a is 0 · -inf: the limit, 0, is taken for b > 0, as PyTorch does.
const Op pow_op{"pow", "c = aᵇ", "da = dc b aᵇ⁻¹, db = dc c log a"};
template <class T>
Real<T> pow(const Tensor<T>& a, const Tensor<T>& b) {
  auto c = map<T>("pow", a, b, [](T x, T y) { return std::pow(x, y); });
  return record(
      pow_op, c, wrt(a, [a, b](const auto& dc) { return dc * b * pow(a, b - 1); }),
      wrt(b, [a, c](const auto& dc) { return dc * c * log(where(eq(c, scalar(T{})), scalar(T{1}), a)); }));
}

const Op pow_number_op{"pow_number", "y = xᵖ", "dx = p dy xᵖ⁻¹"};
template <class T>
Real<T> pow(const Tensor<T>& x, std::type_identity_t<T> p) {
  auto y = p == T{2} ? map<T>("pow", x, [](T v) { return v * v; })
                     : map<T>("pow", x, [p](T v) { return std::pow(v, p); });
  return record(pow_number_op, std::move(y), wrt(x, [x, p](const auto& dy) {
                  return p == T{0}   ? zeros_like(dy)
                         : p == T{1} ? dy
                         : p == T{2} ? dy * (x * 2)
                                     : dy * (pow(x, p - 1) * p);
                }));
}

template <class T>
Tensor<bool> eq(const Tensor<T>& a, const Tensor<T>& b) {
  return map<bool>("eq", a, b, [](T x, T y) { return x == y; });
}
template <class T>
Tensor<bool> ne(const Tensor<T>& a, const Tensor<T>& b) {
  return map<bool>("ne", a, b, [](T x, T y) { return x != y; });
}
template <class T>
Tensor<bool> lt(const Tensor<T>& a, const Tensor<T>& b) {
  return map<bool>("lt", a, b, [](T x, T y) { return x < y; });
}
template <class T>
Tensor<bool> le(const Tensor<T>& a, const Tensor<T>& b) {
  return map<bool>("le", a, b, [](T x, T y) { return x <= y; });
}
Tensor<bool> operator&(const Tensor<bool>& a, const Tensor<bool>& b) {
  return map<bool>("&", a, b, [](bool x, bool y) { return x && y; });
}
Tensor<bool> operator|(const Tensor<bool>& a, const Tensor<bool>& b) {
  return map<bool>("|", a, b, [](bool x, bool y) { return x || y; });
}
Tensor<bool> operator~(const Tensor<bool>& x) {
  return map<bool>("~", x, [](bool v) { return !v; });
}

namespace {
bool all(const Tensor<bool>& x) {
  bool every = true;
  for (bool v : x.to_vector()) every &= v;
  return every;
}
}  // namespace

template <class E>
bool equal(const Tensor<E>& a, const Tensor<E>& b) {
  return a.shape() == b.shape() && all(map<bool>("equal", a, b, [](E x, E y) { return x == y; }));
}

template <std::floating_point T>
bool allclose(const Tensor<T>& a, const Tensor<T>& b, double rtol, double atol) {
  return all(map<bool>("allclose", a, b, [rtol, atol](T x, T y) {
    return x == y || std::abs(static_cast<double>(x) - static_cast<double>(y)) <=
                         atol + rtol * std::abs(static_cast<double>(y));
  }));
}

template <class To, class From>
Tensor<To> to(const Tensor<From>& x) {
  if constexpr (std::is_floating_point_v<From>) {
    if (is_recorded(x))
      throw GradientError(fmt::format(
          "to<{}>: a tape knows this tensor of shape {}, and its gradient would be lost; detach(x) "
          "first, or convert before watching",
          dtype_name<To>(), x.shape().str()));
  }
  return detail::cast<To>(x);
}

// clang-format off
#define TAPEHEAD_REAL(T)                                                                        \
  template Tensor<T> div(const Tensor<T>&, const Tensor<T>&);                                   \
  template Tensor<T> div<T>(const Tensor<T>&, std::type_identity_t<T>);                         \
  template Tensor<T> maximum(const Tensor<T>&, const Tensor<T>&);                               \
  template Tensor<T> minimum(const Tensor<T>&, const Tensor<T>&);                               \
  template Tensor<T> pow(const Tensor<T>&, const Tensor<T>&);                                   \
  template Tensor<T> pow<T>(const Tensor<T>&, std::type_identity_t<T>);                         \
  template bool allclose(const Tensor<T>&, const Tensor<T>&, double, double);
#define TAPEHEAD_NUMBER(T)                                                                      \
  template Tensor<T> add(const Tensor<T>&, const Tensor<T>&);                                   \
  template Tensor<T> sub(const Tensor<T>&, const Tensor<T>&);                                   \
  template Tensor<T> mul(const Tensor<T>&, const Tensor<T>&);                                   \
  template Tensor<T> neg(const Tensor<T>&);                                                     \
  template Tensor<T> add<T>(const Tensor<T>&, std::type_identity_t<T>);                         \
  template Tensor<T> mul<T>(const Tensor<T>&, std::type_identity_t<T>);                         \
  template Tensor<bool> lt(const Tensor<T>&, const Tensor<T>&);                                 \
  template Tensor<bool> le(const Tensor<T>&, const Tensor<T>&);
#define TAPEHEAD_ANY(E)                                                                         \
  template Tensor<bool> eq(const Tensor<E>&, const Tensor<E>&);                                 \
  template Tensor<bool> ne(const Tensor<E>&, const Tensor<E>&);                                 \
  template bool equal(const Tensor<E>&, const Tensor<E>&);                                      \
  template Tensor<float> to<float>(const Tensor<E>&);                                           \
  template Tensor<double> to<double>(const Tensor<E>&);                                         \
  template Tensor<bool> to<bool>(const Tensor<E>&);                                             \
  template Tensor<std::int64_t> to<std::int64_t>(const Tensor<E>&);
TAPEHEAD_REAL(float) TAPEHEAD_REAL(double)
TAPEHEAD_NUMBER(float) TAPEHEAD_NUMBER(double) TAPEHEAD_NUMBER(std::int64_t)
TAPEHEAD_ANY(float) TAPEHEAD_ANY(double) TAPEHEAD_ANY(bool) TAPEHEAD_ANY(std::int64_t)
// clang-format on

}  // namespace tapehead
