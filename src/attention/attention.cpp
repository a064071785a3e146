#include "tapehead/attention/attention.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>

#include "attention/attention_inputs.hpp"
#include "kernels/dropout.hpp"
#include "kernels/require.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/dropout.hpp"
#include "tapehead/ops/join.hpp"
#include "tapehead/ops/matmul.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/ops/views.hpp"
#include "tapehead/random/random.hpp"

namespace tapehead {

namespace detail {

template <class T>
void check_attention(const char* op, const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V, bool enable_gqa) {
  const auto fits = [&](bool good, std::string_view why) {
    require<ShapeError>(good, "{}: Q {}, K {}, V {}: {}", op, Q.shape(), K.shape(), V.shape(), why);
  };
  fits(Q.rank() >= 2 && K.rank() >= 2 && V.rank() >= 2, "each needs at least the axes (L, d)");
  if (Q.size(-1) != K.size(-1))
    fits(false, fmt::format("queries of width {} and keys of width {}; they must be equal", Q.size(-1), K.size(-1)));
  if (K.size(-2) != V.size(-2))
    fits(false, fmt::format("{} keys and {} values; each key has one value", K.size(-2), V.size(-2)));
  if (!enable_gqa) return;
  fits(Q.rank() >= 3 && K.rank() >= 3 && V.rank() >= 3, "grouped queries need a head axis, (…, H, L, d)");
  const std::int64_t Hq = Q.size(-3), Hkv = K.size(-3);
  if (Hkv != V.size(-3) || (Hkv == 0 ? Hq != 0 : Hq % Hkv != 0))
    fits(false, fmt::format("{} query heads on {} key and {} value heads; the query heads must be a multiple of the "
                            "others",
                            Hq, Hkv, V.size(-3)));
}

template <class T> std::vector<Tensor<T>> split_qkv(const char* op, const Tensor<T>& qkv, std::int64_t heads) {
  const std::int64_t others = qkv.rank() < 3 ? 0 : qkv.size(-3) - heads;
  require<ShapeError>(heads >= 1 && others >= 2 && others % 2 == 0 && heads % (others / 2) == 0,
                      "{}: qkv {} with {} query heads; it is (…, Hq + 2 Hkv, L, d), and Hkv divides Hq", op,
                      qkv.shape(), heads);
  return split(qkv, {heads, others / 2, others / 2}, -3);
}

void check_scores_operand(const char* op, const char* name, const Shape& shape, const Shape& scores) {
  require<ShapeError>(broadcasts_to(shape, scores),
                      "{}: a {} of shape {} does not broadcast to the scores' shape {}; aligned from the right, each "
                      "of its sizes must be the scores' or 1 (a padding mask is (B, 1, 1, Lk))",
                      op, name, shape, scores);
}

static void check_probability(const char* op, double p) {
  require<ValueError>(p >= 0 && p <= 1, "{}: dropout_p {}; it is a probability, so it must be in [0, 1]", op, p);
}
void check_dropout(const char* op, double dropout_p, const std::optional<Tensor<bool>>& keep_mask,
                   const TorchRandom* generator, const Shape& scores) {
  check_probability(op, dropout_p);
  if (dropout_p == 0) return;
  if (keep_mask) return check_scores_operand(op, "keep_mask", keep_mask->shape(), scores);
  require<ValueError>(generator != nullptr,
                      "{}: dropout_p {} with nothing to draw from; give .generator, or the .keep_mask itself", op,
                      dropout_p);
}

template <class T> Tensor<T> sink_logits(const char* op, const Tensor<T>& sinks, const Shape& scores) {
  Tensor<T> logits = unsqueeze(unsqueeze(sinks, -1), -1);
  check_scores_operand(op, "row of sinks", logits.shape(), scores);
  return logits;
}

}  // namespace detail

namespace {

// Each key head, repeated for the consecutive query heads that share it.
template <class T> Tensor<T> repeat_heads(const Tensor<T>& x, std::int64_t times) {
  if (times == 1) return x;
  const Tensor<T> grouped = unsqueeze(x, -3);  // (…, H, 1, L, d)
  Shape heads = x.shape();
  heads[x.rank() - 3] *= times;
  return reshape(broadcast_to(grouped, grouped.shape().replaced(grouped.rank() - 3, times)), heads);
}

// S = Q Kᵀ / √d_k, plus the bias, with -inf selected where the mask is false.
template <class T>
Tensor<T> masked_scores(const char* op, const Tensor<T>& Q, const Tensor<T>& K, const AttentionOptions<T>& options) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  const double d_k = static_cast<double>(Q.size(-1));
  Tensor<T> S = matmul(Q, mT(K));
  S = options.scale ? S * *options.scale : S / (d_k > 0 ? std::sqrt(d_k) : 1);
  if (options.bias) {
    detail::check_scores_operand(op, "bias", options.bias->shape(), S.shape());
    S = S + *options.bias;
  }
  if (options.mask) {
    detail::check_scores_operand(op, "mask", options.mask->shape(), S.shape());
    S = masked_fill(S, ~*options.mask, hidden);
  }
  const Align align = options.align.value_or(Align::top_left);
  return options.causal ? masked_fill(S, ~causal_mask(S.size(-2), S.size(-1), align), hidden) : S;
}

// The softmax of each row, and the weight that its sink takes.
template <class T> struct Weights {
  Tensor<T> A;                    // (…, Lq, Lk)
  std::optional<Tensor<T>> sink;  // (…, Lq, 1)
};
template <class T> Weights<T> weights(const char* op, const Tensor<T>& S, const AttentionOptions<T>& options) {
  if (!options.sinks) return {softmax(S, -1, options.empty_rows), {}};
  const Tensor<T> logits = detail::sink_logits(op, *options.sinks, S.shape());
  const Tensor<T> column = broadcast_to(logits, S.shape().replaced(S.rank() - 1, 1));
  const auto parts = split(softmax(cat<T>({column, S}, -1), -1, options.empty_rows), {1, S.size(-1)}, -1);
  return {parts[1], parts[0]};
}

// Which weights are kept; nothing where there is no dropout.
template <class T>
std::optional<Tensor<bool>> kept(const char* op, const Shape& scores, const AttentionOptions<T>& options) {
  const double p = options.dropout_p;
  detail::check_dropout(op, p, options.keep_mask, options.generator, scores);
  if (p == 0) return {};
  return options.keep_mask ? *options.keep_mask : attention_keep_mask(scores, p, options.generator->next_uint64());
}

template <class T>
std::int64_t heads_per_key_head(const Tensor<T>& Q, const Tensor<T>& K, const AttentionOptions<T>& options) {
  return options.enable_gqa && K.size(-3) > 0 ? Q.size(-3) / K.size(-3) : 1;
}

}  // namespace

Tensor<bool> attention_keep_mask(const Shape& scores, double dropout_p, std::uint64_t seed) {
  require<ShapeError>(scores.rank() >= 2, "attention_keep_mask: shape {}; weights are (…, Lq, Lk)", scores);
  detail::check_probability("attention_keep_mask", dropout_p);
  Buffer<bool> keep(scores, "attention_keep_mask");
  const std::int64_t Lk = scores[scores.rank() - 1], Lq = scores[scores.rank() - 2];
  const std::int64_t H = scores.rank() > 2 ? scores[scores.rank() - 3] : 1;
  for (std::int64_t row = 0; Lk > 0 && row < keep.numel() / Lk; ++row)
    kernels::dropout_row(seed, dropout_p, row / Lq / H, row / Lq % H, row % Lq, 0, Lk, true, keep.data() + row * Lk);
  return keep;
}

template <Floating T> Attention<T> attention(const Tensor<T>& Q, const Like<T>& K, const Like<T>& V,
                                             const AttentionOptions<std::type_identity_t<T>>& options) {
  detail::check_attention("attention", Q, K, V, options.enable_gqa);
  const std::int64_t group = heads_per_key_head(Q, K, options);
  const Tensor<T> S = masked_scores("attention", Q, repeat_heads(K, group), options);  // (…, Lq, Lk)
  const Tensor<T> A = weights("attention", S, options).A;
  const auto keep = kept("attention", S.shape(), options);
  const Tensor<T> dropped = keep ? dropout(A, options.dropout_p, *keep) : A;
  return {.out = matmul(dropped, repeat_heads(V, group)), .weights = A};
}

template <Floating T>
AttentionGradients<T> attention_backward(const Tensor<T>& Q, const Like<T>& K, const Like<T>& V, const Like<T>& dO,
                                         const AttentionOptions<std::type_identity_t<T>>& options) {
  detail::check_attention("attention_backward", Q, K, V, options.enable_gqa);
  const std::int64_t group = heads_per_key_head(Q, K, options);
  const Tensor<T> Kh = repeat_heads(K, group), Vh = repeat_heads(V, group);  // one for each query head
  const double scale = options.scale_for(Q.size(-1));

  AttentionGradients<T> g;
  g.S = masked_scores("attention_backward", Q, Kh, options);
  const auto [A, sink] = weights("attention_backward", g.S, options);
  g.A = A;
  const auto keep = kept("attention_backward", g.S.shape(), options);
  const Tensor<T> dropped = keep ? dropout(g.A, options.dropout_p, *keep) : g.A;
  g.O = matmul(dropped, Vh);
  require<ShapeError>(dO.shape() == g.O.shape(),
                      "attention_backward: dO has shape {}, the output {}; they must be equal", dO.shape(),
                      g.O.shape());

  const Tensor<T> dVh = matmul(mT(dropped), dO);  // dV = Aᵀ dO
  g.dA = matmul(dO, mT(Vh));                      // dA = dO Vᵀ
  if (keep) g.dA = dropout(g.dA, options.dropout_p, *keep);
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
  if (sink) g.d_sinks = sum_to(squeeze(sum(-*sink * g.D, -2), -1), options.sinks->shape());
  return g;
}

#define TAPEHEAD_ATTENTION(T)                                                                                        \
  template void detail::check_attention(const char*, const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, bool);    \
  template std::vector<Tensor<T>> detail::split_qkv(const char*, const Tensor<T>&, std::int64_t);                    \
  template Tensor<T> detail::sink_logits(const char*, const Tensor<T>&, const Shape&);                               \
  template Attention<T> attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, const AttentionOptions<T>&); \
  template AttentionGradients<T> attention_backward(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&,            \
                                                    const Tensor<T>&, const AttentionOptions<T>&);
TAPEHEAD_REALS(TAPEHEAD_ATTENTION)

}  // namespace tapehead
