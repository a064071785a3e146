#include "tapehead/attention/linear_attention.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/require.hpp"
#include "tapehead/attention/masks.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/join.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/matmul.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace {

// φ(x) = elu(x) + 1 is x + 1 above 0 and exp(x) below, so rows far below 0 would underflow to nothing. But the weights
// of a query do not change when φ(q), or the φ(k) of all its keys, are multiplied by one number. So φ is computed times
// e^-shift, where the shift of a row is its largest element if that is below 0, else 0: (…, L, 1). It is a constant,
// because no derivative depends on it.
template <class T> Tensor<T> shift_of(const Tensor<T>& x) {
  if (x.size(-1) == 0) return zeros<T>(x.shape().replaced(x.rank() - 1, 1));
  return clamp(max(detach(x), -1, true), std::numeric_limits<T>::lowest(), 0);
}
// The branch that is not chosen is kept finite, for the gradient's sake.
template <class T> Tensor<T> feature(const Tensor<T>& x, const Tensor<T>& shift) {
  return where(x > 0, x + 1, exp(clamp(x, -std::numeric_limits<T>::infinity(), 0) - shift));
}

// The largest shift of the keys that each query of a causal piece sees: (…, n, 1).
template <class T> Tensor<T> largest_so_far(const Tensor<T>& shifts) {
  const std::int64_t n = shifts.size(-2);
  const Tensor<T> rows = broadcast_to(mT(shifts), shifts.shape().replaced(shifts.rank() - 1, n));
  return max(masked_fill(rows, ~causal_mask(n), -std::numeric_limits<T>::infinity()), -1, true);
}

template <class T> Tensor<T> normalised(const Tensor<T>& weighted, const Tensor<T>& total) {
  require<ValueError>(total.numel() == 0 || min(detach(total)).item() != 0,
                      "linear_attention: the weights of a query underflow: no component of it has a feature above 0 "
                      "where one of its keys has; divide Q and K by a larger number");
  return weighted / total;
}

template <class T> void check(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V, bool causal) {
  const bool ranks = Q.rank() >= 2 && Q.rank() == K.rank() && Q.rank() == V.rank();
  const auto lead = [](const Tensor<T>& x) { return Shape(x.shape().begin(), x.shape().end() - 2); };
  require<ShapeError>(ranks && lead(Q) == lead(K) && lead(Q) == lead(V) && Q.size(-1) == K.size(-1) &&
                          K.size(-2) == V.size(-2) && (!causal || Q.size(-2) == K.size(-2)),
                      "linear_attention: Q {}, K {}, V {}; they must be (…, Lq, d), (…, Lk, d) and (…, Lk, d_v){}",
                      Q.shape(), K.shape(), V.shape(), causal ? ", and Lq = Lk where causal" : "");
}

// Σ_j φ(k_j) v_jᵀ and Σ_j φ(k_j) over the keys so far, times e^-shift: (…, d, d_v), (…, 1, d) and (…, 1, 1).
template <class T> struct Sums {
  Tensor<T> kv, k, shift;
  Sums(const Tensor<T>& K, const Tensor<T>& V, const Tensor<T>& largest) : shift(largest) {
    const Tensor<T> features = feature(K, largest);
    kv = matmul(mT(features), V), k = sum(features, -2, true);
  }
  void add(const Tensor<T>& K, const Tensor<T>& V, const Tensor<T>& largest) {
    const Tensor<T> now = maximum(shift, largest), factor = exp(shift - now);
    const Sums more(K, V, now);
    kv = kv * factor + more.kv, k = k * factor + more.k, shift = now;
  }
};

}  // namespace

template <Floating T>
Tensor<T> linear_attention(const Tensor<T>& Q, const Like<T>& K, const Like<T>& V, bool causal, std::int64_t chunk) {
  check(Q, K, V, causal);
  require<ValueError>(chunk >= 1, "linear_attention: chunk {}; it must be 1 or more", chunk);
  const Tensor<T> q = feature(Q, shift_of(Q)), shifts = shift_of(K);
  if (K.size(-2) == 0) return matmul(matmul(q, mT(K)), V);  // no key: zeros
  require<ShapeError>(K.size(-1) > 0, "linear_attention: Q {}, K {}; rows of width 0 have no features to weigh keys by",
                      Q.shape(), K.shape());
  if (!causal) {
    const Sums<T> all(K, V, max(shifts, -2, true));
    return normalised(matmul(q, all.kv), sum(q * all.k, -1, true));
  }
  std::vector<Tensor<T>> out;
  std::optional<Sums<T>> before;
  for (std::int64_t at = 0; at < Q.size(-2); at += std::min(chunk, Q.size(-2) - at)) {
    const auto part = [&](const Tensor<T>& x) { return slice(x, -2, at, std::min(chunk, Q.size(-2) - at) + at); };
    const Tensor<T> q_i = part(q), k_i = part(K), v_i = part(V), shifts_i = part(shifts);
    Tensor<T> largest = largest_so_far(shifts_i);
    if (before) largest = maximum(largest, before->shift);
    const Tensor<T> factors = exp(clamp(mT(shifts_i) - largest, -std::numeric_limits<T>::infinity(), 0));
    const Tensor<T> A = tril(matmul(q_i, mT(feature(k_i, shifts_i))) * factors);  // φ(q)·φ(k) e^-largest
    Tensor<T> weighted = matmul(A, v_i), total = sum(A, -1, true);
    if (before) {
      const Tensor<T> factor = exp(before->shift - largest);
      weighted = weighted + matmul(q_i, before->kv) * factor;
      total = total + sum(q_i * before->k, -1, true) * factor;
    }
    out.push_back(normalised(weighted, total));
    const Tensor<T> all = max(shifts_i, -2, true);
    before ? before->add(k_i, v_i, all) : void(before.emplace(k_i, v_i, all));
  }
  return cat(out, -2);
}

#define TAPEHEAD_LINEAR(T) \
  template Tensor<T> linear_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, bool, std::int64_t);
TAPEHEAD_REALS(TAPEHEAD_LINEAR)

}  // namespace tapehead
