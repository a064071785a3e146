#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "tapehead/attention/attention.hpp"
#include "tapehead/caches/cache.hpp"
#include "tapehead/models/layers.hpp"
#include "tapehead/ops/join.hpp"
#include "tapehead/ops/reduce.hpp"

namespace tapehead::nn {

/// The implementation of attention that a module uses: attention(), the dispatcher's choice, flash_attention(), or
/// flex_attention(). last_sdpa_backend() says which one ran, except for eager.
enum class Implementation { eager, sdpa, flash, flex };
/// By the names of the chapter's one-line flag: "eager", "sdpa", "flash" or "flash_attention_2", "flex" or
/// "flex_attention". Throws ValueError for another name.
Implementation implementation(const std::string& name);
/// Sets it for every attention inside a model: `set_implementation(model, "flash")`.
template <class M> void set_implementation(M& model, const std::string& name) {
  model.each_module([how = implementation(name)](auto& module) {
    if constexpr (requires { module.options.implementation; }) module.options.implementation = how;
  });
}

/// attention(Q, K, V, options) by the implementation asked for; only eager gives the weights too. Throws ValueError, with
/// the reason, where that one cannot serve the call.
template <Floating T> Attention<T> attend(Implementation how, const Tensor<T>& Q, const Like<T>& K, const Like<T>& V,
                                          const AttentionOptions<std::type_identity_t<T>>& options);

/// The same for queries, keys and values side by side, (…, Hq + 2 Hkv, L, d).
template <Floating T> Tensor<T> attend_packed(Implementation how, const Tensor<T>& qkv, std::int64_t heads,
                                              const AttentionOptions<std::type_identity_t<T>>& options);

/// (…, L, heads · d) to (…, heads, L, d), and back.
template <class T> Tensor<T> split_heads(const Tensor<T>& x, std::int64_t heads);
template <class T> Tensor<T> merge_heads(const Tensor<T>& x);
/// rope() of x (…, L, d) at the positions first_position, first_position + 1, …
template <class T> Tensor<T> rotated(const Tensor<T>& x, std::int64_t first_position, double theta);

/// Single-head self-attention: x → (Q, K, V) → attention → output projection. x and y are (B, L, d_model).
template <Floating T> struct SelfAttention : Module<SelfAttention<T>, T> {
  struct Options {
    std::int64_t d_k = 0;  ///< 0: d_model
    bool causal = false;
    double dropout = 0;  ///< of the attention weights, while training; drawn from the constructor's generator
    Implementation implementation = Implementation::eager;
  };
  Options options;
  Linear<T> W_q, W_k, W_v, W_o;

  SelfAttention(std::int64_t d_model, TorchRandom& rng, const Options& o = {})
      : options{o.d_k != 0 ? o.d_k : d_model, o.causal, o.dropout, o.implementation},
        W_q(d_model, options.d_k, rng, false),
        W_k(d_model, options.d_k, rng, false),
        W_v(d_model, options.d_k, rng, false),
        W_o(options.d_k, d_model, rng, false),
        generator_(&rng) {}
  Tensor<T> operator()(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask = {}) const {
    const Tensor<T> q = split_heads(W_q(x), 1);  // (B, 1, L, d_k): what I seek
    const Tensor<T> k = split_heads(W_k(x), 1);  //                 how to address me
    const Tensor<T> v = split_heads(W_v(x), 1);  //                 what I return
    return W_o(merge_heads(attend(options.implementation, q, k, v,
                                  {.mask = mask,
                                   .causal = options.causal,
                                   .dropout_p = this->training ? options.dropout : 0.0,
                                   .generator = generator_})
                               .out));
  }

  template <class F> void members(F&& visit) {
    visit("W_q", W_q), visit("W_k", W_k), visit("W_v", W_v), visit("W_o", W_o);
  }

 private:
  TorchRandom* generator_;
};

/// Options for multi-head attention.
struct HeadOptions {
  std::int64_t heads = 1;
  /// 0: as many as heads; 1: multi-query (Shazeer 2019); between: grouped (Ainslie et al. 2023).
  std::int64_t kv_heads = 0;
  bool causal = false;
  double dropout = 0;  ///< of the attention weights, while training
  bool bias = true;    ///< in the projections
  bool rope = false;   ///< rotates queries and keys by their positions: see rope()
  double rope_theta = 10'000;
  bool qk_norm = false;  ///< normalises queries and keys head by head (RMS), before the rotation
  bool sinks = false;    ///< a learned logit for each head: see AttentionOptions::sinks
  Implementation implementation = Implementation::sdpa;
};

/// The part between the projections: queries, keys and values to heads, attention, and back. Holds the parameters
/// that QK-norm and sinks bring.
template <Floating T> struct Heads {
  std::int64_t heads, kv_heads, head_dim;
  std::optional<RMSNorm<T>> q_norm, k_norm;
  std::optional<Tensor<T>> sinks;  ///< (heads,), starting at 0

  /// Throws ShapeError unless kv_heads divides heads, and heads the width.
  Heads(const char* op, std::int64_t width, const HeadOptions& options);
  std::int64_t width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }

  /// q is (…, Lq, width), k and v (…, Lk, kv_width); the output (…, Lq, width), and from eager the weights, (…, heads,
  /// Lq, Lk). Masks broadcast to these.
  Attention<T> operator()(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, const HeadOptions& o,
                          const std::optional<Tensor<bool>>& mask, TorchRandom* dropout_generator) const {
    auto y = attend(o.implementation, split(q, heads, q_norm, o, 0), split(k, kv_heads, k_norm, o, 0),
                    split_heads(v, kv_heads), attention_options(o, mask, dropout_generator));
    return {merge_heads(y.out), y.weights};
  }
  /// The same for q, k and v side by side, (…, L, width + 2 kv_width). The fused kernel takes them as they are if
  /// they are neither normalised nor rotated.
  Tensor<T> operator()(const Tensor<T>& qkv, const HeadOptions& o, const std::optional<Tensor<bool>>& mask,
                       TorchRandom* dropout_generator) const {
    if (!q_norm && !o.rope && o.implementation != Implementation::eager)
      return merge_heads(attend_packed(o.implementation, split_heads(qkv, heads + 2 * kv_heads), heads,
                                       attention_options(o, mask, dropout_generator)));
    const auto parts = split_qkv(qkv);
    return (*this)(parts[0], parts[1], parts[2], o, mask, dropout_generator).out;
  }
  /// q, k and v of such rows.
  std::vector<Tensor<T>> split_qkv(const Tensor<T>& qkv) const {
    return tapehead::split(qkv, {width(), kv_width(), kv_width()}, -1);
  }
  /// The same for new tokens: their keys and values are appended to the cache, their queries see all of it.
  Tensor<T> decode(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, const HeadOptions& o,
                   KVCache<T>& cache) const {
    const std::int64_t from = cache.length();
    const Tensor<T> Q = split(q, heads, q_norm, o, from);
    cache.append(split(k, kv_heads, k_norm, o, from), split_heads(v, kv_heads));
    return merge_heads(tapehead::decode(Q, cache, {.sinks = sinks}));
  }
  /// An empty cache for sequences of leading axes `lead`, (B,) for instance.
  KVCache<T> make_cache(const Shape& lead, std::int64_t capacity) const {
    return KVCache<T>(lead.with(lead.rank(), kv_heads), capacity, head_dim);
  }

  template <class F> void members(F&& visit) {
    visit("q_norm", q_norm), visit("k_norm", k_norm), visit("sinks", sinks);
  }

 private:
  // To heads, normalised and rotated as asked for.
  Tensor<T> split(const Tensor<T>& x, std::int64_t count, const std::optional<RMSNorm<T>>& norm, const HeadOptions& o,
                  std::int64_t first_position) const {
    const Tensor<T> y = split_heads(x, count);
    const Tensor<T> normed = norm ? (*norm)(y) : y;
    return o.rope ? rotated(normed, first_position, o.rope_theta) : normed;
  }
  AttentionOptions<T> attention_options(const HeadOptions& o, const std::optional<Tensor<bool>>& mask,
                                        TorchRandom* dropout_generator) const {
    return {.mask = mask,
            .sinks = sinks,
            .causal = o.causal,
            .align = Align::bottom_right,
            .enable_gqa = kv_heads != heads,
            .dropout_p = dropout_generator != nullptr ? o.dropout : 0.0,
            .generator = dropout_generator};
  }
};

/// Attention by several heads, each with its part of the width: of x to itself, or of x to a context. Vaswani et al.
/// (2017), section 3.2.2.
template <Floating T> struct MultiHeadAttention : Module<MultiHeadAttention<T>, T> {
  HeadOptions options;
  Heads<T> heads;
  Linear<T> q_proj, k_proj, v_proj, o_proj;

  /// Inputs of `width`; a context of context_width (0: the same).
  MultiHeadAttention(std::int64_t width, TorchRandom& rng, const HeadOptions& o, std::int64_t context_width = 0)
      : options(o),
        heads("MultiHeadAttention", width, o),
        q_proj(width, heads.width(), rng, o.bias),
        k_proj(context_width != 0 ? context_width : width, heads.kv_width(), rng, o.bias),
        v_proj(context_width != 0 ? context_width : width, heads.kv_width(), rng, o.bias),
        o_proj(heads.width(), width, rng, o.bias),
        generator_(&rng) {}

  /// x is (…, L, width). The mask broadcasts to (…, heads, L, L): a padding mask is (B, 1, 1, L).
  Tensor<T> operator()(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask = {}) const {
    return attended(x, x, mask, options).out;
  }
  /// Queries from x, (…, L, width), keys and values from a context, (…, Lk, context_width). Never causal.
  Tensor<T> cross(const Tensor<T>& x, const Tensor<T>& context, const std::optional<Tensor<bool>>& mask = {}) const {
    return attended(x, context, mask, with(false, options.implementation)).out;
  }
  /// The results of these two and the attention weights before dropout: their mean over the heads, (…, L, Lk), as
  /// PyTorch's need_weights gives it, or all of them, (…, heads, L, Lk). Computed by attention(), because no fused kernel
  /// has the weights.
  Attention<T> with_weights(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask = {},
                            bool average_attn_weights = true) const {
    return averaged(attended(x, x, mask, with(options.causal, Implementation::eager)), average_attn_weights);
  }
  Attention<T> cross_with_weights(const Tensor<T>& x, const Tensor<T>& context,
                                  const std::optional<Tensor<bool>>& mask = {},
                                  bool average_attn_weights = true) const {
    return averaged(attended(x, context, mask, with(false, Implementation::eager)), average_attn_weights);
  }
  /// The next tokens x, (…, n, width), behind those that the cache holds; their keys and values are appended to it.
  /// Causal.
  Tensor<T> decode(const Tensor<T>& x, KVCache<T>& cache) const {
    return o_proj(heads.decode(q_proj(x), k_proj(x), v_proj(x), options, cache));
  }
  KVCache<T> make_cache(const Shape& lead, std::int64_t capacity) const { return heads.make_cache(lead, capacity); }

  template <class F> void members(F&& visit) {
    visit("q_proj", q_proj), visit("k_proj", k_proj), visit("v_proj", v_proj), visit("o_proj", o_proj);
    heads.members(visit);
  }

 private:
  HeadOptions with(bool causal, Implementation how) const {
    HeadOptions o = options;
    o.causal = causal, o.implementation = how;
    return o;
  }
  static Attention<T> averaged(const Attention<T>& y, bool average) {
    return {y.out, average ? mean(y.weights, -3) : y.weights};
  }
  Attention<T> attended(const Tensor<T>& x, const Tensor<T>& context, const std::optional<Tensor<bool>>& mask,
                        const HeadOptions& o) const {
    auto y = heads(q_proj(x), k_proj(context), v_proj(context), o, mask, this->training ? generator_ : nullptr);
    return {o_proj(y.out), y.weights};
  }
  TorchRandom* generator_;
};

}  // namespace tapehead::nn
