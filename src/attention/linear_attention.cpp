#include "tapehead/attention/linear_attention.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <vector>

#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/join.hpp"
#include "tapehead/attention/masks.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/matmul.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace {

// φ(x) = elu(x) + 1: x + 1 above 0, exp(x) below. What is not chosen is kept finite, for the gradient's sake.
template <class T>
Tensor<T> feature(const Tensor<T>& x) {
  return where(x > 0, x + 1, exp(clamp(x, -std::numeric_limits<T>::infinity(), 0)));
}

template <class T>
void check(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V, bool causal) {
  const bool ranks = Q.rank() >= 2 && Q.rank() == K.rank() && Q.rank() == V.rank();
  const auto lead = [](const Tensor<T>& x) { return Shape(x.shape().begin(), x.shape().end() - 2); };
  if (!ranks || lead(Q) != lead(K) || lead(Q) != lead(V) || Q.size(-1) != K.size(-1) ||
      K.size(-2) != V.size(-2) || (causal && Q.size(-2) != K.size(-2)))
    throw ShapeError(fmt::format(
        "linear_attention: Q {}, K {}, V {}; they must be (…, Lq, d), (…, Lk, d) and (…, Lk, d_v){}",
        Q.shape().str(), K.shape().str(), V.shape().str(), causal ? ", and Lq = Lk where causal" : ""));
}

// Σ_j φ(k_j) v_jᵀ and Σ_j φ(k_j), over the keys of one piece: (…, d, d_v) and (…, 1, d).
template <class T>
struct Sums {
  Tensor<T> kv, k;
  Sums(const Tensor<T>& phi_k, const Tensor<T>& V) : kv(matmul(mT(phi_k), V)), k(sum(phi_k, -2, true)) {}
};

}  // namespace

template <std::floating_point T>
Tensor<T> linear_attention(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V, bool causal,
                           std::int64_t chunk) {
  check(Q, K, V, causal);
  if (chunk < 1) throw ValueError(fmt::format("linear_attention: chunk {}; it must be 1 or more", chunk));
  const Tensor<T> q = feature(Q), k = feature(K);
  if (!causal) {
    const Sums<T> all(k, V);
    return matmul(q, all.kv) / sum(q * all.k, -1, true);
  }
  std::vector<Tensor<T>> out;
  std::optional<Sums<T>> before;
  for (std::int64_t at = 0; at < Q.size(-2); at += chunk) {
    const auto part = [&](const Tensor<T>& x) { return slice(x, -2, at, at + chunk); };
    const Tensor<T> q_i = part(q), k_i = part(k), v_i = part(V), A = tril(matmul(q_i, mT(k_i)));
    const Sums<T> here(k_i, v_i);
    if (!before) {
      out.push_back(matmul(A, v_i) / sum(A, -1, true));
      before = here;
    } else {
      out.push_back((matmul(A, v_i) + matmul(q_i, before->kv)) /
                    (sum(A, -1, true) + sum(q_i * before->k, -1, true)));
      before->kv = before->kv + here.kv, before->k = before->k + here.k;
    }
  }
  return out.empty() ? V : cat(out, -2);
}

template <std::floating_point T>
Tensor<T> linear_attention_quadratic(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V,
                                     bool causal) {
  check(Q, K, V, causal);
  const Tensor<T> weights = matmul(feature(Q), mT(feature(K))), A = causal ? tril(weights) : weights;
  return matmul(A / sum(A, -1, true), V);
}

#define TAPEHEAD_LINEAR(T)                                                                        \
  template Tensor<T> linear_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, bool, \
                                      std::int64_t);                                              \
  template Tensor<T> linear_attention_quadratic(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, bool);
TAPEHEAD_LINEAR(float)
TAPEHEAD_LINEAR(double)

}  // namespace tapehead
