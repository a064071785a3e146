#pragma once
#include <cmath>
#include <cstdint>
#include <optional>

#include "tapehead/attention/masks.hpp"
#include "tapehead/ops/softmax.hpp"
#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

class TorchRandom;

/// The options of every kind of attention: eager, by hand, fused, flex, packed, cached, and in modules. Scores
/// are made in this order: scale, flex's score function, bias, masks, softmax with the sinks, dropout.
template <class T> struct AttentionOptions {
  /// true = may attend; broadcasts to (…, Lq, Lk). Masks combine with &.
  std::optional<Tensor<bool>> mask = {};
  /// Added to the scaled scores; broadcasts likewise; may be -inf; gets a gradient.
  std::optional<Tensor<T>> bias = {};
  /// A logit that joins the softmax of every row and has no value, so that a head can attend to (nearly)
  /// nothing: (H,) for the query heads, or whatever broadcasts to (…, H); gets a gradient. Xiao et al.,
  /// "Efficient Streaming Language Models with Attention Sinks" (2023); OpenAI's gpt-oss (2025).
  std::optional<Tensor<T>> sinks = {};
  bool causal = false;  ///< together with a mask, both hold
  /// Where causal places the queries when Lq != Lk. By default top_left, in packed buffers bottom_right.
  std::optional<Align> align = {};
  std::optional<double> scale = {};  ///< by default 1/√d_k; 0 and negative numbers are taken as they are
  bool enable_gqa = false;           ///< query head h uses key head h / (Hq / Hkv)
  double dropout_p = 0;              ///< probability of dropping a weight; needs a generator or a keep_mask
  TorchRandom* generator = nullptr;  ///< gives the seed; the weights dropped are a function of (seed, b, h, i, j)
  std::optional<Tensor<bool>> keep_mask = {};  ///< true = kept; broadcasts to (…, Lq, Lk)
  EmptyRows empty_rows = EmptyRows::zero;      ///< a query with no key: output 0, or NaN as the chapter warns

  /// The scale for keys of width d_k. Without a scale and with d_k = 0 it is 1.
  double scale_for(std::int64_t d_k) const {
    return scale ? *scale : 1 / std::sqrt(static_cast<double>(d_k > 0 ? d_k : 1));
  }
};

template <class T> struct Attention {
  Tensor<T> out;  ///< (…, Lq, d_v)
  /// (…, Lq, Lk), before dropout. Rows sum to 1, to 0 where there is no key, and to less than 1 with a sink.
  Tensor<T> weights;
};

/// softmax(Q Kᵀ / √d_k) V, with matmul and softmax as operations on the tape: the "eager" implementation. Q is
/// (…, Lq, d_k), K (…, Lk, d_k), V (…, Lk, d_v), with any leading axes, which broadcast. Throws ShapeError where
/// these do not fit, and ValueError for a dropout_p outside 0 … 1 or without a generator or mask. Vaswani et
/// al., "Attention Is All You Need" (2017), section 3.2.1.
template <Floating T> Attention<T> attention(const Tensor<T>& Q, const Like<T>& K, const Like<T>& V,
                                             const AttentionOptions<std::type_identity_t<T>>& options = {});

/// The gradients of attention_backward and the steps between, in the chapter's letters: S are the scaled
/// scores, A the weights, O the output.
template <class T> struct AttentionGradients {
  Tensor<T> S, A, O;                 ///< the forward pass
  Tensor<T> dA;                      ///< dO Vᵀ, through the dropout
  Tensor<T> D;                       ///< (…, Lq, 1): rowsum(dO ⊙ O) = rowsum(dA ⊙ A)
  Tensor<T> dS;                      ///< A ⊙ (dA - D)
  Tensor<T> dQ, dK, dV;              ///< of Q's, K's and V's shapes
  std::optional<Tensor<T>> d_bias;   ///< dS summed to the bias's own shape
  std::optional<Tensor<T>> d_sinks;  ///< -Σ_i A_i D_i, A_i being the sink's weight in row i
};

/// The gradients of attention(Q, K, V) written out by hand:
///   dV = Aᵀ dO,  dA = dO Vᵀ,  D = rowsum(dO ⊙ O),  dS = A ⊙ (dA - D),  dQ = dS K / √d_k,  dK = dSᵀ Q / √d_k.
/// dO has the output's shape. Give dropout as a keep_mask, so that both passes drop the same weights.
template <Floating T>
AttentionGradients<T> attention_backward(const Tensor<T>& Q, const Like<T>& K, const Like<T>& V, const Like<T>& dO,
                                         const AttentionOptions<std::type_identity_t<T>>& options = {});

/// The dropout mask of one call, of shape `scores` (…, Lq, Lk): true = kept. Every kind of attention drops by
/// this rule.
Tensor<bool> attention_keep_mask(const Shape& scores, double dropout_p, std::uint64_t seed);

}  // namespace tapehead
