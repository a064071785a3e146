#pragma once
#include <concepts>
#include <cstdint>
#include <optional>

#include "tapehead/models/attention.hpp"

namespace tapehead::nn {

/// Multi-head latent attention: keys and values of all heads come from one short row a token, c = norm(x W), and from
/// one key of rope_dim elements that carries the position for all heads. A cache holds nothing else. DeepSeek-AI,
/// "DeepSeek-V2" (2024), section 2.1; parameter names are those of its published model.
template <std::floating_point T> struct LatentAttention : Module<LatentAttention<T>, T> {
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
  /// The next tokens behind those that the cache holds. Keys and values are never computed: the query is taken into
  /// c's space, and the weighted sum of c out of it (W_uk and W_uv are absorbed).
  Tensor<T> decode(const Tensor<T>& x, KVCache<T>& cache) const;
  /// An empty cache: kv_rank + rope_dim numbers a token.
  KVCache<T> make_cache(const Shape& lead, std::int64_t capacity) const {
    return KVCache<T>(lead.with(lead.rank(), 1), capacity, options.rope_dim, options.kv_rank);
  }

  template <class F> void members(F&& visit) {
    visit("q_proj", q_proj), visit("kv_a_proj_with_mqa", kv_a_proj_with_mqa);
    visit("kv_a_layernorm", kv_a_layernorm), visit("kv_b_proj", kv_b_proj), visit("o_proj", o_proj);
  }

 private:
  struct Projected {
    Tensor<T> q_nope, q_rope;  // (…, heads, L, nope_dim) and (…, heads, L, rope_dim)
    Tensor<T> c, key;          // (…, 1, L, kv_rank) and (…, 1, L, rope_dim)
  };
  Projected projected(const Tensor<T>& x, std::int64_t first_position) const;
  TorchRandom* generator_;
};

}  // namespace tapehead::nn
