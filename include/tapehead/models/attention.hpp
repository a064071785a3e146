#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapehead/attention/attention.hpp"
#include "tapehead/caches/cache.hpp"
#include "tapehead/models/layers.hpp"

namespace tapehead::nn {

/// How a module attends: attention(), scaled_dot_product_attention() with whatever it chooses,
/// flash_attention(), or flex_attention().
enum class Implementation { eager, sdpa, flash, flex };
/// By the names of the chapter's one-line flag: "eager", "sdpa", "flash" or "flash_attention_2", "flex" or
/// "flex_attention". Throws ValueError on another.
Implementation implementation(const std::string& name);
/// The same for every attention inside a model: `set_implementation(model, "flash")`.
template <class M>
void set_implementation(M& model, const std::string& name) {
  model.each_module([how = implementation(name)](auto& module) {
    if constexpr (requires { module.options.implementation; }) module.options.implementation = how;
  });
}

/// attention(Q, K, V, options).out, by the implementation asked for: the one place where modules choose.
template <std::floating_point T>
Tensor<T> attend(Implementation how, const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V,
                 const AttentionOptions<std::type_identity_t<T>>& options);

/// Single-head self-attention: x → (Q, K, V) → attention → output projection. x and y are (B, L, d_model).
template <std::floating_point T>
struct SelfAttention : Module<SelfAttention<T>, T> {
  struct Options {
    std::int64_t d_k = 0;  ///< 0: d_model
    bool causal = false;
    /// Of the attention weights, while training; drawn from the generator given at birth.
    double dropout = 0;
    Implementation implementation = Implementation::eager;
  };
  Linear<T> W_q, W_k, W_v, W_o;
  Options options;

  SelfAttention(std::int64_t d_model, TorchRandom& rng, const Options& o = {});
  Tensor<T> operator()(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask = {}) const;

  template <class F>
  void members(F&& visit) {
    visit("W_q", W_q), visit("W_k", W_k), visit("W_v", W_v), visit("W_o", W_o);
  }

 private:
  SelfAttention(std::int64_t d_model, std::int64_t d_k, TorchRandom& rng, const Options& o);
  TorchRandom* generator_;
};

/// What several heads can be asked for.
struct HeadOptions {
  std::int64_t heads = 1;
  /// 0: as many as heads; 1: multi-query (Shazeer 2019); between: grouped (Ainslie et al. 2023).
  std::int64_t kv_heads = 0;
  bool causal = false;
  double dropout = 0;  ///< of the attention weights, while training
  bool bias = true;    ///< in the projections
  bool rope = false;   ///< queries and keys turned by their positions: see rope()
  double rope_theta = 10'000;
  bool qk_norm = false;  ///< queries and keys normalised head by head (RMS), before they are turned
  /// A learned logit a head, beside the keys: it takes weight and gives no value, so that a head can attend
  /// to (nearly) nothing (Xiao et al. 2023 with a token of its own; OpenAI's gpt-oss, 2025, with a logit
  /// alone).
  bool sinks = false;
  /// sdpa takes the fused kernel, or one operation after another where gradients are to be differentiated
  /// again.
  Implementation implementation = Implementation::sdpa;
};

/// The part between the projections: queries, keys and values to heads, attention, and back. Holds the
/// parameters that QK-norm and sinks bring.
template <std::floating_point T>
struct Heads {
  std::int64_t heads, kv_heads, head_dim;
  std::optional<RMSNorm<T>> q_norm, k_norm;
  std::optional<Tensor<T>> sinks;  ///< (heads,), starting at 0

  /// Throws ShapeError where the heads do not divide the width, or the kv_heads the heads.
  Heads(const char* op, std::int64_t width, const HeadOptions& options);
  std::int64_t width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }

  /// q is (…, Lq, width), k and v (…, Lk, kv_width); the result (…, Lq, width). Masks broadcast to (…, heads,
  /// Lq, Lk).
  Tensor<T> operator()(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, const HeadOptions& options,
                       const std::optional<Tensor<bool>>& mask, TorchRandom* dropout_generator) const;
  /// The same where q, k and v lie side by side, (…, L, width + 2 kv_width): as one, where nothing is done to
  /// them before the fused kernel takes them.
  Tensor<T> operator()(const Tensor<T>& qkv, const HeadOptions& options,
                       const std::optional<Tensor<bool>>& mask, TorchRandom* dropout_generator) const;
  /// q, k and v of such rows.
  std::vector<Tensor<T>> split_qkv(const Tensor<T>& qkv) const;
  /// The same for new tokens: their keys and values go into the cache, their queries see all that it holds.
  Tensor<T> decode(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, const HeadOptions& options,
                   KVCache<T>& cache) const;

  template <class F>
  void members(F&& visit) {
    if (q_norm) visit("q_norm", *q_norm), visit("k_norm", *k_norm);
    if (sinks) visit("sinks", *sinks);
  }

 private:
  AttentionOptions<T> attention_options(const HeadOptions& options, const std::optional<Tensor<bool>>& mask,
                                        TorchRandom* dropout_generator) const;
  Tensor<T> split(const Tensor<T>& x, std::int64_t count, const std::optional<RMSNorm<T>>& norm,
                  const HeadOptions& options, std::int64_t first_position) const;
  Tensor<T> attended(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V, Implementation how,
                     AttentionOptions<T> options) const;
};

/// Attention by several heads, each with its share of the width: of x to itself, or of x to a context.
/// Vaswani et al. (2017), section 3.2.2.
template <std::floating_point T>
struct MultiHeadAttention : Module<MultiHeadAttention<T>, T> {
  HeadOptions options;
  Heads<T> heads;
  Linear<T> q_proj, k_proj, v_proj, o_proj;

  /// Inputs of `width`; a context of context_width (0: the same).
  MultiHeadAttention(std::int64_t width, TorchRandom& rng, const HeadOptions& options,
                     std::int64_t context_width = 0);

  /// x is (…, L, width). The mask broadcasts to (…, heads, L, L): a padding mask is (B, 1, 1, L).
  Tensor<T> operator()(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask = {}) const;
  /// Queries from x, (…, L, width), keys and values from a context, (…, Lk, context_width). Never causal.
  Tensor<T> cross(const Tensor<T>& x, const Tensor<T>& context,
                  const std::optional<Tensor<bool>>& mask = {}) const;
  /// The next tokens x, (…, n, width), behind those that the cache holds; their keys and values go into it.
  /// Causal.
  Tensor<T> decode(const Tensor<T>& x, KVCache<T>& cache) const;
  /// An empty cache for sequences of leading axes `lead`, (B,) for instance.
  KVCache<T> make_cache(const Shape& lead, std::int64_t capacity) const;

  template <class F>
  void members(F&& visit) {
    visit("q_proj", q_proj), visit("k_proj", k_proj), visit("v_proj", v_proj), visit("o_proj", o_proj);
    heads.members(visit);
  }

 private:
  TorchRandom* generator_;
};

/// Multi-head latent attention: keys and values of all heads come from one short row a token, c = norm(x W),
/// which is all that a cache has to hold, beside one key of rope_dim elements that carries the position for
/// all heads. DeepSeek-AI, "DeepSeek-V2" (2024), section 2.1; parameter names are those of its published
/// model.
template <std::floating_point T>
struct LatentAttention : Module<LatentAttention<T>, T> {
  struct Options {
    std::int64_t heads = 1;
    std::int64_t kv_rank = 0;   ///< width of c
    std::int64_t nope_dim = 0;  ///< of each head's query and key: the part without a position
    std::int64_t rope_dim = 0;  ///< the part with one (even)
    std::int64_t v_dim = 0;     ///< of each head's value
    bool causal = true;
    double dropout = 0;
    double rope_theta = 10'000;
    Implementation implementation = Implementation::eager;
  };
  Options options;
  Linear<T> q_proj;              ///< width → heads (nope_dim + rope_dim)
  Linear<T> kv_a_proj_with_mqa;  ///< width → kv_rank + rope_dim
  RMSNorm<T> kv_a_layernorm;     ///< of c
  Linear<T> kv_b_proj;           ///< kv_rank → heads (nope_dim + v_dim)
  Linear<T> o_proj;              ///< heads v_dim → width

  LatentAttention(std::int64_t width, TorchRandom& rng, const Options& options);
  /// x is (…, L, width).
  Tensor<T> operator()(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask = {}) const;
  /// The next tokens behind those that the cache holds. Keys and values are never made: the query is taken
  /// into c's space, and the weighted sum of c out of it (W_uk and W_uv absorbed).
  Tensor<T> decode(const Tensor<T>& x, KVCache<T>& cache) const;
  /// An empty cache: kv_rank + rope_dim numbers a token.
  KVCache<T> make_cache(const Shape& lead, std::int64_t capacity) const;

  template <class F>
  void members(F&& visit) {
    visit("q_proj", q_proj), visit("kv_a_proj_with_mqa", kv_a_proj_with_mqa),
        visit("kv_a_layernorm", kv_a_layernorm);
    visit("kv_b_proj", kv_b_proj), visit("o_proj", o_proj);
  }

 private:
  struct Compressed {
    Tensor<T> c, key;  // (…, 1, L, kv_rank) and (…, 1, L, rope_dim)
  };
  Compressed compress(const Tensor<T>& x, std::int64_t first_position) const;
  std::pair<Tensor<T>, Tensor<T>> queries(const Tensor<T>& x, std::int64_t first_position) const;
  TorchRandom* generator_;
};

/// Scores by a small network, vᵀ tanh(W_q q + W_k k), instead of a dot product: queries and keys may differ
/// in width. Bahdanau, Cho, Bengio (2014).
template <std::floating_point T>
struct AdditiveAttention : Module<AdditiveAttention<T>, T> {
  Linear<T> W_q, W_k, v;

  AdditiveAttention(std::int64_t query_width, std::int64_t key_width, std::int64_t hidden, TorchRandom& rng);
  /// q is (…, Lq, query_width), k (…, Lk, key_width), values (…, Lk, d_v); memory grows with Lq · Lk ·
  /// hidden. A query that may attend to nothing gives zeros.
  Attention<T> operator()(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& values,
                          const std::optional<Tensor<bool>>& mask = {}) const;

  template <class F>
  void members(F&& visit) {
    visit("W_q", W_q), visit("W_k", W_k), visit("v", v);
  }
};

/// Several heads of linear_attention(): no softmax, and time and memory linear in the length.
template <std::floating_point T>
struct LinearAttention : Module<LinearAttention<T>, T> {
  std::int64_t heads;
  bool causal;
  Linear<T> q_proj, k_proj, v_proj, o_proj;

  LinearAttention(std::int64_t width, std::int64_t heads, TorchRandom& rng, bool causal = false);
  /// x is (…, L, width).
  Tensor<T> operator()(const Tensor<T>& x) const;

  template <class F>
  void members(F&& visit) {
    visit("q_proj", q_proj), visit("k_proj", k_proj), visit("v_proj", v_proj), visit("o_proj", o_proj);
  }
};

}  // namespace tapehead::nn
