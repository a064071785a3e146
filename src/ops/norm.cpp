#include "tapehead/ops/norm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/norm.hpp"
#include "kernels/parallel.hpp"
#include "autograd/recorded.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

using detail::joint;
using detail::nobody_records;

namespace {

template <class T>
using Maybe = std::optional<Tensor<T>>;

template <class T>
bool is_there(const Tensor<T>& x) {
  return x.header().storage != nullptr;
}

template <class T>
void check(const char* op, const Tensor<T>& x, const Maybe<T>& weight, const Maybe<T>& bias, double eps) {
  if (x.rank() == 0)
    throw ShapeError(fmt::format("{}: a zero-dimensional tensor; it normalises along the last axis", op));
  const auto fits = [&](const char* name, const Maybe<T>& row) {
    if (row && row->shape() != Shape{x.size(-1)})
      throw ShapeError(fmt::format("{}: a {} of shape {} for shape {}; it must be ({},)", op, name,
                                   row->shape().str(), x.shape().str(), x.size(-1)));
  };
  fits("weight", weight);
  fits("bias", bias);
  if (!(eps >= 0)) throw ValueError(fmt::format("{}: eps {}; it must not be negative", op, eps));
}

template <class T>
Tensor<T> normalised(const char* op, const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias,
                     double eps, bool centred) {
  const Tensor<T> from = contiguous(detach(x)), w = contiguous(detach(weight)), b = contiguous(detach(bias));
  const T *w_row = is_there(weight) ? w.data() : nullptr, *b_row = is_there(bias) ? b.data() : nullptr;
  Buffer<T> y(x.shape(), op);
  const std::int64_t n = x.size(-1), rows = n == 0 ? 0 : x.numel() / n, group = 16;
  kernels::parallel_for((rows + group - 1) / group, 4 * x.numel(), [&](std::int64_t k) {
    for (std::int64_t r = k * group; r < std::min(rows, (k + 1) * group); ++r)
      kernels::norm_row(n, from.data() + r * n, w_row, b_row, eps, centred, y.data() + r * n);
  });
  return y;
}

// The operation without a weight, x̂, recorded.
template <bool centred, class T>
Tensor<T> plain(const Tensor<T>& x, double eps) {
  if constexpr (centred)
    return layer_norm(x, {}, {}, eps);
  else
    return rms_norm(x, {}, eps);
}

const Op layer_norm_pull_op{"layer_norm_pull", "P(g) = (g - mean g - x̂ mean(g x̂)) / s, s = √(var x + ε)",
                            "dg = P(dy), dx = -(x̂ Σ dy P(g) + P(dy) Σ g x̂ + P(g) Σ dy x̂) / (n s)"};
const Op rms_norm_pull_op{"rms_norm_pull", "P(g) = (g - x̂ mean(g x̂)) / s, s = √(mean x² + ε)",
                          "dg = P(dy), dx = -(x̂ Σ dy P(g) + P(dy) Σ g x̂ + P(g) Σ dy x̂) / (n s)"};

// What goes back from dy = g through a row of x and its weight, in one pass and unrecorded: the gradients of
// x, weight and bias, those that are asked for. The last two are summed over groups of 64 rows, then these in
// order, whatever the number of threads.
struct Asked {
  bool x = true, weight = false, bias = false;
};
template <class T>
std::vector<Tensor<T>> pulled(const char* op, const Tensor<T>& x, const Tensor<T>& g, const Tensor<T>& weight,
                              double eps, bool centred, Asked asked = {}) {
  const Tensor<T> from = contiguous(detach(x)), dy = contiguous(detach(g)), w = contiguous(detach(weight));
  const T* row = is_there(weight) ? w.data() : nullptr;
  const std::int64_t n = x.size(-1), rows = n == 0 ? 0 : x.numel() / n, group = 64,
                     groups = (rows + group - 1) / group;
  Buffer<T> dx(asked.x ? x.shape() : Shape{0}, op);
  std::vector<double> dw(static_cast<std::size_t>(asked.weight ? groups * n : 0)),
      db(static_cast<std::size_t>(asked.bias ? groups * n : 0));
  kernels::parallel_for(groups, 8 * x.numel(), [&](std::int64_t k) {
    for (std::int64_t r = k * group; r < std::min(rows, (k + 1) * group); ++r)
      kernels::norm_pull_row(
          n, from.data() + r * n, dy.data() + r * n, row, eps, centred, asked.x ? dx.data() + r * n : nullptr,
          asked.weight ? dw.data() + k * n : nullptr, asked.bias ? db.data() + k * n : nullptr);
  });
  const auto total = [&](bool wanted, const std::vector<double>& sums) {
    Buffer<T> all({wanted ? n : 0}, op);
    for (std::int64_t i = 0; i < all.numel(); ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < groups; ++k) sum += sums[static_cast<std::size_t>(k * n + i)];
      all[i] = static_cast<T>(sum);
    }
    return all;
  };
  return {std::move(dx), total(asked.weight, dw), total(asked.bias, db)};
}

// From the gradient of x̂ to that of x, in one record. It is linear in g, with a symmetric matrix: its own
// transpose.
template <bool centred, class T>
Tensor<T> pull(const Tensor<T>& x, const Tensor<T>& g, double eps) {
  const Op& op = centred ? layer_norm_pull_op : rms_norm_pull_op;
  const Tensor<T> P = pulled(op.name, x, g, {}, eps, centred)[0];
  return record(op, P, wrt(g, [x, eps](const auto& u) { return pull<centred>(x, u, eps); }),
                wrt(x, [x, g, P, eps](const auto& u) {
                  const auto over_row = [](const Tensor<T>& v) { return sum(v, -1, true); };
                  const Tensor<T> x_hat = plain<centred>(x, eps);
                  const Tensor<T> spread = centred ? var(x, -1, 0, true) : mean(x * x, -1, true);
                  return (x_hat * over_row(u * P) + pull<centred>(x, u, eps) * over_row(g * x_hat) +
                          P * over_row(u * x_hat)) /
                         (sqrt(spread + eps) * -x.size(-1));
                }));
}

template <bool centred, class T>
Tensor<T> norm(const Op& op, const Tensor<T>& x, const Maybe<T>& weight, const Maybe<T>& bias, double eps) {
  check(op.name, x, weight, bias, eps);
  // No tape knows a default tensor: what is left out has no gradient.
  const Tensor<T> none, w = weight ? *weight : none, b = bias ? *bias : none;
  const Asked asked{is_recorded(x), is_recorded(w), is_recorded(b)};
  const auto at_once = joint<T>(
      [=, name = op.name](const Tensor<T>& dy) { return pulled(name, x, dy, w, eps, centred, asked); });
  return record(op, normalised(op.name, x, w, b, eps, centred),
                wrt(x,
                    [=](const auto& dy) {
                      return nobody_records(x, w, dy) ? at_once->part(0, dy)
                                                      : pull<centred>(x, is_there(w) ? dy * w : dy, eps);
                    }),
                wrt(w,
                    [=](const auto& dy) {
                      return nobody_records(x, w, dy) ? at_once->part(1, dy) : dy * plain<centred>(x, eps);
                    }),
                wrt(b, [=](const auto& dy) { return nobody_records(x, w, dy) ? at_once->part(2, dy) : dy; }));
}

}  // namespace

const Op layer_norm_op{
    "layer_norm", "y = x̂ w + b, x̂ = (x - mean x) / √(var x + ε)",
    "dx = (g - mean g - x̂ mean(g x̂)) / √(var x + ε) with g = dy w, dw = Σ dy x̂, db = Σ dy"};
template <std::floating_point T>
Tensor<T> layer_norm(const Tensor<T>& x, const std::type_identity_t<Maybe<T>>& weight,
                     const std::type_identity_t<Maybe<T>>& bias, double eps) {
  return norm<true, T>(layer_norm_op, x, weight, bias, eps);
}

const Op rms_norm_op{"rms_norm", "y = x̂ w, x̂ = x / √(mean x² + ε)",
                     "dx = (g - x̂ mean(g x̂)) / √(mean x² + ε) with g = dy w, dw = Σ dy x̂"};
template <std::floating_point T>
Tensor<T> rms_norm(const Tensor<T>& x, const std::type_identity_t<Maybe<T>>& weight, double eps) {
  return norm<false, T>(rms_norm_op, x, weight, {}, eps);
}

#define TAPEHEAD_NORM(T)                                                              \
  template Tensor<T> layer_norm<T>(const Tensor<T>&, const std::optional<Tensor<T>>&, \
                                   const std::optional<Tensor<T>>&, double);          \
  template Tensor<T> rms_norm<T>(const Tensor<T>&, const std::optional<Tensor<T>>&, double);
TAPEHEAD_NORM(float)
TAPEHEAD_NORM(double)

}  // namespace tapehead
