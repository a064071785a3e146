#include "tapehead/models/gpt.hpp"

#include <cmath>
#include <type_traits>

#include "kernels/require.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead::nn {

namespace {

template <class T> Norm<T> make_norm(const BlockOptions& o, std::int64_t width) {
  if (o.norm == NormKind::rms) return Norm<T>(RMSNorm<T>(width, o.norm_eps));
  return Norm<T>(LayerNorm<T>(width, o.bias, o.norm_eps));
}
template <class T> FeedForward<T> make_mlp(const BlockOptions& o, std::int64_t width, TorchRandom& rng) {
  const std::int64_t hidden = o.hidden != 0 ? o.hidden : 4 * width;
  if (o.mlp == MlpKind::swiglu) return FeedForward<T>(SwiGLU<T>(width, hidden, rng, o.bias));
  return FeedForward<T>(MLP<T>(width, hidden, rng, o.bias, o.mlp == MlpKind::gelu ? Gelu::erf : Gelu::tanh));
}

HeadOptions attention_of(const BlockOptions& o) {
  HeadOptions attention = o.attention;
  attention.dropout = o.dropout, attention.bias = o.bias, attention.causal = true;
  return attention;
}

}  // namespace

template <Floating T> TransformerBlock<T>::TransformerBlock(std::int64_t width, TorchRandom& rng, const BlockOptions& o)
    : ln_1(make_norm<T>(o, width)),
      attn(width, rng, attention_of(o)),
      ln_2(make_norm<T>(o, width)),
      mlp(make_mlp<T>(o, width, rng)),
      drop(o.dropout, rng) {}

// ---- The model ----

template <Floating T> GPT<T>::GPT(const Options& o, TorchRandom& rng)
    : options(o), wte(o.vocabulary, o.width, rng), ln_f(make_norm<T>(o.blocks, o.width)), drop(o.blocks.dropout, rng) {
  require<ValueError>(o.layers >= 0, "GPT: {} layers; it must be 0 or more", o.layers);
  if (!o.blocks.attention.rope) {
    require<ValueError>(o.block >= 1, "GPT: block {}; with learned positions it is the longest sequence, 1 or more",
                        o.block);
    wpe.emplace(o.block, o.width, rng);
  }
  for (std::int64_t i = 0; i < o.layers; ++i) h.emplace_back(o.width, rng, o.blocks);
  lm_head.emplace(o.width, o.vocabulary, rng, false);
  if (o.init == Init::gpt2) start_as_gpt2(rng);
  if (o.tied) {
    wte.weight = lm_head->weight;
    lm_head.reset();
  }
}

// Every layer in order, then each block's c_proj (down_proj) once more.
template <Floating T> void GPT<T>::start_as_gpt2(TorchRandom& rng) {
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

template <Floating T> Tensor<T> GPT<T>::embedded(const Tensor<std::int64_t>& ids, std::int64_t first_position) const {
  require<ShapeError>(ids.rank() >= 1, "GPT: ids of shape (); they are (…, L)");
  const std::int64_t end = first_position + ids.size(-1);
  require<ValueError>(!wpe || end <= options.block,
                      "GPT: {} tokens, and learned positions for {}; give fewer, or make the model with a larger block",
                      end, options.block);
  const Tensor<T> x = wte(ids);
  return wpe ? x + slice(wpe->weight, 0, first_position, end) : x;
}

template <Floating T> Tensor<T> GPT<T>::decode(const Tensor<std::int64_t>& ids, std::vector<KVCache<T>>& cache) const {
  require<ValueError>(cache.size() == h.size(), "GPT.decode: {} caches for {} layers; make_cache() gives one for each",
                      cache.size(), h.size());
  const std::int64_t from = h.empty() ? 0 : cache.front().length();
  Tensor<T> x = embedded(ids, from);
  for (const KVCache<T>& layer : cache)
    require<ValueError>(layer.length() == from && layer.capacity() - from >= ids.size(-1),
                        "GPT.decode: {} more tokens behind {} in a cache for {}; make the cache larger, and let each "
                        "layer's hold the same tokens",
                        ids.size(-1), layer.length(), layer.capacity());
  try {
    for (std::size_t i = 0; i < h.size(); ++i) x = h[i].decode(x, cache[i]);
    return logits(x);
  } catch (...) {
    for (KVCache<T>& layer : cache) layer.truncate(from);
    throw;
  }
}

template struct GPT<float>;
template struct GPT<double>;

}  // namespace tapehead::nn
