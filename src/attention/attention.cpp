#include "tapehead/attention/attention.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "attention/attention_inputs.hpp"
#include "kernels/dropout.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/join.hpp"
#include "tapehead/ops/matmul.hpp"
#include "tapehead/random/random.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace detail {

template <class T>
void check_attention(const char* op, const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V,
                     bool enable_gqa) {
  const auto shapes = [&] {
    return fmt::format("{}: Q {}, K {}, V {}", op, Q.shape().str(), K.shape().str(), V.shape().str());
  };
  if (Q.rank() < 2 || K.rank() < 2 || V.rank() < 2)
    throw ShapeError(shapes() + ": each needs at least the axes (L, d)");
  if (Q.size(-1) != K.size(-1))
    throw ShapeError(fmt::format("{}: queries of width {} and keys of width {}; they must be equal", shapes(),
                                 Q.size(-1), K.size(-1)));
  if (K.size(-2) != V.size(-2))
    throw ShapeError(
        fmt::format("{}: {} keys and {} values; each key has one value", shapes(), K.size(-2), V.size(-2)));
  if (!enable_gqa) return;
  if (Q.rank() < 3 || K.rank() < 3 || V.rank() < 3)
    throw ShapeError(shapes() + ": grouped queries need a head axis, (…, H, L, d)");
  if (K.size(-3) != V.size(-3) || K.size(-3) == 0 || Q.size(-3) % K.size(-3) != 0)
    throw ShapeError(fmt::format(
        "{}: {} query heads on {} key and {} value heads; the query heads must be a multiple of the "
        "others",
        shapes(), Q.size(-3), K.size(-3), V.size(-3)));
}
template void check_attention(const char*, const Tensor<float>&, const Tensor<float>&, const Tensor<float>&,
                              bool);
template void check_attention(const char*, const Tensor<double>&, const Tensor<double>&,
                              const Tensor<double>&, bool);

template <class T>
std::vector<Tensor<T>> split_qkv(const char* op, const Tensor<T>& qkv, std::int64_t heads) {
  const std::int64_t others = qkv.rank() < 3 ? 0 : qkv.size(-3) - heads;
  if (heads < 1 || others < 2 || others % 2 != 0 || heads % (others / 2) != 0)
    throw ShapeError(
        fmt::format("{}: qkv {} with {} query heads; it is (…, Hq + 2 Hkv, L, d), and Hkv divides "
                    "Hq",
                    op, qkv.shape().str(), heads));
  return split(qkv, {heads, others / 2, others / 2}, -3);
}
template std::vector<Tensor<float>> split_qkv(const char*, const Tensor<float>&, std::int64_t);
template std::vector<Tensor<double>> split_qkv(const char*, const Tensor<double>&, std::int64_t);

void check_scores_operand(const char* op, const char* name, const Shape& shape, const Shape& scores) {
  if (!broadcasts_to(shape, scores))
    throw ShapeError(fmt::format(
        "{}: a {} of shape {} does not broadcast to the scores' shape {}; aligned from the right, "
        "each of its sizes must be the scores' or 1 (a padding mask is (B, 1, 1, Lk))",
        op, name, shape.str(), scores.str()));
}

void check_dropout(const char* op, double dropout_p, const std::optional<Tensor<bool>>& keep_mask,
                   const TorchRandom* generator, const Shape& scores) {
  if (!(dropout_p >= 0 && dropout_p <= 1))
    throw ValueError(fmt::format("{}: dropout_p {}; it is a share, 0 to 1", op, dropout_p));
  if (dropout_p == 0) return;
  if (keep_mask) return check_scores_operand(op, "keep_mask", keep_mask->shape(), scores);
  if (generator == nullptr)
    throw ValueError(
        fmt::format("{}: dropout_p {} with nothing to draw from; give .generator, or the .keep_mask itself",
                    op, dropout_p));
}

}  // namespace detail

namespace {

// Each key head, repeated for the consecutive query heads that share it.
template <class T>
Tensor<T> repeat_heads(const Tensor<T>& x, std::int64_t times) {
  if (times == 1) return x;
  const Tensor<T> grouped = unsqueeze(x, -3);  // (…, H, 1, L, d)
  Shape heads = x.shape();
  heads[x.rank() - 3] *= times;
  return reshape(broadcast_to(grouped, grouped.shape().replaced(grouped.rank() - 3, times)), heads);
}

// S = Q Kᵀ / √d_k, plus the bias, with -inf selected where the mask is false.
template <class T>
Tensor<T> masked_scores(const char* op, const Tensor<T>& Q, const Tensor<T>& K,
                        const AttentionOptions<T>& options) {
  Tensor<T> S = matmul(Q, mT(K));
  S = options.scale ? S * *options.scale : S / std::sqrt(static_cast<double>(Q.size(-1)));
  if (options.bias) {
    detail::check_scores_operand(op, "bias", options.bias->shape(), S.shape());
    S = S + *options.bias;
  }
  if (options.mask) {
    detail::check_scores_operand(op, "mask", options.mask->shape(), S.shape());
    S = masked_fill(S, ~*options.mask, -std::numeric_limits<T>::infinity());
  }
  if (options.causal)
    S = masked_fill(S, ~causal_mask(S.size(-2), S.size(-1), options.align),
                    -std::numeric_limits<T>::infinity());
  return S;
}

// What each weight is multiplied by: 0 where dropped, 1 / (1 - p) where kept; nothing when there is no
// dropout.
template <class T>
std::optional<Tensor<T>> dropout_factors(const char* op, const Shape& scores,
                                         const AttentionOptions<T>& options) {
  const double p = options.dropout_p;
  detail::check_dropout(op, p, options.keep_mask, options.generator, scores);
  if (p == 0) return {};
  const Tensor<bool> keep = options.keep_mask
                                ? *options.keep_mask
                                : attention_keep_mask(scores, p, options.generator->next_uint64());
  return to<T>(keep) * kernels::dropout_scale(p);
}

}  // namespace

Tensor<bool> attention_keep_mask(const Shape& scores, double dropout_p, std::uint64_t seed) {
  if (scores.rank() < 2)
    throw ShapeError(fmt::format("attention_keep_mask: shape {}; weights are (…, Lq, Lk)", scores.str()));
  Buffer<bool> keep(scores, "attention_keep_mask");
  const std::int64_t Lk = scores[scores.rank() - 1], Lq = scores[scores.rank() - 2];
  const std::int64_t H = scores.rank() > 2 ? scores[scores.rank() - 3] : 1;
  const auto threshold = kernels::dropout_threshold(dropout_p);
  for (std::int64_t row = 0; Lk > 0 && row < keep.numel() / Lk; ++row) {
    const auto key = kernels::dropout_row_key(seed, row / Lq / H, row / Lq % H, row % Lq);
    for (std::int64_t j = 0; j < Lk; ++j) keep[row * Lk + j] = kernels::dropout_bits(key, j) >= threshold;
  }
  return keep;
}

template <std::floating_point T>
Attention<T> attention(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V,
                       const AttentionOptions<std::type_identity_t<T>>& options) {
  detail::check_attention("attention", Q, K, V, options.enable_gqa);
  const std::int64_t group = options.enable_gqa ? Q.size(-3) / K.size(-3) : 1;
  const Tensor<T> S = masked_scores("attention", Q, repeat_heads(K, group), options);  // (…, Lq, Lk)
  const Tensor<T> A = softmax(S, -1, options.empty_rows);
  const auto kept = dropout_factors("attention", S.shape(), options);
  return {.out = matmul(kept ? A * *kept : A, repeat_heads(V, group)), .weights = A};
}

template <std::floating_point T>
AttentionGradients<T> attention_backward(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V,
                                         const Tensor<T>& dO,
                                         const AttentionOptions<std::type_identity_t<T>>& options) {
  detail::check_attention("attention_backward", Q, K, V, options.enable_gqa);
  const std::int64_t group = options.enable_gqa ? Q.size(-3) / K.size(-3) : 1;
  const Tensor<T> Kh = repeat_heads(K, group), Vh = repeat_heads(V, group);  // one for each query head
  const double scale = options.scale ? *options.scale : 1 / std::sqrt(static_cast<double>(Q.size(-1)));

  AttentionGradients<T> g;
  g.S = masked_scores("attention_backward", Q, Kh, options);
  g.A = softmax(g.S, -1, options.empty_rows);
  const auto kept = dropout_factors("attention_backward", g.S.shape(), options);
  const Tensor<T> dropped = kept ? g.A * *kept : g.A;
  g.O = matmul(dropped, Vh);
  if (dO.shape() != g.O.shape())
    throw ShapeError(fmt::format("attention_backward: dO has shape {}, the output {}; they must be equal",
                                 dO.shape().str(), g.O.shape().str()));

  const Tensor<T> dVh = matmul(mT(dropped), dO);  // dV = Aᵀ dO
  g.dA = matmul(dO, mT(Vh));                      // dA = dO Vᵀ
  if (kept) g.dA = g.dA * *kept;
  g.D = sum(dO * g.O, -1, true);                       // D_i = dO_i · o_i
  g.dS = g.A * (g.dA - g.D);                           // the softmax Jacobian, row by row
  g.dQ = sum_to(matmul(g.dS, Kh) * scale, Q.shape());  // dQ = dS K / √d_k
  const Tensor<T> dKh = matmul(mT(g.dS), Q) * scale;   // dK = dSᵀ Q / √d_k

  // A key head that served several query heads collects from each; so does anything that was broadcast.
  const auto collected = [group](const Tensor<T>& dXh, const Shape& shape) {
    if (group == 1) return sum_to(dXh, shape);
    const int head = dXh.rank() - 3;
    const Shape grouped = dXh.shape().replaced(head, dXh.shape()[head] / group).with(head + 1, group);
    return sum_to(sum(reshape(dXh, grouped), head + 1), shape);
  };
  g.dK = collected(dKh, K.shape());
  g.dV = collected(dVh, V.shape());
  if (options.bias) g.d_bias = sum_to(g.dS, options.bias->shape());
  return g;
}

#define TAPEHEAD_ATTENTION(T)                                                                             \
  template Attention<T> attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&,                   \
                                  const AttentionOptions<T>&);                                            \
  template AttentionGradients<T> attention_backward(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, \
                                                    const Tensor<T>&, const AttentionOptions<T>&);
TAPEHEAD_ATTENTION(float)
TAPEHEAD_ATTENTION(double)

}  // namespace tapehead
