#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tapehead/models/attention.hpp"

// A decoder-only Transformer. Options take it from GPT-2 (learned positions, LayerNorm, GELU) to Llama (RoPE,
// RMSNorm, SwiGLU, grouped heads). Parameter names are those of GPT-2 and nanoGPT; weights are stored (out, in).

namespace tapehead::nn {

enum class NormKind { layer, rms };
enum class MlpKind { gelu, gelu_tanh, swiglu };

/// One of several modules, chosen when it is made. Parameters have the names of the chosen module.
template <Floating T, class... M> struct OneOf : Module<OneOf<T, M...>, T> {
  std::variant<M...> kind;

  explicit OneOf(std::variant<M...> chosen) : kind(std::move(chosen)) {}
  Tensor<T> operator()(const Tensor<T>& x) const {
    return std::visit([&x](const auto& module) { return module(x); }, kind);
  }
  template <class F> void members(F&& visit) {
    std::visit([&visit](auto& module) { module.members(visit); }, kind);
  }
};
template <Floating T> using Norm = OneOf<T, LayerNorm<T>, RMSNorm<T>>;
template <Floating T> using FeedForward = OneOf<T, MLP<T>, SwiGLU<T>>;

/// Causal multi-head self-attention. c_attn computes queries, keys and values in one product: all of q, then k,
/// then v, each with its heads side by side.
template <Floating T> struct CausalSelfAttention : Module<CausalSelfAttention<T>, T> {
  HeadOptions options;
  Heads<T> heads;
  Linear<T> c_attn, c_proj;

  CausalSelfAttention(std::int64_t width, TorchRandom& rng, const HeadOptions& o)
      : options(o),
        heads("CausalSelfAttention", width, o),
        c_attn(width, heads.width() + 2 * heads.kv_width(), rng, o.bias),
        c_proj(width, width, rng, o.bias),
        generator_(&rng) {
    options.causal = true;
  }
  /// x is (…, L, width). A mask holds together with the causal one.
  Tensor<T> operator()(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask = {}) const {
    return c_proj(heads(c_attn(x), options, mask, this->training ? generator_ : nullptr));
  }
  Tensor<T> decode(const Tensor<T>& x, KVCache<T>& cache) const {
    const auto qkv = heads.split_qkv(c_attn(x));
    return c_proj(heads.decode(qkv[0], qkv[1], qkv[2], options, cache));
  }

  template <class F> void members(F&& visit) {
    visit("c_attn", c_attn), visit("c_proj", c_proj);
    heads.members(visit);
  }

 private:
  TorchRandom* generator_;
};

struct BlockOptions {
  HeadOptions attention;    ///< always causal, with the bias and dropout below
  std::int64_t hidden = 0;  ///< of the MLP; 0: 4 width
  MlpKind mlp = MlpKind::gelu;
  NormKind norm = NormKind::layer;
  double norm_eps = 1e-5;
  bool bias = true;    ///< in projections, MLP and LayerNorm
  double dropout = 0;  ///< of the attention weights and of both summands of the residual sum, while training
};

/// x += attn(ln_1(x)); x += mlp(ln_2(x)). The norms stand before attention and MLP (Xiong et al. 2020), so no
/// nonlinearity is applied to the residual sum itself.
template <Floating T> struct TransformerBlock : Module<TransformerBlock<T>, T> {
  Norm<T> ln_1;
  CausalSelfAttention<T> attn;
  Norm<T> ln_2;
  FeedForward<T> mlp;
  Dropout<T> drop;

  TransformerBlock(std::int64_t width, TorchRandom& rng, const BlockOptions& options);
  /// x is (…, L, width).
  Tensor<T> operator()(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask = {}) const {
    const Tensor<T> y = x + drop(attn(ln_1(x), mask));
    return y + drop(mlp(ln_2(y)));
  }
  /// The next tokens, as in evaluation: without dropout.
  Tensor<T> decode(const Tensor<T>& x, KVCache<T>& cache) const {
    const Tensor<T> y = x + attn.decode(ln_1(x), cache);
    return y + mlp(ln_2(y));
  }

  template <class F> void members(F&& visit) {
    visit("ln_1", ln_1), visit("attn", attn), visit("ln_2", ln_2), visit("mlp", mlp), visit("drop", drop);
  }
};

/// How weights start: as torch.nn's layers do, or as in GPT-2 (normal with standard deviation 0.02, for each
/// block's c_proj divided by √(2 layers); biases 0). The draws come in nanoGPT's order.
enum class Init { torch, gpt2 };

template <Floating T> struct GPT : Module<GPT<T>, T> {
  struct Options {
    std::int64_t vocabulary = 0;
    std::int64_t block = 0;  ///< the longest sequence with learned positions; not used with rope
    std::int64_t layers = 0;
    std::int64_t width = 0;
    BlockOptions blocks = {};  ///< with blocks.attention.rope there are no learned positions
    bool tied = false;         ///< the output layer is wte, transposed (Press & Wolf 2017): no lm_head
    Init init = Init::torch;
  };
  Options options;
  Embedding<T> wte;
  std::optional<Embedding<T>> wpe;
  std::vector<TransformerBlock<T>> h;
  Norm<T> ln_f;
  std::optional<Linear<T>> lm_head;
  Dropout<T> drop;

  GPT(const Options& options, TorchRandom& rng);
  /// Logits, (…, L, vocabulary), of token ids (…, L). A mask, (B, 1, L, L) for instance (document_mask), holds
  /// together with the causal one. Throws ValueError if L is more than the learned positions.
  Tensor<T> operator()(const Tensor<std::int64_t>& ids, const std::optional<Tensor<bool>>& mask = {}) const {
    Tensor<T> x = drop(embedded(ids, 0));
    for (const auto& block : h) x = block(x, mask);
    return logits(x);
  }

  /// One cache a layer, for `capacity` tokens of sequences of leading axes `lead`, () or (B,).
  std::vector<KVCache<T>> make_cache(const Shape& lead, std::int64_t capacity) const {
    std::vector<KVCache<T>> cache;
    for (const auto& block : h) cache.push_back(block.attn.heads.make_cache(lead, capacity));
    return cache;
  }
  /// Logits of the next tokens, (…, n), behind those that the caches hold: in evaluation equal to those rows of
  /// the whole sequence. Where it throws, the caches hold what they held before.
  Tensor<T> decode(const Tensor<std::int64_t>& ids, std::vector<KVCache<T>>& cache) const;

  template <class F> void members(F&& visit) {
    visit("wte", wte), visit("wpe", wpe), visit("h", h), visit("ln_f", ln_f), visit("lm_head", lm_head);
    visit("drop", drop);
  }

 private:
  Tensor<T> embedded(const Tensor<std::int64_t>& ids, std::int64_t first_position) const;
  Tensor<T> logits(const Tensor<T>& x) const {
    const Tensor<T> y = ln_f(x);
    return lm_head ? (*lm_head)(y) : linear(y, wte.weight);
  }
  void start_as_gpt2(TorchRandom& rng);
};

}  // namespace tapehead::nn
