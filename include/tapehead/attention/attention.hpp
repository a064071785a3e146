#pragma once
#include <concepts>
#include <cstdint>
#include <optional>

#include "tapehead/attention/masks.hpp"
#include "tapehead/ops/softmax.hpp"
#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

class TorchRandom;

/// What attention can be asked for. The order: scale, bias, mask, softmax, dropout.
template <class T>
struct AttentionOptions {
  std::optional<Tensor<bool>> mask =
      {};  ///< true = may attend; broadcasts to (…, Lq, Lk). Masks combine with &
  std::optional<Tensor<T>> bias =
      {};               ///< added to the scaled scores; broadcasts likewise; may be -inf; gets a gradient
  bool causal = false;  ///< together with a mask, both hold
  Align align = Align::top_left;     ///< where causal places the queries when Lq != Lk
  std::optional<double> scale = {};  ///< default 1/√d_k; 0 and negative numbers are taken as they are
  bool enable_gqa = false;           ///< query head h uses key head h / (Hq / Hkv)
  double dropout_p = 0;              ///< share of weights dropped; needs a generator or a keep_mask
  TorchRandom* generator = nullptr;  ///< gives the seed; what is dropped is a function of (seed, b, h, i, j)
  std::optional<Tensor<bool>> keep_mask = {};  ///< true = kept; broadcasts to (…, Lq, Lk)
  EmptyRows empty_rows = EmptyRows::zero;      ///< a query with no key: output 0, or NaN as the chapter warns
};

template <class T>
struct Attention {
  Tensor<T> out;      ///< (…, Lq, d_v)
  Tensor<T> weights;  ///< (…, Lq, Lk), rows sum to 1 (to 0 where there is no key); before dropout
};

/// softmax(Q Kᵀ / √d_k) V, with matmul and softmax as operations on the tape: "eager". Q is (…, Lq, d_k), K
/// (…, Lk, d_k), V (…, Lk, d_v), with any leading axes, which broadcast. Throws ShapeError where these do not
/// fit, and ValueError for a dropout_p outside 0 … 1 or without a generator or mask. Vaswani et al.,
/// "Attention Is All You Need" (2017), section 3.2.1.
template <std::floating_point T>
Attention<T> attention(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V,
                       const AttentionOptions<std::type_identity_t<T>>& options = {});

/// What attention_backward computes, in the chapter's letters. S are the scaled scores, A the weights, O the
/// output.
template <class T>
struct AttentionGradients {
  Tensor<T> S, A, O;                ///< the forward pass
  Tensor<T> dA;                     ///< dO Vᵀ, through the dropout
  Tensor<T> D;                      ///< (…, Lq, 1): rowsum(dO ⊙ O) = rowsum(dA ⊙ A)
  Tensor<T> dS;                     ///< A ⊙ (dA - D)
  Tensor<T> dQ, dK, dV;             ///< of Q's, K's and V's shapes
  std::optional<Tensor<T>> d_bias;  ///< dS summed to the bias's own shape
};

/// The gradients of attention(Q, K, V) written out by hand:
///   dV = Aᵀ dO,  dA = dO Vᵀ,  D = rowsum(dO ⊙ O),  dS = A ⊙ (dA - D),  dQ = dS K / √d_k,  dK = dSᵀ Q / √d_k.
/// dO has the output's shape. Give dropout as a keep_mask, so that both passes drop the same weights.
template <std::floating_point T>
AttentionGradients<T> attention_backward(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V,
                                         const Tensor<T>& dO,
                                         const AttentionOptions<std::type_identity_t<T>>& options = {});

/// The dropout mask of one call: (…, Lq, Lk) of the shape given, true = kept, the same in every rung of the
/// ladder.
Tensor<bool> attention_keep_mask(const Shape& scores, double dropout_p, std::uint64_t seed);

}  // namespace tapehead
