#include "tapehead/ops/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/parallel.hpp"
#include "kernels/rows.hpp"
#include "autograd/recorded.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace {

// Rows of n elements of `x` seen with `axis` last, in the order they are stored.
template <class T>
Tensor<T> with_last(const Tensor<T>& x, int axis) {
  const Tensor<T> apart = detach(x);
  return contiguous(axis == x.rank() - 1 ? apart : transpose(apart, axis, -1));
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
    for (std::int64_t r = group * 64; r < std::min(rows, group * 64 + 64); ++r)
      row(n, from + r * n, y + r * n, r * n);
  });
  const Tensor<T> made(std::move(out));
  return axis == x.rank() - 1 ? made : detach(transpose(made, axis, -1));
}

// A ⊙ (dA - Σ dA ⊙ A) in one pass over the rows, unrecorded.
template <class T>
Tensor<T> softmax_pulled(const Tensor<T>& A, const Tensor<T>& dA, int axis) {
  const Tensor<T> weights = with_last(A, axis);
  const T* a = weights.data();
  return by_rows("softmax", dA, axis, [a](std::int64_t n, const T* da, T* ds, std::int64_t at) {
    kernels::softmax_pull_row(n, a + at, da, ds);
  });
}

int axis_of(const char* op, int axis, const Shape& shape) { return normalize_axis(op, axis, shape); }

}  // namespace

const Op softmax_op{"softmax", "A = exp(S - max S) / Σ exp(S - max S)", "dS = A ⊙ (dA - Σ dA ⊙ A)"};
template <std::floating_point T>
Tensor<T> softmax(const Tensor<T>& S, int axis, EmptyRows empty) {
  axis = axis_of("softmax", axis, S.shape());
  auto A = by_rows("softmax", S, axis, [empty](std::int64_t n, const T* s, T* a, std::int64_t) {
    kernels::softmax_row(n, s, a, empty == EmptyRows::zero);
  });
  return record(softmax_op, A, wrt(S, [A, axis](const auto& dA) {
                  return detail::nobody_records(A, dA) ? softmax_pulled(A, dA, axis)
                                                       : A * (dA - sum(dA * A, axis, true));
                }));
}

const Op log_softmax_op{"log_softmax", "y = x - log Σ exp(x)", "dx = dy - softmax(x) Σ dy"};
template <std::floating_point T>
Tensor<T> log_softmax(const Tensor<T>& x, int axis) {
  axis = axis_of("log_softmax", axis, x.shape());
  auto y = by_rows("log_softmax", x, axis, [](std::int64_t n, const T* v, T* out, std::int64_t) {
    const auto total = kernels::sum_exp_row(n, v);
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>((v[i] - total.max) - total.log);
  });
  return record(log_softmax_op, y,
                wrt(x, [y, axis](const auto& dy) { return dy - exp(y) * sum(dy, axis, true); }));
}

const Op logsumexp_op{"logsumexp", "y = log Σ exp(x)", "dx = dy softmax(x)"};
template <std::floating_point T>
Tensor<T> logsumexp(const Tensor<T>& x, int axis, bool keepdims) {
  axis = axis_of("logsumexp", axis, x.shape());
  const Tensor<T> in = with_last(x, axis);
  const std::int64_t n = in.size(-1);
  Buffer<T> out(in.shape().without(x.rank() - 1), "logsumexp");
  for (std::int64_t r = 0; r < out.numel(); ++r) {
    const auto total = kernels::sum_exp_row(n, in.data() + r * n);
    out[r] = std::isinf(total.max) ? total.max : static_cast<T>(total.max + total.log);
  }
  // The rows stand in the order of the axes with `axis` swapped to the end: swap back, then drop or keep it.
  const Tensor<T> last = detach(unsqueeze(Tensor<T>(std::move(out)), -1));
  const Tensor<T> kept = transpose(last, axis, -1);
  return record(logsumexp_op, keepdims ? kept : kept.squeeze(axis),
                wrt(x, [x, axis, keepdims](const auto& dy) {
                  return (keepdims ? dy : unsqueeze(dy, axis)) * softmax(x, axis, EmptyRows::zero);
                }));
}

#define TAPEHEAD_SOFTMAX(T)                                     \
  template Tensor<T> softmax(const Tensor<T>&, int, EmptyRows); \
  template Tensor<T> log_softmax(const Tensor<T>&, int);        \
  template Tensor<T> logsumexp(const Tensor<T>&, int, bool);
TAPEHEAD_SOFTMAX(float)
TAPEHEAD_SOFTMAX(double)

}  // namespace tapehead
