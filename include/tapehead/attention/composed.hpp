#pragma once
#include <cmath>
#include <limits>
#include <optional>

#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/ops/softmax.hpp"
#include "tapehead/ops/views.hpp"

// The lowest rung: matmul, softmax, masking and attention from nothing but multiply, sum, max, exp, divide and
// where. They are slow, and there is nothing in them to take on trust: tests compare the operations of the same
// names with these, values and gradients.

namespace tapehead::composed {

/// C_ij = Σ_k A_ik B_kj: all products by broadcasting (…, m, k, 1) against (…, 1, k, n), then the sum over k.
template <class T> Tensor<T> matmul(const Tensor<T>& A, const Like<T>& B) {
  const auto a = unsqueeze(A, -1), b = unsqueeze(B, -3);  // named, so that the tape has them in this order
  return sum(a * b, -2);
}

/// exp(x - max x) / Σ exp(x - max x): the largest exponent is exp(0) = 1, so nothing overflows.
template <class T> Tensor<T> softmax(const Tensor<T>& x, int axis, EmptyRows empty = EmptyRows::nan) {
  const T inf = std::numeric_limits<T>::infinity();
  Tensor<T> top = max(x, axis, true);
  if (empty == EmptyRows::zero) top = masked_fill(top, eq(top, scalar(-inf)), 0);  // -inf - 0, not -inf - -inf
  const Tensor<T> e = exp(x - top);
  Tensor<T> total = sum(e, axis, true);
  if (empty == EmptyRows::zero) total = masked_fill(total, eq(total, scalar(T{0})), 1);
  return e / total;
}

/// The scores where the mask is true, -inf elsewhere, so that exp gives those a weight of exactly 0.
template <class T> Tensor<T> masked(const Tensor<T>& scores, const Tensor<bool>& mask) {
  return where(mask, scores, scalar(-std::numeric_limits<T>::infinity()));
}

/// softmax(Q Kᵀ / √d_k) V. Q is (…, Lq, d_k), K (…, Lk, d_k), V (…, Lk, d_v); the mask broadcasts to
/// (…, Lq, Lk). With d_k = 0 all scores are 0, and nothing is divided.
template <class T> Tensor<T> attention(const Tensor<T>& Q, const Like<T>& K, const Like<T>& V,
                                       const std::optional<Tensor<bool>>& mask = {},
                                       EmptyRows empty = EmptyRows::zero) {
  const double d_k = static_cast<double>(Q.size(-1));
  Tensor<T> S = composed::matmul(Q, mT(K)) / scalar(static_cast<T>(d_k > 0 ? std::sqrt(d_k) : 1));
  if (mask) S = composed::masked(S, *mask);
  return composed::matmul(composed::softmax(S, -1, empty), V);
}

}  // namespace tapehead::composed
