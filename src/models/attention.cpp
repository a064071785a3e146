#include "tapehead/models/attention.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tapehead/attention/flash.hpp"
#include "tapehead/attention/linear_attention.hpp"
#include "tapehead/attention/sdpa.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/join.hpp"
#include "tapehead/ops/matmul.hpp"
#include "tapehead/ops/rope.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead::nn {

namespace {

// (…, L, heads · d) to (…, heads, L, d), and back.
template <class T>
Tensor<T> split_heads(const Tensor<T>& x, std::int64_t heads) {
  const Shape apart = x.shape().replaced(x.rank() - 1, heads).with(x.rank(), x.size(-1) / heads);
  return reshape(x, apart).transpose(-3, -2);
}
template <class T>
Tensor<T> merge_heads(const Tensor<T>& x) {
  const Tensor<T> rows = x.transpose(-3, -2);
  return reshape(
      rows, rows.shape().without(rows.rank() - 1).replaced(rows.rank() - 2, rows.size(-2) * rows.size(-1)));
}

Tensor<std::int64_t> positions(std::int64_t first, std::int64_t n) {
  return arange<std::int64_t>(first, first + n);
}

template <class T>
void check_input(const char* op, const Tensor<T>& x, std::int64_t width) {
  if (x.rank() < 2 || x.size(-1) != width)
    throw ShapeError(fmt::format("{}: input {}; it must be (…, L, {})", op, x.shape().str(), width));
}

}  // namespace

Implementation implementation(const std::string& name) {
  if (name == "eager") return Implementation::eager;
  if (name == "sdpa") return Implementation::sdpa;
  if (name == "flash" || name == "flash_attention_2") return Implementation::flash;
  if (name == "flex" || name == "flex_attention") return Implementation::flex;
  throw ValueError(fmt::format("implementation: '{}'; there are 'eager', 'sdpa', 'flash' and 'flex'", name));
}

namespace {

// SDPA has one mask, bool or float, and aligns causal top left: what it has no word for goes into the mask.
template <class T>
SdpaOptions<T> sdpa_options(std::int64_t Lq, std::int64_t Lk, const AttentionOptions<T>& o) {
  SdpaOptions<T> s{.dropout_p = o.dropout_p,
                   .is_causal = o.causal && (o.align == Align::top_left || Lq == Lk),
                   .scale = o.scale,
                   .enable_gqa = o.enable_gqa,
                   .generator = o.generator,
                   .keep_mask = o.keep_mask};
  std::optional<Tensor<bool>> mask = o.mask;
  if (o.causal && !s.is_causal) {
    const Tensor<bool> earlier = causal_mask(Lq, Lk, o.align);
    mask = mask ? *mask & earlier : earlier;
  }
  if (o.bias && mask)
    s.attn_mask = where(*mask, *o.bias, scalar(-std::numeric_limits<T>::infinity()));
  else if (o.bias)
    s.attn_mask = *o.bias;
  else if (mask)
    s.attn_mask = *mask;
  return s;
}

}  // namespace

template <std::floating_point T>
Tensor<T> attend(Implementation how, const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V,
                 const AttentionOptions<std::type_identity_t<T>>& options) {
  if (how == Implementation::eager) return attention(Q, K, V, options).out;
  if (how == Implementation::flash) return flash_attention(Q, K, V, options).out;
  std::optional<sdpa_kernel> pinned;
  if (how == Implementation::flex) pinned.emplace(Backend::flex);
  return scaled_dot_product_attention(Q, K, V, sdpa_options(Q.size(-2), K.size(-2), options));
}

// ---- One head ----

template <std::floating_point T>
SelfAttention<T>::SelfAttention(std::int64_t d_model, TorchRandom& rng, const Options& o)
    : SelfAttention(d_model, o.d_k > 0 ? o.d_k : d_model, rng, o) {}
template <std::floating_point T>
SelfAttention<T>::SelfAttention(std::int64_t d_model, std::int64_t d_k, TorchRandom& rng, const Options& o)
    : W_q(d_model, d_k, rng, false),
      W_k(d_model, d_k, rng, false),
      W_v(d_model, d_k, rng, false),
      W_o(d_k, d_model, rng, false),
      options(o),
      generator_(&rng) {}

template <std::floating_point T>
Tensor<T> SelfAttention<T>::operator()(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask) const {
  const Tensor<T> q = W_q(x);  // (B, L, d_k): what I seek
  const Tensor<T> k = W_k(x);  //              how to address me
  const Tensor<T> v = W_v(x);  //              what I return
  const Tensor<T> attended = attend(options.implementation, unsqueeze(q, 1), unsqueeze(k, 1),
                                    unsqueeze(v, 1),  // one head: (B, 1, L, d_k)
                                    {.mask = mask,
                                     .causal = options.causal,
                                     .dropout_p = this->training ? options.dropout : 0.0,
                                     .generator = generator_});
  return W_o(squeeze(attended, 1));
}

// ---- Several heads ----

template <std::floating_point T>
Heads<T>::Heads(const char* op, std::int64_t full_width, const HeadOptions& o)
    : heads(o.heads),
      kv_heads(o.kv_heads > 0 ? o.kv_heads : o.heads),
      head_dim(heads > 0 ? full_width / heads : 0) {
  if (heads < 1 || full_width % heads != 0 || heads % kv_heads != 0)
    throw ShapeError(
        fmt::format("{}: width {}, {} heads on {} key and value heads; the heads must divide the width, and "
                    "the key and value "
                    "heads the heads",
                    op, full_width, heads, kv_heads));
  if (o.rope && head_dim % 2 != 0)
    throw ShapeError(fmt::format("{}: heads of width {} / {} = {}; rope turns pairs, so it must be even", op,
                                 full_width, heads, head_dim));
  if (o.qk_norm) q_norm.emplace(head_dim), k_norm.emplace(head_dim);
  if (o.sinks) sinks = zeros<T>({heads});
}

// To heads, normalised and turned as asked for.
template <std::floating_point T>
Tensor<T> Heads<T>::split(const Tensor<T>& x, std::int64_t count, const std::optional<RMSNorm<T>>& norm,
                          const HeadOptions& o, std::int64_t first_position) const {
  Tensor<T> y = split_heads(x, count);
  if (norm) y = (*norm)(y);
  return o.rope ? rope(y, positions(first_position, y.size(-2)), o.rope_theta) : y;
}

// A sink is one more key in front of the others, of zeros, with its logit as a bias, and a value of zeros.
// Causal attention aligned bottom right then shows it to every query.
template <std::floating_point T>
Tensor<T> Heads<T>::attended(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V, Implementation how,
                             AttentionOptions<T> o) const {
  if (!sinks) return attend(how, Q, K, V, o);
  const auto with_zeros = [](const Tensor<T>& x) {
    return cat<T>({zeros<T>(x.shape().replaced(x.rank() - 2, 1)), x}, -2);
  };
  const std::int64_t Lk = K.size(-2);
  o.bias = cat<T>({reshape(*sinks, {heads, 1, 1}), zeros<T>({heads, 1, Lk})}, -1);
  if (o.mask) {
    const Tensor<bool> mask = o.mask->size(-1) == Lk
                                  ? *o.mask
                                  : broadcast_to(*o.mask, o.mask->shape().replaced(o.mask->rank() - 1, Lk));
    o.mask = cat<bool>({ones<bool>(mask.shape().replaced(mask.rank() - 1, 1)), mask}, -1);
  }
  return attend(how, Q, with_zeros(K), with_zeros(V), o);
}

template <std::floating_point T>
AttentionOptions<T> Heads<T>::attention_options(const HeadOptions& o, const std::optional<Tensor<bool>>& mask,
                                                TorchRandom* dropout_generator) const {
  return {.mask = mask,
          .causal = o.causal,
          .align = Align::bottom_right,
          .enable_gqa = kv_heads != heads,
          .dropout_p = dropout_generator != nullptr ? o.dropout : 0.0,
          .generator = dropout_generator};
}

template <std::floating_point T>
Tensor<T> Heads<T>::operator()(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                               const HeadOptions& o, const std::optional<Tensor<bool>>& mask,
                               TorchRandom* dropout_generator) const {
  return merge_heads(attended(split(q, heads, q_norm, o, 0), split(k, kv_heads, k_norm, o, 0),
                              split_heads(v, kv_heads), o.implementation,
                              attention_options(o, mask, dropout_generator)));
}

template <std::floating_point T>
Tensor<T> Heads<T>::operator()(const Tensor<T>& qkv, const HeadOptions& o,
                               const std::optional<Tensor<bool>>& mask,
                               TorchRandom* dropout_generator) const {
  const bool as_they_are = !q_norm && !sinks && !o.rope;
  const bool fused = o.implementation == Implementation::sdpa || o.implementation == Implementation::flash;
  if (!as_they_are || !fused) {
    const auto parts = split_qkv(qkv);
    return (*this)(parts[0], parts[1], parts[2], o, mask, dropout_generator);
  }
  const Tensor<T> packed = split_heads(qkv, heads + 2 * kv_heads);
  const auto options = attention_options(o, mask, dropout_generator);
  if (o.implementation == Implementation::flash)
    return merge_heads(flash_attention_qkvpacked(packed, heads, options).out);
  const std::int64_t L = packed.size(-2);
  return merge_heads(scaled_dot_product_attention_qkvpacked(packed, heads, sdpa_options(L, L, options)));
}

template <std::floating_point T>
std::vector<Tensor<T>> Heads<T>::split_qkv(const Tensor<T>& qkv) const {
  return tapehead::split(qkv, {width(), kv_width(), kv_width()}, -1);
}

template <std::floating_point T>
Tensor<T> Heads<T>::decode(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, const HeadOptions& o,
                           KVCache<T>& cache) const {
  const std::int64_t from = cache.length();
  const Tensor<T> Q = split(q, heads, q_norm, o, from);
  cache.append(split(k, kv_heads, k_norm, o, from), split_heads(v, kv_heads));
  if (!sinks) return merge_heads(tapehead::decode(Q, cache));
  HeadOptions causal = o;
  causal.causal = true;
  return merge_heads(
      attended(Q, cache.keys(), cache.values(), o.implementation, attention_options(causal, {}, nullptr)));
}

template <std::floating_point T>
MultiHeadAttention<T>::MultiHeadAttention(std::int64_t width, TorchRandom& rng, const HeadOptions& o,
                                          std::int64_t context_width)
    : options(o),
      heads("MultiHeadAttention", width, o),
      q_proj(width, heads.width(), rng, o.bias),
      k_proj(context_width > 0 ? context_width : width, heads.kv_width(), rng, o.bias),
      v_proj(context_width > 0 ? context_width : width, heads.kv_width(), rng, o.bias),
      o_proj(heads.width(), width, rng, o.bias),
      generator_(&rng) {}

template <std::floating_point T>
Tensor<T> MultiHeadAttention<T>::operator()(const Tensor<T>& x,
                                            const std::optional<Tensor<bool>>& mask) const {
  check_input("MultiHeadAttention", x, q_proj.weight.size(1));
  return o_proj(heads(q_proj(x), k_proj(x), v_proj(x), options, mask, this->training ? generator_ : nullptr));
}

template <std::floating_point T>
Tensor<T> MultiHeadAttention<T>::cross(const Tensor<T>& x, const Tensor<T>& context,
                                       const std::optional<Tensor<bool>>& mask) const {
  check_input("MultiHeadAttention", x, q_proj.weight.size(1));
  check_input("MultiHeadAttention", context, k_proj.weight.size(1));
  HeadOptions o = options;
  o.causal = false;
  return o_proj(
      heads(q_proj(x), k_proj(context), v_proj(context), o, mask, this->training ? generator_ : nullptr));
}

template <std::floating_point T>
Tensor<T> MultiHeadAttention<T>::decode(const Tensor<T>& x, KVCache<T>& cache) const {
  check_input("MultiHeadAttention", x, q_proj.weight.size(1));
  return o_proj(heads.decode(q_proj(x), k_proj(x), v_proj(x), options, cache));
}

template <std::floating_point T>
KVCache<T> MultiHeadAttention<T>::make_cache(const Shape& lead, std::int64_t capacity) const {
  return KVCache<T>(lead.with(lead.rank(), heads.kv_heads), capacity, heads.head_dim);
}

// ---- Latent ----

template <std::floating_point T>
LatentAttention<T>::LatentAttention(std::int64_t width, TorchRandom& rng, const Options& o)
    : options(o),
      q_proj(width, o.heads * (o.nope_dim + o.rope_dim), rng, false),
      kv_a_proj_with_mqa(width, o.kv_rank + o.rope_dim, rng, false),
      kv_a_layernorm(o.kv_rank),
      kv_b_proj(o.kv_rank, o.heads * (o.nope_dim + o.v_dim), rng, false),
      o_proj(o.heads * o.v_dim, width, rng, false),
      generator_(&rng) {
  if (o.heads < 1 || o.kv_rank < 1 || o.nope_dim < 1 || o.v_dim < 1 || o.rope_dim < 2 || o.rope_dim % 2 != 0)
    throw ShapeError(
        fmt::format("LatentAttention: {} heads, kv_rank {}, nope_dim {}, rope_dim {}, v_dim {}; each must be "
                    "1 or more, and "
                    "rope_dim even",
                    o.heads, o.kv_rank, o.nope_dim, o.rope_dim, o.v_dim));
}

template <std::floating_point T>
typename LatentAttention<T>::Compressed LatentAttention<T>::compress(const Tensor<T>& x,
                                                                     std::int64_t first_position) const {
  const auto parts = tapehead::split(kv_a_proj_with_mqa(x), {options.kv_rank, options.rope_dim}, -1);
  return {unsqueeze(kv_a_layernorm(parts[0]), -3),
          unsqueeze(rope(parts[1], positions(first_position, x.size(-2)), options.rope_theta), -3)};
}

// Each head's query: the part without a position, and the part with one.
template <std::floating_point T>
std::pair<Tensor<T>, Tensor<T>> LatentAttention<T>::queries(const Tensor<T>& x,
                                                            std::int64_t first_position) const {
  const auto parts =
      tapehead::split(split_heads(q_proj(x), options.heads), {options.nope_dim, options.rope_dim}, -1);
  return {parts[0], rope(parts[1], positions(first_position, x.size(-2)), options.rope_theta)};
}

template <std::floating_point T>
Tensor<T> LatentAttention<T>::operator()(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask) const {
  check_input("LatentAttention", x, q_proj.weight.size(1));
  const auto [q_nope, q_rope] = queries(x, 0);
  const Compressed z = compress(x, 0);
  const auto kv = tapehead::split(split_heads(kv_b_proj(squeeze(z.c, -3)), options.heads),
                                  {options.nope_dim, options.v_dim}, -1);
  const Tensor<T> k_rope = broadcast_to(z.key, q_rope.shape());  // one for all heads
  return o_proj(merge_heads(attend(options.implementation, cat<T>({q_nope, q_rope}, -1),
                                   cat<T>({kv[0], k_rope}, -1), kv[1],
                                   {.mask = mask,
                                    .causal = options.causal,
                                    .dropout_p = this->training ? options.dropout : 0.0,
                                    .generator = generator_})));
}

// q_nope·(W_uk c) = (q_nope W_uk)·c, and Σ a (W_uv c) = W_uv Σ a c: attention runs over the rows c
// themselves.
template <std::floating_point T>
Tensor<T> LatentAttention<T>::decode(const Tensor<T>& x, KVCache<T>& cache) const {
  check_input("LatentAttention", x, q_proj.weight.size(1));
  const auto [q_nope, q_rope] = queries(x, cache.length());
  const Compressed z = compress(x, cache.length());
  cache.append(z.key, z.c);
  const Tensor<T> up =
      reshape(kv_b_proj.weight, {options.heads, options.nope_dim + options.v_dim, options.kv_rank});
  const Tensor<T> W_uk = slice(up, 1, 0, options.nope_dim), W_uv = slice(up, 1, options.nope_dim, up.size(1));
  const double scale = 1 / std::sqrt(static_cast<double>(options.nope_dim + options.rope_dim));
  const Tensor<T> latent = attention(matmul(q_nope, W_uk), cache.values(), cache.values(),
                                     {.bias = matmul(q_rope, mT(cache.keys())) * scale,
                                      .causal = true,
                                      .align = Align::bottom_right,
                                      .scale = scale})
                               .out;
  return o_proj(merge_heads(matmul(latent, mT(W_uv))));
}

template <std::floating_point T>
KVCache<T> LatentAttention<T>::make_cache(const Shape& lead, std::int64_t capacity) const {
  return KVCache<T>(lead.with(lead.rank(), 1), capacity, options.rope_dim, options.kv_rank);
}

// ---- Without dot products, without softmax ----

template <std::floating_point T>
AdditiveAttention<T>::AdditiveAttention(std::int64_t query_width, std::int64_t key_width, std::int64_t hidden,
                                        TorchRandom& rng)
    : W_q(query_width, hidden, rng, false), W_k(key_width, hidden, rng, false), v(hidden, 1, rng, false) {}

template <std::floating_point T>
Attention<T> AdditiveAttention<T>::operator()(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& values,
                                              const std::optional<Tensor<bool>>& mask) const {
  check_input("AdditiveAttention", q, W_q.weight.size(1));
  check_input("AdditiveAttention", k, W_k.weight.size(1));
  if (values.rank() < 2 || values.size(-2) != k.size(-2))
    throw ShapeError(fmt::format("AdditiveAttention: keys {} and values {}; each key has one value",
                                 k.shape().str(), values.shape().str()));
  const Tensor<T> hidden = tanh(unsqueeze(W_q(q), -2) + unsqueeze(W_k(k), -3));  // (…, Lq, Lk, hidden)
  Tensor<T> scores = squeeze(v(hidden), -1);
  if (mask) scores = masked_fill(scores, ~*mask, -std::numeric_limits<T>::infinity());
  const Tensor<T> weights = softmax(scores, -1, EmptyRows::zero);
  return {matmul(weights, values), weights};
}

template <std::floating_point T>
LinearAttention<T>::LinearAttention(std::int64_t width, std::int64_t n, TorchRandom& rng, bool is_causal)
    : heads(n),
      causal(is_causal),
      q_proj(width, width, rng, false),
      k_proj(width, width, rng, false),
      v_proj(width, width, rng, false),
      o_proj(width, width, rng, false) {
  if (n < 1 || width % n != 0)
    throw ShapeError(
        fmt::format("LinearAttention: width {}, {} heads; the heads must divide the width", width, n));
}
template <std::floating_point T>
Tensor<T> LinearAttention<T>::operator()(const Tensor<T>& x) const {
  check_input("LinearAttention", x, q_proj.weight.size(1));
  const auto to_heads = [this](const Tensor<T>& y) { return split_heads(y, heads); };
  return o_proj(
      merge_heads(linear_attention(to_heads(q_proj(x)), to_heads(k_proj(x)), to_heads(v_proj(x)), causal)));
}

#define TAPEHEAD_NN_ATTENTION(T)                                                                  \
  template Tensor<T> attend(Implementation, const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, \
                            const AttentionOptions<T>&);                                          \
  template struct SelfAttention<T>;                                                               \
  template struct Heads<T>;                                                                       \
  template struct MultiHeadAttention<T>;                                                          \
  template struct LatentAttention<T>;                                                             \
  template struct AdditiveAttention<T>;                                                           \
  template struct LinearAttention<T>;
TAPEHEAD_NN_ATTENTION(float)
TAPEHEAD_NN_ATTENTION(double)

}  // namespace tapehead::nn
