#pragma once
#include <cstdint>

#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

/// Attention without softmax, in time and memory that grow with L and not with L². The weight of a key is
/// φ(q)·φ(k) with φ(x) = elu(x) + 1, and the weights of a query are divided by their sum. Because
/// Σ_j (φ(q)·φ(k_j)) v_j = φ(q) Σ_j φ(k_j) v_jᵀ, the sum over keys is one (d, d_v) matrix. Q and K are (…, L, d),
/// V (…, L, d_v), with the same leading axes. Where causal, that matrix grows along the sequence, `chunk` tokens
/// at a time; inside a chunk all pairs are computed. Rows far below 0 do not underflow: φ is scaled row by row. A
/// query without keys gives zeros. Differentiable to any order. Throws ShapeError where the shapes do not fit or d is 0,
/// or causal where there are not as many queries as keys; ValueError where chunk < 1, or where all weights of a query
/// underflow although each row is scaled. Katharopoulos, Vyas, Pappas, Fleuret, "Transformers are RNNs" (2020).
template <Floating T> Tensor<T> linear_attention(const Tensor<T>& Q, const Like<T>& K, const Like<T>& V,
                                                 bool causal = false, std::int64_t chunk = 64);

}  // namespace tapehead
