#include "tapehead/ops/math.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tensor/elementwise.hpp"
#include "kernels/gelu.hpp"
#include "kernels/parallel.hpp"
#include "kernels/vmath.hpp"
#include "autograd/recorded.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

using detail::map;
using detail::map_runs;
using detail::nobody_records;

const Op exp_op{"exp", "y = exp(x)", "dx = dy y"};
template <std::floating_point T>
Tensor<T> exp(const Tensor<T>& x) {
  auto y = map_runs("exp", x, kernels::exp_n<T>);
  return record(exp_op, y, wrt(x, [y](const auto& dy) { return dy * y; }));
}

const Op log_op{"log", "y = log(x)", "dx = dy / x"};
template <std::floating_point T>
Tensor<T> log(const Tensor<T>& x) {
  auto y = map_runs("log", x, kernels::log_n<T>);
  return record(log_op, std::move(y), wrt(x, [x](const auto& dy) { return dy / x; }));
}

const Op sqrt_op{"sqrt", "y = √x", "dx = dy / 2y"};
template <std::floating_point T>
Tensor<T> sqrt(const Tensor<T>& x) {
  auto y = map<T>("sqrt", x, [](T v) { return std::sqrt(v); });
  return record(sqrt_op, y, wrt(x, [y](const auto& dy) { return dy / (y * 2); }));
}

const Op abs_op{"abs", "y = |x|", "dx = dy sign(x)"};
template <std::floating_point T>
Tensor<T> abs(const Tensor<T>& x) {
  auto y = map<T>("abs", x, [](T v) { return std::abs(v); });
  return record(
      abs_op, std::move(y), wrt(x, [x](const auto& dy) {
        return dy * map<T>("sign", x, [](T v) { return v > 0 ? T{1} : v < 0 ? T{-1} : v == 0 ? T{0} : v; });
      }));
}

const Op tanh_op{"tanh", "y = tanh(x)", "dx = dy (1 - y²)"};
template <std::floating_point T>
Tensor<T> tanh(const Tensor<T>& x) {
  auto y = map_runs("tanh", x, kernels::tanh_n<T>);
  return record(tanh_op, y, wrt(x, [y](const auto& dy) { return dy * (1 - y * y); }));
}

const Op erf_op{"erf", "y = erf(x)", "dx = dy 2/√π exp(-x²)"};
template <std::floating_point T>
Tensor<T> erf(const Tensor<T>& x) {
  auto y = map_runs("erf", x, kernels::erf_n<T>);
  return record(erf_op, std::move(y),
                wrt(x, [x](const auto& dy) { return dy * exp(-(x * x)) * (2 * std::numbers::inv_sqrtpi); }));
}

const Op sigmoid_op{"sigmoid", "y = 1 / (1 + exp(-x))", "dx = dy y (1 - y)"};
template <std::floating_point T>
Tensor<T> sigmoid(const Tensor<T>& x) {
  auto y = map_runs("sigmoid", x, kernels::sigmoid_n<T>);
  return record(sigmoid_op, y, wrt(x, [y](const auto& dy) { return dy * y * (1 - y); }));
}

const Op relu_op{"relu", "y = max(x, 0)", "dx = dy [x > 0]"};
template <std::floating_point T>
Tensor<T> relu(const Tensor<T>& x) {
  auto y = map<T>("relu", x, [](T v) { return v <= 0 ? T{0} : v; });  // NaN is not <= 0 and stays
  return record(relu_op, std::move(y), wrt(x, [x](const auto& dy) { return masked_fill(dy, x <= 0, 0); }));
}

namespace {

// Φ(x) + x Φ'(x), written in recorded operations. x is kept finite where Φ' is 0 anyway: ∞ · 0 would be NaN.
template <class T>
Tensor<T> gelu_slope(const Tensor<T>& x) {
  const Tensor<T> near = clamp(x, -40, 40);
  const Tensor<T> bell = exp(near * near * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return (erf(x / std::numbers::sqrt2) + 1) * 0.5 + near * bell;
}

// dy times that slope, unrecorded.
template <class T>
Tensor<T> gelu_pulled(const Tensor<T>& x, const Tensor<T>& dy) {
  const Tensor<T> from = contiguous(x), arriving = contiguous(dy);
  Buffer<T> dx(x.shape(), "gelu");
  kernels::parallel_pieces(x.numel(), 16, [&](std::int64_t i, std::int64_t n) {
    kernels::gelu_pull_n(n, from.data() + i, arriving.data() + i, dx.data() + i);
  });
  return dx;
}

constexpr double tanh_scale = 2 * std::numbers::inv_sqrtpi / std::numbers::sqrt2;  // √(2/π)
constexpr double tanh_cubic = 0.044715;

// d/dx of ½ x (1 + tanh u), u = √(2/π) (x + 0.044715 x³): ½ (1 + t) + ½ x (1 - t²) u'.
template <class T>
Tensor<T> gelu_tanh_slope(const Tensor<T>& x) {
  const Tensor<T> near = clamp(x, -40, 40), square = near * near;
  const Tensor<T> t = tanh((near + near * square * tanh_cubic) * tanh_scale);
  const Tensor<T> du = (square * (3 * tanh_cubic) + 1) * tanh_scale;
  return (t + 1) * 0.5 + near * (1 - t * t) * du * 0.5;
}

// x σ(f(x)); where σ is 0 its limit is 0, also for x = -∞, where the product would be NaN.
template <class T, class F>
Tensor<T> gated(const Tensor<T>& x, const F& f) {
  return map_runs("gate", x, [f](std::int64_t n, const T* in, T* out) {
    constexpr std::int64_t piece = 512;
    T gate[piece];
    for (std::int64_t start = 0; start < n; start += piece) {
      const std::int64_t size = std::min(piece, n - start);
      for (std::int64_t i = 0; i < size; ++i) gate[i] = f(in[start + i]);
      kernels::sigmoid_n(size, gate, gate);
      for (std::int64_t i = 0; i < size; ++i) out[start + i] = gate[i] == 0 ? -T{0} : in[start + i] * gate[i];
    }
  });
}

}  // namespace

const Op gelu_op{"gelu", "y = x Φ(x)", "dx = dy (Φ(x) + x Φ'(x))"};
const Op gelu_tanh_op{"gelu_tanh", "y = ½ x (1 + tanh u), u = √(2/π) (x + 0.044715 x³)",
                      "dx = dy (½ (1 + t) + ½ x (1 - t²) u'), t = tanh u"};
template <std::floating_point T>
Tensor<T> gelu(const Tensor<T>& x, Gelu form) {
  if (form == Gelu::erf) {
    auto y = map_runs("gelu", x, kernels::gelu_n<T>);
    return record(gelu_op, std::move(y), wrt(x, [x](const auto& dy) {
                    return nobody_records(x, dy) ? gelu_pulled(x, dy) : dy * gelu_slope(x);
                  }));
  }
  // ½ (1 + tanh u) is σ(2u), which keeps its digits where tanh u is near -1.
  auto y = gated(x, [](T v) { return T(2 * tanh_scale) * (v + T(tanh_cubic) * v * v * v); });
  return record(gelu_tanh_op, std::move(y), wrt(x, [x](const auto& dy) { return dy * gelu_tanh_slope(x); }));
}

const Op silu_op{"silu", "y = x σ(x)", "dx = dy σ(x) (1 + x (1 - σ(x)))"};
template <std::floating_point T>
Tensor<T> silu(const Tensor<T>& x) {
  auto y = gated(x, [](T v) { return v; });
  return record(silu_op, std::move(y), wrt(x, [x](const auto& dy) {
                  const auto s = sigmoid(x);
                  return dy * s * (x * (1 - s) + 1);
                }));
}

const Op clamp_op{"clamp", "y = min(max(x, low), high)", "dx = dy [low <= x <= high]"};
template <std::floating_point T>
Tensor<T> clamp(const Tensor<T>& x, std::type_identity_t<T> low, std::type_identity_t<T> high) {
  if (!(low <= high))
    throw ValueError(fmt::format("clamp: low {} and high {}; low must not be above high", low, high));
  auto y = map<T>("clamp", x, [low, high](T v) { return v < low ? low : v > high ? high : v; });
  return record(clamp_op, std::move(y), wrt(x, [x, low, high](const auto& dy) {
                  return masked_fill(dy, (x < low) | (x > high), 0);
                }));
}

// clang-format off
#define TAPEHEAD_MATH(T)                                                                           \
  template Tensor<T> exp(const Tensor<T>&);     template Tensor<T> log(const Tensor<T>&);          \
  template Tensor<T> sqrt(const Tensor<T>&);    template Tensor<T> abs(const Tensor<T>&);          \
  template Tensor<T> tanh(const Tensor<T>&);    template Tensor<T> erf(const Tensor<T>&);          \
  template Tensor<T> sigmoid(const Tensor<T>&); template Tensor<T> relu(const Tensor<T>&);         \
  template Tensor<T> gelu(const Tensor<T>&, Gelu); template Tensor<T> silu(const Tensor<T>&);      \
  template Tensor<T> clamp<T>(const Tensor<T>&, std::type_identity_t<T>, std::type_identity_t<T>);
TAPEHEAD_MATH(float) TAPEHEAD_MATH(double)
// clang-format on

}  // namespace tapehead
