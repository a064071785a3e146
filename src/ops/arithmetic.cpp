#include "tapehead/ops/arithmetic.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "autograd/recorded.hpp"
#include "kernels/require.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/select.hpp"
#include "tensor/copy.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

using detail::map;
using detail::recorded;
using detail::wrapped;

const Op sub_op{"sub", "c = a - b", "da = dc, db = -dc", "broadcast"};
template <class T> Numeric<T> sub(const Tensor<T>& a, const Like<T>& b) {
  auto c = map<T>("sub", a, b, [](T x, T y) { return wrapped(x, y, [](auto u, auto v) { return u - v; }); });
  return recorded(sub_op, std::move(c), wrt(a, [](const auto& dc) { return dc; }),
                  wrt(b, [](const auto& dc) { return -dc; }));
}

const Op mul_op{"mul", "c = a b", "da = dc b, db = dc a", "broadcast"};
template <class T> Numeric<T> mul(const Tensor<T>& a, const Like<T>& b) {
  auto c = map<T>("mul", a, b, [](T x, T y) { return wrapped(x, y, [](auto u, auto v) { return u * v; }); });
  const auto pullback = [](const auto& dc, const auto& other) { return dc * other; };
  return recorded(mul_op, std::move(c), wrt(a, pullback, b), wrt(b, pullback, a));
}

const Op div_op{"div", "c = a / b", "da = dc / b, db = -dc c / b", "broadcast"};
template <class T> Real<T> div(const Tensor<T>& a, const Like<T>& b) {
  const auto c = map<T>("div", a, b, [](T x, T y) { return x / y; });
  const auto into_a = [](const auto& dc, const auto& divisor) { return dc / divisor; };
  const auto into_b = [](const auto& dc, const auto& divisor, const auto& ratio) { return -(dc * ratio / divisor); };
  return record(div_op, c, wrt(a, into_a, b), wrt(b, into_b, b, c));
}

const Op neg_op{"neg", "y = -x", "dx = -dy", "elementwise"};
template <class T> Numeric<T> neg(const Tensor<T>& x) {
  auto y = map<T>("neg", x, [](T v) { return wrapped(T{}, v, [](auto, auto u) { return -u; }); });
  return recorded(neg_op, std::move(y), wrt(x, [](const auto& dy) { return -dy; }));
}

const Op add_number_op{"add_number", "y = x + c", "dx = dy", "elementwise"};
template <class T> Numeric<T> add(const Tensor<T>& x, NumberFor<T> number) {
  const T c = number;
  auto y = map<T>("add", x, [c](T v) { return wrapped(v, c, [](auto a, auto b) { return a + b; }); });
  return recorded(add_number_op, std::move(y), wrt(x, [](const auto& dy) { return dy; }));
}

const Op mul_number_op{"mul_number", "y = s x", "dx = s dy", "elementwise"};
template <class T> Numeric<T> mul(const Tensor<T>& x, NumberFor<T> number) {
  const T s = number;
  auto y = map<T>("mul", x, [s](T v) { return wrapped(v, s, [](auto a, auto b) { return a * b; }); });
  return recorded(mul_number_op, std::move(y), wrt(x, [s](const auto& dy) { return dy * s; }));
}

const Op div_number_op{"div_number", "y = x / s", "dx = dy / s", "elementwise"};
template <class T> Real<T> div(const Tensor<T>& x, std::type_identity_t<T> s) {
  auto y = map<T>("div", x, [s](T v) { return v / s; });
  return record(div_number_op, std::move(y), wrt(x, [s](const auto& dy) { return dy / s; }));
}

namespace {

// max(a, b) and min(a, b). What one side of the gradient gets: all where it was chosen, half where both were equal.
template <class T> Tensor<T> extreme(const Op& op, const Tensor<T>& a, const Tensor<T>& b, bool larger) {
  const auto better = [larger](T x, T y) { return larger ? x > y : x < y; };
  auto c = map<T>(op.name, a, b, [=](T x, T y) { return better(x, y) || std::isnan(x) ? x : y; });
  const auto pullback = [better](const auto& dc, const auto& mine, const auto& other) {
    return dc * map<T>("share", mine, other, [better](T x, T y) {
             return x == y ? T(0.5) : better(x, y) ? T{1} : T{};
           });
  };
  return record(op, std::move(c), wrt(a, pullback, a, b), wrt(b, pullback, b, a));
}

}  // namespace

const Op maximum_op{"maximum", "c = max(a, b)", "da = dc [a > b] + ½ dc [a = b], db likewise", "broadcast"};
template <class T> Real<T> maximum(const Tensor<T>& a, const Like<T>& b) { return extreme(maximum_op, a, b, true); }

const Op minimum_op{"minimum", "c = min(a, b)", "da = dc [a < b] + ½ dc [a = b], db likewise", "broadcast"};
template <class T> Real<T> minimum(const Tensor<T>& a, const Like<T>& b) { return extreme(minimum_op, a, b, false); }

// Where a = 0, both formulas may be 0 · ∞. As in PyTorch da is 0 at b = 0, where c does not depend on a, and db is 0
// for b >= 0, the limit for b > 0. The argument is replaced, and not the result, so that no NaN comes back through it.
const Op pow_op{"pow", "c = aᵇ", "da = dc b aᵇ⁻¹, db = dc c log a", "broadcast"};
template <class T> Real<T> pow(const Tensor<T>& a, const Like<T>& b) {
  const auto c = map<T>("pow", a, b, [](T x, T y) { return std::pow(x, y); });
  const auto into_a = [](const auto& dc, const auto& base, const auto& exponent) {
    const auto constant = (base == 0) & (exponent == 0);
    return dc * exponent * pow(base, where(constant, T{1}, exponent) - 1);
  };
  const auto into_b = [](const auto& dc, const auto& base, const auto& exponent, const auto& power) {
    const auto vanishes = (power == 0) | ((base == 0) & (exponent >= 0));
    return dc * power * log(where(vanishes, T{1}, base));
  };
  return record(pow_op, c, wrt(a, into_a, a, b), wrt(b, into_b, a, b, c));
}

const Op pow_number_op{"pow_number", "y = xᵖ", "dx = p dy xᵖ⁻¹", "elementwise"};
template <class T> Real<T> pow(const Tensor<T>& x, std::type_identity_t<T> p) {
  auto y =
      p == T{2} ? map<T>("pow", x, [](T v) { return v * v; }) : map<T>("pow", x, [p](T v) { return std::pow(v, p); });
  const auto pullback = [p](const auto& dy, const auto& at) {
    return p == T{0} ? zeros_like(dy) : p == T{1} ? dy : p == T{2} ? dy * (at * 2) : dy * (pow(at, p - 1) * p);
  };
  return record(pow_number_op, std::move(y), wrt(x, pullback, x));
}

template <class T> Tensor<bool> eq(const Tensor<T>& a, const Like<T>& b) {
  return map<bool>("eq", a, b, [](T x, T y) { return x == y; });
}
template <class T> Tensor<bool> ne(const Tensor<T>& a, const Like<T>& b) {
  return map<bool>("ne", a, b, [](T x, T y) { return x != y; });
}
template <class T> Numeric<T, Tensor<bool>> lt(const Tensor<T>& a, const Like<T>& b) {
  return map<bool>("lt", a, b, [](T x, T y) { return x < y; });
}
template <class T> Numeric<T, Tensor<bool>> le(const Tensor<T>& a, const Like<T>& b) {
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

template <class E> bool equal(const Tensor<E>& a, const Like<E>& b) {
  return a.shape() == b.shape() && all(eq(a, b)).item();
}

template <class T>
Real<T, bool> allclose(const Tensor<T>& a, const Like<T>& b, double rtol, double atol, bool equal_nan) {
  const auto close = map<bool>("allclose", a, b, [=](T left, T right) {
    const auto x = static_cast<double>(left), y = static_cast<double>(right);
    return x == y || (std::isfinite(y) && std::abs(x - y) <= atol + rtol * std::abs(y)) ||
           (equal_nan && std::isnan(x) && std::isnan(y));
  });
  return all(close).item();
}

template <class To, class From> Tensor<To> to(const Tensor<From>& x) {
  if constexpr (std::is_floating_point_v<From>)
    require<GradientError>(!is_recorded(x),
                           "to<{}>: a tape knows this tensor of shape {}, and its gradient would be lost; detach(x) "
                           "first, or convert before watching",
                           dtype_name<To>(), x.shape());
  return detail::cast<To>(x);
}

template <class T> Tensor<T>& detail::rebind(const char* op, Tensor<T>& w, Tensor<T> result) {
  require<ShapeError>(result.shape() == w.shape(),
                      "{}: shape {} would become {}; sum or reshape the right side to w's shape, or write w = w {} …",
                      op, w.shape(), result.shape(), op[0]);
  return w = std::move(result);
}

// clang-format off
#define TAPEHEAD_REAL(T)                                                                        \
  template Tensor<T> div(const Tensor<T>&, const Tensor<T>&);                                   \
  template Tensor<T> div<T>(const Tensor<T>&, std::type_identity_t<T>);                         \
  template Tensor<T> maximum(const Tensor<T>&, const Tensor<T>&);                               \
  template Tensor<T> minimum(const Tensor<T>&, const Tensor<T>&);                               \
  template Tensor<T> pow(const Tensor<T>&, const Tensor<T>&);                                   \
  template Tensor<T> pow<T>(const Tensor<T>&, std::type_identity_t<T>);                         \
  template bool allclose(const Tensor<T>&, const Tensor<T>&, double, double, bool);
#define TAPEHEAD_NUMBER(T)                                                                      \
  template Tensor<T> sub(const Tensor<T>&, const Tensor<T>&);                                   \
  template Tensor<T> mul(const Tensor<T>&, const Tensor<T>&);                                   \
  template Tensor<T>& detail::rebind(const char*, Tensor<T>&, Tensor<T>);                       \
  template Tensor<T> neg(const Tensor<T>&);                                                     \
  template Tensor<T> add<T>(const Tensor<T>&, NumberFor<T>);                         \
  template Tensor<T> mul<T>(const Tensor<T>&, NumberFor<T>);                         \
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
TAPEHEAD_REALS(TAPEHEAD_REAL)
TAPEHEAD_REALS(TAPEHEAD_NUMBER) TAPEHEAD_NUMBER(std::int64_t)
TAPEHEAD_ELEMENTS(TAPEHEAD_ANY)
// clang-format on

}  // namespace tapehead
