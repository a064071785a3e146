#include "tapehead/ops/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/parallel.hpp"
#include "kernels/require.hpp"
#include "kernels/rows.hpp"
#include "tapehead/autograd/record.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace {

// Rows of n elements of `x` seen with `axis` last, in the order they are stored.
template <class T> Tensor<T> with_last(const Tensor<T>& x, int axis) {
  const Tensor<T> values = detach(x);
  return contiguous(axis == x.rank() - 1 ? values : transpose(values, axis, -1));
}

// A result computed row by row with `axis` last, turned back: row(n, from, to, the place of its first
// element).
template <class T, class RowFunction>
Tensor<T> by_rows(const char* op, const Tensor<T>& x, int axis, const RowFunction& row) {
  const Tensor<T> in = with_last(x, axis);
  Buffer<T> out(in.shape(), op);
  const std::int64_t n = in.size(-1), rows = n == 0 ? 0 : in.numel() / n;
  T* y = out.data();
  const T* from = in.data();
  kernels::parallel_for((rows + 63) / 64, 8 * in.numel(), [&](std::int64_t group) {
    for (std::int64_t r = group * 64; r < std::min(rows, group * 64 + 64); ++r) row(n, from + r * n, y + r * n, r * n);
  });
  const Tensor<T> made(std::move(out));
  return axis == x.rank() - 1 ? made : detach(transpose(made, axis, -1));
}

}  // namespace

const Op softmax_op{"softmax", "A = exp(S - max S) / Σ exp(S - max S)", "dS = A ⊙ (dA - Σ dA ⊙ A)",
                    "(…, n, …) → the same"};
template <class T> Real<T> softmax(const Tensor<T>& S, int axis, EmptyRows empty) {
  axis = normalize_axis("softmax", axis, S.shape());
  const auto A = by_rows("softmax", S, axis, [empty](std::int64_t n, const T* s, T* a, std::int64_t) {
    kernels::softmax_row(n, s, a, empty == EmptyRows::zero);
  });
  const auto pullback = [axis](const auto& dA, const auto& weights) { return softmax_backward(weights, dA, axis); };
  return record(softmax_op, A, wrt(S, pullback, A));
}

// With u arriving: d(dA) = A ⊙ (u - Σ u ⊙ A), because the Jacobian diag(A) - A Aᵀ is symmetric.
const Op softmax_backward_op{"softmax_backward", "dS = A ⊙ (dA - Σ dA ⊙ A)",
                             "for u arriving: d(dA) = A ⊙ (u - Σ u ⊙ A), dA = u (dA - Σ dA ⊙ A) - dA Σ u ⊙ A",
                             "A (…, n, …), dA the same → the same"};
template <class T> Real<T> softmax_backward(const Tensor<T>& A, const Like<T>& dA, int axis) {
  axis = normalize_axis("softmax_backward", axis, A.shape());
  require<ShapeError>(A.shape() == dA.shape(), "softmax_backward: weights {} and gradient {}; they must be equal",
                      A.shape(), dA.shape());
  const Tensor<T> weights = with_last(A, axis);
  const auto dS =
      by_rows("softmax_backward", dA, axis, [a = weights.data()](std::int64_t n, const T* da, T* ds, std::int64_t at) {
        kernels::softmax_pull_row(n, a + at, da, ds);
      });
  const auto into_A = [axis](const auto& u, const auto& a, const auto& da) {
    return u * (da - sum(da * a, axis, true)) - da * sum(u * a, axis, true);
  };
  const auto into_dA = [axis](const auto& u, const auto& a) { return softmax_backward(a, u, axis); };
  return record(softmax_backward_op, dS, wrt(A, into_A, A, dA), wrt(dA, into_dA, A));
}

const Op log_softmax_op{"log_softmax", "y = x - log Σ exp(x)", "dx = dy - softmax(x) Σ dy", "(…, n, …) → the same"};
template <class T> Real<T> log_softmax(const Tensor<T>& x, int axis) {
  axis = normalize_axis("log_softmax", axis, x.shape());
  const auto y = by_rows("log_softmax", x, axis, [](std::int64_t n, const T* v, T* out, std::int64_t) {
    const auto total = kernels::sum_exp_row(n, v);
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>((v[i] - total.max) - total.log);
  });
  const auto pullback = [axis](const auto& dy, const auto& log_weights) {
    return dy - exp(log_weights) * sum(dy, axis, true);
  };
  return record(log_softmax_op, y, wrt(x, pullback, y));
}

const Op logsumexp_op{"logsumexp", "y = log Σ exp(x)", "dx = dy softmax(x)", "(…, n, …) → (…, …)"};
template <class T> Real<T> logsumexp(const Tensor<T>& x, int axis, bool keepdims) {
  axis = normalize_axis("logsumexp", axis, x.shape());
  const Tensor<T> in = with_last(x, axis);
  const std::int64_t n = in.size(-1);
  Buffer<T> out(in.shape().without(x.rank() - 1), "logsumexp");
  for (std::int64_t r = 0; r < out.numel(); ++r) {
    const auto total = kernels::sum_exp_row(n, in.data() + r * n);
    out[r] = std::isinf(total.max) ? total.max : static_cast<T>(total.max + total.log);
  }
  // The rows are in the order of the axes with `axis` swapped to the end: swap back, then drop or keep it.
  const Tensor<T> last = detach(unsqueeze(Tensor<T>(std::move(out)), -1));
  const Tensor<T> kept = transpose(last, axis, -1);
  const auto pullback = [axis, keepdims](const auto& dy, const auto& at) {
    return (keepdims ? dy : unsqueeze(dy, axis)) * softmax(at, axis, EmptyRows::zero);
  };
  return record(logsumexp_op, keepdims ? kept : kept.squeeze(axis), wrt(x, pullback, x));
}

#define TAPEHEAD_SOFTMAX(T)                                                     \
  template Tensor<T> softmax(const Tensor<T>&, int, EmptyRows);                 \
  template Tensor<T> softmax_backward(const Tensor<T>&, const Tensor<T>&, int); \
  template Tensor<T> log_softmax(const Tensor<T>&, int);                        \
  template Tensor<T> logsumexp(const Tensor<T>&, int, bool);
TAPEHEAD_REALS(TAPEHEAD_SOFTMAX)

}  // namespace tapehead
