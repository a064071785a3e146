#include "tapehead/ops/norm.hpp"

#include <algorithm>
#include <vector>

#include "autograd/recorded.hpp"
#include "kernels/norm.hpp"
#include "kernels/parallel.hpp"
#include "kernels/require.hpp"
#include "tapehead/autograd/record.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

using detail::shared_run;

namespace {

// A weight or bias that was left out is a default tensor: it has no elements, and no tape knows it.
template <class T> using Maybe = std::optional<Tensor<T>>;
template <class T> bool is_there(const Tensor<T>& x) { return x.header().storage != nullptr; }

template <class T>
void check(const char* op, const Tensor<T>& x, const Maybe<T>& weight, const Maybe<T>& bias, double eps) {
  require<ShapeError>(x.rank() > 0, "{}: a zero-dimensional tensor has no last axis to normalise along", op);
  const auto fits = [&](const char* name, const Maybe<T>& row) {
    require<ShapeError>(!row || row->shape() == Shape{x.size(-1)},
                        "{}: a {} of shape {} for an input of shape {}; it must be ({},)", op, name,
                        row ? row->shape() : Shape{}, x.shape(), x.size(-1));
  };
  fits("weight", weight);
  fits("bias", bias);
  require<ValueError>(eps >= 0, "{}: eps {}; it must not be negative", op, eps);
}

// Calls f(row, first, last) for groups of `size` rows, on several threads.
template <class F> void groups_of(std::int64_t size, std::int64_t rows, std::int64_t work, const F& f) {
  kernels::parallel_for((rows + size - 1) / size, work,
                        [&](std::int64_t k) { f(k, k * size, std::min(rows, (k + 1) * size)); });
}

template <bool centred, class T>
Tensor<T> forward(const char* op, const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias, double eps) {
  const Tensor<T> from = contiguous(detach(x)), w = contiguous(detach(weight)), b = contiguous(detach(bias));
  const T *w_row = is_there(weight) ? w.data() : nullptr, *b_row = is_there(bias) ? b.data() : nullptr;
  Buffer<T> y(x.shape(), op);
  const std::int64_t n = x.size(-1), rows = n == 0 ? 0 : x.numel() / n;
  groups_of(16, rows, 4 * x.numel(), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r)
      kernels::norm_row(n, from.data() + r * n, w_row, b_row, eps, centred, y.data() + r * n);
  });
  return y;
}

// The gradients of x, weight and bias from dy: those that are asked for, in one pass over the rows. The last
// two are summed over groups of 64 rows, and these in order, so that they do not depend on the threads.
struct Asked {
  bool x, weight, bias;
};
template <bool centred, class T> std::vector<Tensor<T>> backward(const char* op, const Tensor<T>& x,
                                                                 const Tensor<T>& weight, const Tensor<T>& arriving,
                                                                 double eps, Asked asked) {
  const Tensor<T> from = contiguous(detach(x)), dy = contiguous(detach(arriving)), w = contiguous(detach(weight));
  const T* w_row = is_there(weight) ? w.data() : nullptr;
  constexpr std::int64_t group = 64;
  const std::int64_t n = x.size(-1), rows = n == 0 ? 0 : x.numel() / n, groups = (rows + group - 1) / group;
  Buffer<T> dx(asked.x ? x.shape() : Shape{0}, op);
  std::vector<double> dw(static_cast<std::size_t>(asked.weight ? groups * n : 0)),
      db(static_cast<std::size_t>(asked.bias ? groups * n : 0));
  groups_of(group, rows, 8 * x.numel(), [&](std::int64_t k, std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r)
      kernels::norm_pull_row(n, from.data() + r * n, dy.data() + r * n, w_row, eps, centred,
                             asked.x ? dx.data() + r * n : nullptr, asked.weight ? dw.data() + k * n : nullptr,
                             asked.bias ? db.data() + k * n : nullptr);
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

template <class T> Tensor<T> over_row(const Tensor<T>& x) { return sum(x, -1, true); }

}  // namespace

// The backward passes are operations of their own, so that they are recorded and differentiated like any other.
// P is the Jacobian of x̂, which is symmetric: P g = (g - mean g - x̂ mean(g x̂)) / s, without mean g for
// rms_norm.

const Op layer_norm_backward_op{"layer_norm_backward", "dx = P (dy w), P g = (g - mean g - x̂ mean(g x̂)) / s",
                                "for u arriving: d(dy) = w P u, dw = Σ dy P u, "
                                "dx = -(x̂ Σ u P g + P u Σ g x̂ + P g Σ u x̂) / (n s) with g = dy w",
                                "x (…, n), w (n), dy (…, n) → (…, n)"};
const Op rms_norm_backward_op{"rms_norm_backward", "dx = P (dy w), P g = (g - x̂ mean(g x̂)) / s",
                              "as layer_norm_backward's", "x (…, n), w (n), dy (…, n) → (…, n)"};
const Op norm_weight_backward_op{"norm_weight_backward", "dw = Σ dy x̂ over the rows",
                                 "for v arriving: d(dy) = v x̂, dx = P (dy v)", "x (…, n), dy (…, n) → (n)"};
const Op norm_bias_backward_op{"norm_bias_backward", "db = Σ dy over the rows", "for v arriving: d(dy) = v, repeated",
                               "dy (…, n) → (n)"};

// x̂, recorded as the operation without weight and bias.
template <bool centred, class T> Tensor<T> normalised(const Tensor<T>& x, double eps) {
  if constexpr (centred)
    return layer_norm(x, {}, {}, eps);
  else
    return rms_norm(x, {}, eps);
}

template <bool centred, class T> Tensor<T> norm_backward(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& dy,
                                                         double eps, std::optional<Tensor<T>> found = {}) {
  const Op& op = centred ? layer_norm_backward_op : rms_norm_backward_op;
  const Tensor<T> dx = found ? *found : backward<centred>(op.name, x, w, dy, eps, {true, false, false})[0];
  const auto P = [eps](const Tensor<T>& at, const Tensor<T>& u) {
    return norm_backward<centred>(at, Tensor<T>(), u, eps);
  };
  const auto times = [](const Tensor<T>& g, const Tensor<T>& weight) { return is_there(weight) ? g * weight : g; };
  const auto into_dy = [=](const auto& u, const auto& at, const auto& weight) { return times(P(at, u), weight); };
  const auto into_w = [=](const auto& u, const auto& at, const auto& arrived) { return arrived * P(at, u); };
  const auto into_x = [=](const auto& u, const auto& at, const auto& weight, const auto& arrived, const auto& Pg) {
    const Tensor<T> x_hat = normalised<centred>(at, eps), g = times(arrived, weight);
    const Tensor<T> square = centred ? var(at, -1, 0, true) : mean(at * at, -1, true);
    return (x_hat * over_row(u * Pg) + P(at, u) * over_row(g * x_hat) + Pg * over_row(u * x_hat)) /
           (sqrt(square + eps) * -at.size(-1));
  };
  return record(op, dx, wrt(dy, into_dy, x, w), wrt(w, into_w, x, dy), wrt(x, into_x, x, w, dy, dx));
}

template <bool centred, class T>
Tensor<T> norm_weight_backward(const Tensor<T>& x, const Tensor<T>& dy, double eps, const Tensor<T>& dw) {
  const auto into_dy = [eps](const auto& v, const auto& at) { return v * normalised<centred>(at, eps); };
  const auto into_x = [eps](const auto& v, const auto& at, const auto& arrived) {
    return norm_backward<centred>(at, v, arrived, eps);
  };
  return record(norm_weight_backward_op, dw, wrt(dy, into_dy, x), wrt(x, into_x, x, dy));
}

template <class T> Tensor<T> norm_bias_backward(const Tensor<T>& dy, const Tensor<T>& db) {
  return record(norm_bias_backward_op, db,
                wrt(dy, [shape = dy.shape()](const auto& v) { return broadcast_to(v, shape); }));
}

template <bool centred, class T>
Tensor<T> norm(const Op& op, const Tensor<T>& x, const Maybe<T>& weight, const Maybe<T>& bias, double eps) {
  check(op.name, x, weight, bias, eps);
  const Tensor<T> none, w = weight ? *weight : none, b = bias ? *bias : none;
  const auto all = [name = op.name, eps, asked = Asked{is_recorded(x), is_recorded(w), is_recorded(b)}](
                       const auto& dy, const auto& at, const auto& gain) {
    return backward<centred>(name, at, gain, dy, eps, asked);
  };
  const auto gradients = shared_run<T>(all, x, w);
  const auto into_x = [eps](const auto& dy, const auto& at, const auto& gain, const auto& run) {
    return norm_backward<centred>(at, gain, dy, eps, {run->result(0, dy)});
  };
  const auto into_w = [eps](const auto& dy, const auto& at, const auto& run) {
    return norm_weight_backward<centred>(at, dy, eps, run->result(1, dy));
  };
  const auto into_b = [](const auto& dy, const auto& run) { return norm_bias_backward(dy, run->result(2, dy)); };
  return record(op, forward<centred>(op.name, x, w, b, eps), wrt(x, into_x, x, w, gradients),
                wrt(w, into_w, x, gradients), wrt(b, into_b, gradients));
}

const Op layer_norm_op{"layer_norm", "y = x̂ w + b, x̂ = (x - mean x) / √(var x + ε)",
                       "dx = (g - mean g - x̂ mean(g x̂)) / √(var x + ε) with g = dy w, dw = Σ dy x̂, db = Σ dy",
                       "x (…, n), w (n), b (n) → (…, n)"};
template <class T> Real<T> layer_norm(const Tensor<T>& x, const std::type_identity_t<Maybe<T>>& weight,
                                      const std::type_identity_t<Maybe<T>>& bias, double eps) {
  return norm<true>(layer_norm_op, x, weight, bias, eps);
}

const Op rms_norm_op{"rms_norm", "y = x̂ w, x̂ = x / √(mean x² + ε)",
                     "dx = (g - x̂ mean(g x̂)) / √(mean x² + ε) with g = dy w, dw = Σ dy x̂", "x (…, n), w (n) → (…, n)"};
template <class T> Real<T> rms_norm(const Tensor<T>& x, const std::type_identity_t<Maybe<T>>& weight, double eps) {
  return norm<false>(rms_norm_op, x, weight, Maybe<T>{}, eps);
}

#define TAPEHEAD_NORM(T)                                                                                               \
  template Tensor<T> layer_norm<T>(const Tensor<T>&, const std::optional<Tensor<T>>&, const std::optional<Tensor<T>>&, \
                                   double);                                                                            \
  template Tensor<T> rms_norm<T>(const Tensor<T>&, const std::optional<Tensor<T>>&, double);
TAPEHEAD_REALS(TAPEHEAD_NORM)

}  // namespace tapehead
