#include "tapehead/models/latent_attention.hpp"

#include <cmath>

#include "kernels/require.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead::nn {

template <std::floating_point T>
LatentAttention<T>::LatentAttention(std::int64_t width, TorchRandom& rng, const Options& o)
    : options(o),
      q_proj(width, o.heads * (o.nope_dim + o.rope_dim), rng, false),
      kv_a_proj_with_mqa(width, o.kv_rank + o.rope_dim, rng, false),
      kv_a_layernorm(o.kv_rank),
      kv_b_proj(o.kv_rank, o.heads * (o.nope_dim + o.v_dim), rng, false),
      o_proj(o.heads * o.v_dim, width, rng, false),
      generator_(&rng) {
  require<ShapeError>(
      o.heads >= 1 && o.kv_rank >= 1 && o.nope_dim >= 1 && o.v_dim >= 1 && o.rope_dim >= 2 && o.rope_dim % 2 == 0,
      "LatentAttention: {} heads, kv_rank {}, nope_dim {}, rope_dim {}, v_dim {}; each "
      "must be 1 or more, and rope_dim even",
      o.heads, o.kv_rank, o.nope_dim, o.rope_dim, o.v_dim);
}

template <std::floating_point T>
typename LatentAttention<T>::Projected LatentAttention<T>::projected(const Tensor<T>& x,
                                                                     std::int64_t first_position) const {
  const auto& o = options;
  const auto q = tapehead::split(split_heads(q_proj(x), o.heads), {o.nope_dim, o.rope_dim}, -1);
  const auto kv = tapehead::split(kv_a_proj_with_mqa(x), {o.kv_rank, o.rope_dim}, -1);
  return {q[0], rotated(q[1], first_position, o.rope_theta), unsqueeze(kv_a_layernorm(kv[0]), -3),
          unsqueeze(rotated(kv[1], first_position, o.rope_theta), -3)};
}

template <std::floating_point T>
Tensor<T> LatentAttention<T>::operator()(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask) const {
  const Projected z = projected(x, 0);
  const auto kv =
      tapehead::split(split_heads(kv_b_proj(squeeze(z.c, -3)), options.heads), {options.nope_dim, options.v_dim}, -1);
  const Tensor<T> k_rope = broadcast_to(z.key, z.q_rope.shape());  // one for all heads
  return o_proj(
      merge_heads(attend(options.implementation, cat<T>({z.q_nope, z.q_rope}, -1), cat<T>({kv[0], k_rope}, -1), kv[1],
                         {.mask = mask,
                          .causal = options.causal,
                          .dropout_p = this->training ? options.dropout : 0.0,
                          .generator = generator_})));
}

// q_nope·(W_uk c) = (q_nope W_uk)·c, and Σ a (W_uv c) = W_uv Σ a c: attention runs over the rows c themselves.
template <std::floating_point T> Tensor<T> LatentAttention<T>::decode(const Tensor<T>& x, KVCache<T>& cache) const {
  const Projected z = projected(x, cache.length());
  cache.append(z.key, z.c);
  const std::int64_t nope = options.nope_dim, per_head = nope + options.v_dim;
  const Tensor<T> up = reshape(kv_b_proj.weight, {options.heads, per_head, options.kv_rank});
  const Tensor<T> W_uk = slice(up, 1, 0, nope), W_uv = slice(up, 1, nope, per_head);
  const double scale = 1 / std::sqrt(static_cast<double>(nope + options.rope_dim));
  const Tensor<T> latent = attention(matmul(z.q_nope, W_uk), cache.values(), cache.values(),
                                     {.bias = matmul(z.q_rope, mT(cache.keys())) * scale,
                                      .causal = true,
                                      .align = Align::bottom_right,
                                      .scale = scale})
                               .out;
  return o_proj(merge_heads(matmul(latent, mT(W_uv))));
}

template struct LatentAttention<float>;
template struct LatentAttention<double>;

}  // namespace tapehead::nn
