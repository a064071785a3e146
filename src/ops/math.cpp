#include "tapehead/ops/math.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/gelu.hpp"
#include "kernels/parallel.hpp"
#include "kernels/require.hpp"
#include "kernels/vmath.hpp"
#include "tapehead/autograd/record.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/ops/views.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

using detail::map;
using detail::map_runs;

// Every derivative here keeps its digits where it is small (relative error at most 8 units in the last place), so it is
// written without subtracting numbers that are nearly equal: σ(x) σ(-x), not y (1 - y).

const Op exp_op{"exp", "y = exp(x)", "dx = dy y", "elementwise"};
template <class T> Real<T> exp(const Tensor<T>& x) {
  const auto y = map_runs("exp", x, kernels::exp_n<T>);
  const auto pullback = [](const auto& dy, const auto& result) { return dy * result; };
  return record(exp_op, y, wrt(x, pullback, y));
}

const Op expm1_op{"expm1", "y = exp(x) - 1", "dx = dy exp(x)", "elementwise"};
template <class T> Real<T> expm1(const Tensor<T>& x) {
  const auto pullback = [](const auto& dy, const auto& at) { return dy * exp(at); };
  return record(expm1_op, map<T>("expm1", x, [](T v) { return std::expm1(v); }), wrt(x, pullback, x));
}

const Op log_op{"log", "y = log(x)", "dx = dy / x", "elementwise"};
template <class T> Real<T> log(const Tensor<T>& x) {
  const auto pullback = [](const auto& dy, const auto& at) { return dy / at; };
  return record(log_op, map_runs("log", x, kernels::log_n<T>), wrt(x, pullback, x));
}

const Op log1p_op{"log1p", "y = log(1 + x)", "dx = dy / (1 + x)", "elementwise"};
template <class T> Real<T> log1p(const Tensor<T>& x) {
  const auto pullback = [](const auto& dy, const auto& at) { return dy / (at + 1); };
  return record(log1p_op, map<T>("log1p", x, [](T v) { return std::log1p(v); }), wrt(x, pullback, x));
}

const Op sqrt_op{"sqrt", "y = √x", "dx = dy / 2y", "elementwise"};
template <class T> Real<T> sqrt(const Tensor<T>& x) {
  const auto y = map<T>("sqrt", x, [](T v) { return std::sqrt(v); });
  const auto pullback = [](const auto& dy, const auto& root) { return dy / (root * 2); };
  return record(sqrt_op, y, wrt(x, pullback, y));
}

const Op abs_op{"abs", "y = |x|", "dx = dy sign(x)", "elementwise"};
template <class T> Real<T> abs(const Tensor<T>& x) {
  const auto pullback = [](const auto& dy, const auto& at) {
    return dy * map<T>("sign", at, [](T v) { return v > 0 ? T{1} : v < 0 ? T{-1} : v == 0 ? T{0} : v; });
  };
  return record(abs_op, map<T>("abs", x, [](T v) { return std::abs(v); }), wrt(x, pullback, x));
}

const Op sin_op{"sin", "y = sin(x)", "dx = dy cos(x)", "elementwise"};
template <class T> Real<T> sin(const Tensor<T>& x) {
  const auto pullback = [](const auto& dy, const auto& at) { return dy * cos(at); };
  return record(sin_op, map<T>("sin", x, [](T v) { return std::sin(v); }), wrt(x, pullback, x));
}

const Op cos_op{"cos", "y = cos(x)", "dx = -dy sin(x)", "elementwise"};
template <class T> Real<T> cos(const Tensor<T>& x) {
  const auto pullback = [](const auto& dy, const auto& at) { return -(dy * sin(at)); };
  return record(cos_op, map<T>("cos", x, [](T v) { return std::cos(v); }), wrt(x, pullback, x));
}

// tanh(x/2) is σ(x) - σ(-x) without the subtraction.
const Op sigmoid_backward_op{"sigmoid_backward", "dx = dy σ(x) σ(-x)",
                             "for u arriving: d(dy) = u σ(x) σ(-x), dx = -u dy σ(x) σ(-x) tanh(x/2)", "elementwise"};
template <class T> Tensor<T> sigmoid_backward(const Tensor<T>& x, const Tensor<T>& dy) {
  const Tensor<T> at = detach(x);
  auto dx = detach(dy) * (sigmoid(at) * sigmoid(-at));
  const auto into_dy = [](const auto& u, const auto& value) { return sigmoid_backward(value, u); };
  const auto into_x = [](const auto& u, const auto& value, const auto& arrived) {
    return -(sigmoid_backward(value, u * arrived) * tanh(value * 0.5));
  };
  return record(sigmoid_backward_op, std::move(dx), wrt(dy, into_dy, x), wrt(x, into_x, x, dy));
}

const Op tanh_op{"tanh", "y = tanh(x)", "dx = dy 4 σ(2x) σ(-2x) = dy (1 - y²)", "elementwise"};
template <class T> Real<T> tanh(const Tensor<T>& x) {
  const auto pullback = [](const auto& dy, const auto& at) { return sigmoid_backward(at * 2, dy * 4); };
  return record(tanh_op, map_runs("tanh", x, kernels::tanh_n<T>), wrt(x, pullback, x));
}

const Op sigmoid_op{"sigmoid", "y = σ(x) = 1 / (1 + exp(-x))", "dx = dy σ(x) σ(-x)", "elementwise"};
template <class T> Real<T> sigmoid(const Tensor<T>& x) {
  const auto pullback = [](const auto& dy, const auto& at) { return sigmoid_backward(at, dy); };
  return record(sigmoid_op, map_runs("sigmoid", x, kernels::sigmoid_n<T>), wrt(x, pullback, x));
}

// x² = square + low exactly, so that no rounding of the exponent is multiplied by its size.
const Op gaussian_op{"gaussian", "y = g exp(-a x²)", "dg = dy exp(-a x²), dx = -2 a x dy y", "elementwise"};
template <class T> Tensor<T> gaussian(const Tensor<T>& x, const Tensor<T>& g, double a) {
  auto y = map<T>("gaussian", x, g, [a](T v, T factor) {
    const auto wide = static_cast<double>(v), square = wide * wide, low = std::fma(wide, wide, -square);
    const double bell = std::isinf(square) ? 0 : std::exp(-a * square) * (1 - a * low);
    return static_cast<T>(static_cast<double>(factor) * bell);
  });
  const auto into_g = [a](const auto& dy, const auto& at) { return gaussian(at, dy, a); };
  const auto into_x = [a](const auto& dy, const auto& at, const auto& factor) {
    return gaussian(at, dy * factor, a) * at * (-2 * a);
  };
  return record(gaussian_op, std::move(y), wrt(g, into_g, x), wrt(x, into_x, x, g));
}

const Op erf_op{"erf", "y = erf(x)", "dx = dy 2/√π exp(-x²)", "elementwise"};
template <class T> Real<T> erf(const Tensor<T>& x) {
  const auto pullback = [](const auto& dy, const auto& at) {
    return gaussian(at, dy * (2 * std::numbers::inv_sqrtpi), 1);
  };
  return record(erf_op, map_runs("erf", x, kernels::erf_n<T>), wrt(x, pullback, x));
}

const Op relu_op{"relu", "y = max(x, 0)", "dx = dy [x > 0]", "elementwise"};
template <class T> Real<T> relu(const Tensor<T>& x) {
  auto y = map<T>("relu", x, [](T v) { return v <= 0 ? T{0} : v; });  // NaN is not <= 0 and stays
  const auto pullback = [](const auto& dy, const auto& at) { return masked_fill(dy, at <= 0, 0); };
  return record(relu_op, std::move(y), wrt(x, pullback, x));
}

// ---- gelu: x Φ(x). Its second derivative is Φ'(x) (2 - x²), Φ' the normal density.

const Op gelu_backward_op{"gelu_backward", "dx = dy (Φ(x) + x Φ'(x))",
                          "for u arriving: d(dy) = u (Φ(x) + x Φ'(x)), dx = u dy Φ'(x) (2 - x²)", "elementwise"};
template <class T> Tensor<T> gelu_backward(const Tensor<T>& x, const Tensor<T>& dy) {
  const Tensor<T> from = contiguous(detach(x)), arriving = contiguous(detach(dy));
  Buffer<T> dx(x.shape(), "gelu_backward");
  kernels::parallel_pieces(x.numel(), 16, [&](std::int64_t i, std::int64_t n) {
    kernels::gelu_pull_n(n, from.data() + i, arriving.data() + i, dx.data() + i);
  });
  const auto into_dy = [](const auto& u, const auto& at) { return gelu_backward(at, u); };
  const auto into_x = [](const auto& u, const auto& at, const auto& arrived) {
    const auto near = clamp(at, -40, 40);  // beyond, the density is 0, and ∞ · 0 would be NaN
    const auto density = gaussian(near, u * arrived, 0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    return density * (2 - near * near);
  };
  return record(gelu_backward_op, Tensor<T>(std::move(dx)), wrt(dy, into_dy, x), wrt(x, into_x, x, dy));
}

// ---- gates: y = x σ(v), v = x for silu and v = 2u for gelu's approximation, because ½ (1 + tanh u) is σ(2u), which
// keeps its digits where tanh u is near -1.

struct SiluGate {
  template <class N> static N value(const N& x) { return x; }
  template <class N> static N slope(const N& x) { return x * 0 + 1; }
  template <class N> static N curvature(const N& x) { return x * 0; }
};
struct TanhGate {  // v = 2 √(2/π) (x + 0.044715 x³)
  template <class N> using Constant =
      typename std::conditional_t<std::is_arithmetic_v<N>, std::type_identity<N>, std::type_identity<double>>::type;
  template <class N> static constexpr auto scale =
      2 * std::numbers::sqrt2_v<Constant<N>>* std::numbers::inv_sqrtpi_v<Constant<N>>;
  template <class N> static constexpr auto cubic = static_cast<Constant<N>>(0.044715L);
  template <class N> static N value(const N& x) { return x * (x * x * cubic<N> + 1) * scale<N>; }
  template <class N> static N slope(const N& x) { return (x * x * (3 * cubic<N>)+1) * scale<N>; }
  template <class N> static N curvature(const N& x) { return x * (6 * cubic<N> * scale<N>); }
};

// Where σ is 0 the limit is 0, also for x = -∞, where the product would be NaN.
template <class Gate, class T> Tensor<T> gated(const char* op, const Tensor<T>& x) {
  return map_runs(op, x, [](std::int64_t n, const T* in, T* out) {
    constexpr std::int64_t piece = 512;
    T gate[piece];
    for (std::int64_t start = 0; start < n; start += piece) {
      const std::int64_t size = std::min(piece, n - start);
      for (std::int64_t i = 0; i < size; ++i) gate[i] = Gate::value(in[start + i]);
      kernels::sigmoid_n(size, gate, gate);
      for (std::int64_t i = 0; i < size; ++i) out[start + i] = gate[i] == 0 ? -T{0} : in[start + i] * gate[i];
    }
  });
}

const Op gate_backward_op{"gate_backward", "dx = dy σ(v) (1 + x σ(-v) v')",
                          "for u arriving: d(dy) = u σ(v) (1 + x σ(-v) v'), "
                          "dx = u dy σ(v) σ(-v) (2 v' + x (v'² (σ(-v) - σ(v)) + v''))",
                          "elementwise"};
template <class Gate, class T> Tensor<T> gate_backward(const Tensor<T>& x, const Tensor<T>& dy) {
  // Float is computed in double: the derivative crosses 0, where a sum in float would have no digits left. And an error
  // of v is multiplied by |v|, so double takes v from long double, as gate + low.
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  const auto run = [](std::int64_t n, char* const* p, const void*) {
    const T *in = reinterpret_cast<const T*>(p[1]), *arriving = reinterpret_cast<const T*>(p[2]);
    T* out = reinterpret_cast<T*>(p[0]);
    constexpr std::int64_t piece = 256;
    double at[piece], gate[piece], low[piece], smaller[piece];  // smaller: σ(-|v|), of σ(v) and σ(-v)
    for (std::int64_t start = 0; start < n; start += piece) {
      const std::int64_t size = std::min(piece, n - start);
      for (std::int64_t i = 0; i < size; ++i) {
        at[i] = std::clamp(static_cast<double>(in[start + i]), -1000.0, 60.0);  // beyond, the result is 0 or dy
        const Wide v = Gate::value(static_cast<Wide>(at[i]));
        gate[i] = static_cast<double>(v);
        low[i] = static_cast<double>(v - static_cast<Wide>(gate[i]));
        smaller[i] = -std::abs(gate[i]);
      }
      kernels::sigmoid_n(size, smaller, smaller);
      for (std::int64_t i = 0; i < size; ++i) {
        const double t = smaller[i], step = t * (1 - t) * low[i];
        const double s = (gate[i] < 0 ? t : 1 - t) + step, rest = (gate[i] < 0 ? 1 - t : t) - step;
        const double rise = 1 + at[i] * rest * Gate::slope(at[i]);
        // Where σ is below the normal numbers its digits are kept by a detour through e^(v + 400).
        const double slope =
            gate[i] > -650 ? s * rise : std::exp(gate[i] + 400) * (1 + low[i]) * rise * std::exp(-400.0);
        out[start + i] = static_cast<T>(static_cast<double>(arriving[start + i]) * slope);
      }
    }
  };
  const auto into_dy = [](const auto& u, const auto& value) { return gate_backward<Gate>(value, u); };
  const auto into_x = [](const auto& u, const auto& value, const auto& arrived) {
    const auto near = clamp(value, -1000, 1000), v = Gate::value(near), slope = Gate::slope(near);
    const auto s = sigmoid(v), rest = sigmoid(-v);
    return u * arrived * (s * rest * (slope * 2 + near * (slope * slope * (rest - s) + Gate::curvature(near))));
  };
  return record(gate_backward_op, detail::mapped<T>("gate_backward", {x, dy}, run, nullptr), wrt(dy, into_dy, x),
                wrt(x, into_x, x, dy));
}

const Op gelu_op{"gelu", "y = x Φ(x)", "dx = dy (Φ(x) + x Φ'(x))", "elementwise"};
const Op gelu_tanh_op{"gelu_tanh", "y = ½ x (1 + tanh u) = x σ(2u), u = √(2/π) (x + 0.044715 x³)",
                      "dx = dy σ(2u) (1 + 2 x σ(-2u) u')", "elementwise"};
template <class T> Real<T> gelu(const Tensor<T>& x, Gelu form) {
  const auto by_gate = [](const auto& dy, const auto& at) { return gate_backward<TanhGate>(at, dy); };
  if (form == Gelu::tanh) return record(gelu_tanh_op, gated<TanhGate>("gelu", x), wrt(x, by_gate, x));
  const auto pullback = [](const auto& dy, const auto& at) { return gelu_backward(at, dy); };
  return record(gelu_op, map_runs("gelu", x, kernels::gelu_n<T>), wrt(x, pullback, x));
}

const Op silu_op{"silu", "y = x σ(x)", "dx = dy σ(x) (1 + x σ(-x))", "elementwise"};
template <class T> Real<T> silu(const Tensor<T>& x) {
  const auto pullback = [](const auto& dy, const auto& at) { return gate_backward<SiluGate>(at, dy); };
  return record(silu_op, gated<SiluGate>("silu", x), wrt(x, pullback, x));
}

const Op softplus_op{"softplus", "y = log(1 + exp(β x)) / β, x where β x > threshold",
                     "dx = dy σ(β x), dy where β x > threshold", "elementwise"};
template <class T> Real<T> softplus(const Tensor<T>& x, double b, double threshold) {
  require<ValueError>(b > 0, "softplus: beta {}; it must be above 0", b);
  const T beta = static_cast<T>(b), last = static_cast<T>(threshold);
  auto y = map<T>("softplus", x, [beta, last](T v) {
    const T at = beta * v;
    return at > last ? v : ((at < 0 ? 0 : at) + std::log1p(std::exp(-std::abs(at)))) / beta;
  });
  const auto pullback = [beta, last](const auto& dy, const auto& at) {
    return where(at * beta > last, dy, dy * sigmoid(at * beta));
  };
  return record(softplus_op, std::move(y), wrt(x, pullback, x));
}

const Op clamp_op{"clamp", "y = min(max(x, low), high)", "dx = dy [low <= x <= high]", "elementwise"};
template <class T> Real<T> clamp(const Tensor<T>& x, std::type_identity_t<T> low, std::type_identity_t<T> high) {
  require<ValueError>(low <= high, "clamp: low {} and high {}; low must not be above high", low, high);
  auto y = map<T>("clamp", x, [low, high](T v) { return v < low ? low : v > high ? high : v; });
  const auto pullback = [low, high](const auto& dy, const auto& at) {
    return masked_fill(dy, (at < low) | (at > high), 0);
  };
  return record(clamp_op, std::move(y), wrt(x, pullback, x));
}

template <class T> Real<T, Tensor<bool>> isnan(const Tensor<T>& x) {
  return map<bool>("isnan", x, [](T v) { return v != v; });
}
template <class T> Real<T, Tensor<bool>> isfinite(const Tensor<T>& x) {
  return map<bool>("isfinite", x, [](T v) { return v - v == 0; });
}

template <class T> Real<T> round(const Tensor<T>& x, int decimals) {
  double power = 1;
  for (int i = std::abs(std::clamp(decimals, -400, 400)); i > 0; --i) power *= 10;
  const auto scale = static_cast<T>(power);
  return map<T>("round", x, [scale, decimals](T v) {
    const T scaled = decimals < 0 ? v / scale : v * scale;
    if (!std::isfinite(scaled)) return v;
    if (decimals >= 0) return std::nearbyint(scaled) / scale;
    return scaled == 0 ? scaled : std::nearbyint(scaled) * scale;
  });
}

// clang-format off
#define TAPEHEAD_MATH(T)                                                                                \
  template Tensor<T> exp(const Tensor<T>&);      template Tensor<T> expm1(const Tensor<T>&);            \
  template Tensor<T> log(const Tensor<T>&);      template Tensor<T> log1p(const Tensor<T>&);            \
  template Tensor<T> sqrt(const Tensor<T>&);     template Tensor<T> abs(const Tensor<T>&);              \
  template Tensor<T> sin(const Tensor<T>&);      template Tensor<T> cos(const Tensor<T>&);              \
  template Tensor<T> tanh(const Tensor<T>&);     template Tensor<T> erf(const Tensor<T>&);              \
  template Tensor<T> sigmoid(const Tensor<T>&);  template Tensor<T> relu(const Tensor<T>&);             \
  template Tensor<T> gelu(const Tensor<T>&, Gelu); template Tensor<T> silu(const Tensor<T>&);           \
  template Tensor<T> clamp<T>(const Tensor<T>&, std::type_identity_t<T>, std::type_identity_t<T>);      \
  template Tensor<T> softplus(const Tensor<T>&, double, double);                                        \
  template Tensor<T> round(const Tensor<T>&, int);                                                      \
  template Tensor<bool> isnan(const Tensor<T>&); template Tensor<bool> isfinite(const Tensor<T>&);
TAPEHEAD_REALS(TAPEHEAD_MATH)
// clang-format on

}  // namespace tapehead
