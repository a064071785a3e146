#include "tapehead/models/gpt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/indexing.hpp"
#include "tapehead/ops/join.hpp"
#include "tapehead/ops/matmul.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/softmax.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead::nn {

// ---- What a block is made of ----

template <std::floating_point T>
Norm<T>::Norm(NormKind which, std::int64_t n, bool with_bias, double eps)
    : kind(LayerNorm<T>(n, with_bias, eps)) {
  if (which == NormKind::rms) kind = RMSNorm<T>(n, eps);
}
template <std::floating_point T>
Tensor<T> Norm<T>::operator()(const Tensor<T>& x) const {
  return std::visit([&x](const auto& norm) { return norm(x); }, kind);
}

namespace {

template <class T>
std::variant<MLP<T>, SwiGLU<T>> make_mlp(MlpKind which, std::int64_t width, std::int64_t hidden,
                                         TorchRandom& rng, bool with_bias) {
  if (which == MlpKind::swiglu) return SwiGLU<T>(width, hidden, rng, with_bias);
  return MLP<T>(width, hidden, rng, with_bias, which == MlpKind::gelu ? Gelu::erf : Gelu::tanh);
}

HeadOptions attention_of(const BlockOptions& o) {
  HeadOptions attention = o.attention;
  attention.dropout = o.dropout, attention.bias = o.bias;
  return attention;
}

}  // namespace

template <std::floating_point T>
FeedForward<T>::FeedForward(MlpKind which, std::int64_t width, std::int64_t hidden, TorchRandom& rng,
                            bool with_bias)
    : kind(make_mlp<T>(which, width, hidden, rng, with_bias)) {}
template <std::floating_point T>
Tensor<T> FeedForward<T>::operator()(const Tensor<T>& x) const {
  return std::visit([&x](const auto& mlp) { return mlp(x); }, kind);
}

template <std::floating_point T>
CausalSelfAttention<T>::CausalSelfAttention(std::int64_t width, TorchRandom& rng, const HeadOptions& o)
    : options(o),
      heads("CausalSelfAttention", width, o),
      c_attn(width, heads.width() + 2 * heads.kv_width(), rng, o.bias),
      c_proj(width, width, rng, o.bias),
      generator_(&rng) {
  options.causal = true;
}
template <std::floating_point T>
Tensor<T> CausalSelfAttention<T>::projected(const Tensor<T>& x) const {
  if (x.rank() < 2 || x.size(-1) != heads.width())
    throw ShapeError(
        fmt::format("CausalSelfAttention: input {}; it must be (…, L, {})", x.shape().str(), heads.width()));
  return c_attn(x);
}
template <std::floating_point T>
Tensor<T> CausalSelfAttention<T>::operator()(const Tensor<T>& x,
                                             const std::optional<Tensor<bool>>& mask) const {
  return c_proj(heads(projected(x), options, mask, this->training ? generator_ : nullptr));
}
template <std::floating_point T>
Tensor<T> CausalSelfAttention<T>::decode(const Tensor<T>& x, KVCache<T>& cache) const {
  const auto qkv = heads.split_qkv(projected(x));
  return c_proj(heads.decode(qkv[0], qkv[1], qkv[2], options, cache));
}

template <std::floating_point T>
TransformerBlock<T>::TransformerBlock(std::int64_t width, TorchRandom& rng, const BlockOptions& o)
    : ln_1(o.norm, width, o.bias, o.norm_eps),
      attn(width, rng, attention_of(o)),
      ln_2(o.norm, width, o.bias, o.norm_eps),
      mlp(o.mlp, width, o.hidden > 0 ? o.hidden : 4 * width, rng, o.bias),
      drop(o.dropout, rng) {}
template <std::floating_point T>
Tensor<T> TransformerBlock<T>::operator()(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask) const {
  const Tensor<T> y = x + drop(attn(ln_1(x), mask));
  return y + drop(mlp(ln_2(y)));
}
template <std::floating_point T>
Tensor<T> TransformerBlock<T>::decode(const Tensor<T>& x, KVCache<T>& cache) const {
  const Tensor<T> y = x + attn.decode(ln_1(x), cache);
  return y + mlp(ln_2(y));
}

// ---- The model ----

template <std::floating_point T>
GPT<T>::GPT(const Options& o, TorchRandom& rng)
    : options(o),
      wte(o.vocabulary, o.width, rng),
      ln_f(o.blocks.norm, o.width, o.blocks.bias, o.blocks.norm_eps),
      drop(o.blocks.dropout, rng) {
  if (!o.blocks.attention.rope) {
    if (o.block < 1)
      throw ValueError(fmt::format(
          "GPT: block {}; with learned positions it is the longest sequence, 1 or more", o.block));
    wpe.emplace(o.block, o.width, rng);
  }
  h.reserve(static_cast<std::size_t>(std::max<std::int64_t>(o.layers, 0)));
  for (std::int64_t i = 0; i < o.layers; ++i) h.emplace_back(o.width, rng, o.blocks);
  lm_head.emplace(o.width, o.vocabulary, rng, false);
  if (o.init == Init::gpt2) start_as_gpt2(rng);
  if (o.tied) {
    wte.weight = lm_head->weight;
    lm_head.reset();
  }
}

// Every layer in order, then each block's c_proj (down_proj) once more.
template <std::floating_point T>
void GPT<T>::start_as_gpt2(TorchRandom& rng) {
  const auto normal = [&rng](Tensor<T>& weight, double deviation) {
    weight = rng.normal<T>(0, deviation, weight.shape());
  };
  this->each_module([&](auto& module) {
    using M = std::remove_reference_t<decltype(module)>;
    if constexpr (std::is_same_v<M, Linear<T>>) {
      normal(module.weight, 0.02);
      if (module.bias) module.bias = zeros<T>(module.bias->shape());
    } else if constexpr (std::is_same_v<M, Embedding<T>>) {
      normal(module.weight, 0.02);
    }
  });
  this->each_parameter([&](const std::string& name, Tensor<T>& parameter) {
    if (name.ends_with("c_proj.weight") || name.ends_with("down_proj.weight"))
      normal(parameter, 0.02 / std::sqrt(2 * static_cast<double>(options.layers)));
  });
}

template <std::floating_point T>
Tensor<T> GPT<T>::embedded(const Tensor<std::int64_t>& ids, std::int64_t first_position) const {
  if (ids.rank() < 1) throw ShapeError("GPT: ids of shape (); they are (…, L)");
  const std::int64_t end = first_position + ids.size(-1);
  if (wpe && end > options.block)
    throw ValueError(fmt::format(
        "GPT: {} tokens, and learned positions for {}; give fewer, or make the model with a larger block",
        end, options.block));
  const Tensor<T> x = wte(ids);
  return wpe ? x + slice(wpe->weight, 0, first_position, end) : x;
}

template <std::floating_point T>
Tensor<T> GPT<T>::logits(const Tensor<T>& x) const {
  const Tensor<T> y = ln_f(x);
  return lm_head ? (*lm_head)(y) : matmul(y, wte.weight.T());
}

template <std::floating_point T>
Tensor<T> GPT<T>::operator()(const Tensor<std::int64_t>& ids, const std::optional<Tensor<bool>>& mask) const {
  Tensor<T> x = drop(embedded(ids, 0));
  for (const TransformerBlock<T>& block : h) x = block(x, mask);
  return logits(x);
}

template <std::floating_point T>
std::vector<KVCache<T>> GPT<T>::make_cache(const Shape& lead, std::int64_t capacity) const {
  std::vector<KVCache<T>> cache;
  for (const TransformerBlock<T>& block : h)
    cache.emplace_back(lead.with(lead.rank(), block.attn.heads.kv_heads), capacity,
                       block.attn.heads.head_dim);
  return cache;
}

template <std::floating_point T>
Tensor<T> GPT<T>::decode(const Tensor<std::int64_t>& ids, std::vector<KVCache<T>>& cache) const {
  if (cache.size() != h.size())
    throw ValueError(fmt::format("GPT.decode: {} caches for {} layers; make_cache() gives one for each",
                                 cache.size(), h.size()));
  const std::int64_t from = h.empty() ? 0 : cache.front().length();
  Tensor<T> x = embedded(ids, from);
  for (const KVCache<T>& layer : cache)
    if (layer.length() != from || layer.capacity() - from < ids.size(-1))
      throw ValueError(
          fmt::format("GPT.decode: {} more tokens behind {} in a cache for {}; make the cache larger, and "
                      "let each layer's hold the "
                      "same tokens",
                      ids.size(-1), layer.length(), layer.capacity()));
  for (std::size_t i = 0; i < h.size(); ++i) x = h[i].decode(x, cache[i]);
  return logits(x);
}

namespace {

// One token by its logits: the likeliest, or drawn from the k likeliest.
template <class T>
std::int64_t chosen(const Tensor<T>& row, const GenerateOptions& o) {
  if (o.temperature == 0) return argmax(row).item();
  const std::int64_t k = o.top_k > 0 ? std::min(o.top_k, row.size(-1)) : row.size(-1);
  const TopK<T> top = topk(row, k);
  const std::vector<double> p = softmax(to<double>(top.values) / o.temperature, -1).to_vector();
  double left = o.generator->rand<double>({}).item();
  std::size_t i = 0;
  while (i + 1 < p.size() && left >= p[i]) left -= p[i++];
  return top.indices.at({static_cast<std::int64_t>(i)});
}

}  // namespace

template <std::floating_point T>
Tensor<std::int64_t> generate(const GPT<T>& model, const Tensor<std::int64_t>& prompt, std::int64_t n,
                              const GenerateOptions& o) {
  if (prompt.rank() < 1 || prompt.size(-1) < 1)
    throw ShapeError(fmt::format("generate: a prompt of shape {}; it is (…, L), with one token or more",
                                 prompt.shape().str()));
  if (n < 0) throw ValueError(fmt::format("generate: {} more tokens; it must be 0 or more", n));
  if (!(o.temperature >= 0) || (o.temperature > 0 && o.generator == nullptr))
    throw ValueError(fmt::format(
        "generate: temperature {}{}; it must be 0 or more, and needs a generator where it is not 0",
        o.temperature, o.generator == nullptr ? " without a generator" : ""));
  const Shape lead(prompt.shape().begin(), prompt.shape().end() - 1);
  auto cache = model.make_cache(lead, prompt.size(-1) + n);
  Tensor<std::int64_t> ids = prompt, next = prompt;
  for (std::int64_t i = 0; i < n; ++i) {
    const Tensor<T> logits = model.decode(next, cache);
    const Tensor<T> rows = reshape(select(logits, -2, -1), {-1, logits.size(-1)});
    Buffer<std::int64_t> tokens(lead.with(lead.rank(), 1));
    for (std::int64_t row = 0; row < tokens.numel(); ++row) tokens[row] = chosen(rows[row], o);
    next = std::move(tokens);
    ids = cat<std::int64_t>({ids, next}, -1);
  }
  return ids;
}

#define TAPEHEAD_GPT(T)                                                                            \
  template struct Norm<T>;                                                                         \
  template struct FeedForward<T>;                                                                  \
  template struct CausalSelfAttention<T>;                                                          \
  template struct TransformerBlock<T>;                                                             \
  template struct GPT<T>;                                                                          \
  template Tensor<std::int64_t> generate(const GPT<T>&, const Tensor<std::int64_t>&, std::int64_t, \
                                         const GenerateOptions&);
TAPEHEAD_GPT(float)
TAPEHEAD_GPT(double)

}  // namespace tapehead::nn
