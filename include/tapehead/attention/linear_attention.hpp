#pragma once
#include <concepts>
#include <cstdint>

#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

/// Attention without softmax, in time and memory that grow with L and not with L²: the weight of a key is
/// φ(q)·φ(k), made to sum to 1, with φ(x) = elu(x) + 1. So Σ_j (φ(q)·φ(k_j)) v_j = φ(q) Σ_j φ(k_j) v_jᵀ, and
/// the sum over keys is one (d, d_v) matrix. Q and K are (…, L, d), V (…, L, d_v), of the same leading axes.
/// Causal, that matrix grows along the sequence: `chunk` tokens at a time, and within a chunk by the
/// quadratic form. Differentiable to any order. Throws ShapeError where the shapes do not fit, or causal
/// where there are not as many queries as keys, and ValueError where chunk < 1. Katharopoulos, Vyas, Pappas,
/// Fleuret, "Transformers are RNNs" (2020).
template <std::floating_point T>
Tensor<T> linear_attention(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V, bool causal = false,
                           std::int64_t chunk = 64);

/// The same numbers by way of all L x L weights: what linear_attention() is held to.
template <std::floating_point T>
Tensor<T> linear_attention_quadratic(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V,
                                     bool causal = false);

}  // namespace tapehead
