// Latent attention against its formula, whole and with a cache.
#include "tapehead/models/latent_attention.hpp"

#include <vector>

#include "models/modules.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace modules;
using testing::message;

TEST_CASE("nn: latent attention is attention over keys and values made from c") {
  TorchRandom rng(4);
  const std::int64_t heads = 2, r = 5, nope = 3, rot = 4, dv = 3;
  const auto attn = with_random_parameters(nn::LatentAttention<double>(
      6, rng, {.heads = heads, .kv_rank = r, .nope_dim = nope, .rope_dim = rot, .v_dim = dv}));
  const auto x = randn({4, 6});
  const auto positions = arange<std::int64_t>(4);
  const auto q = attn.q_proj(x), compressed = attn.kv_a_proj_with_mqa(x);
  const auto kv = attn.kv_b_proj(attn.kv_a_layernorm(slice(compressed, -1, 0, r)));
  const auto k_rope = rope(slice(compressed, -1, r, r + rot), positions);
  std::vector<Tensor<double>> out;
  for (std::int64_t h = 0; h < heads; ++h) {
    const auto q_h = slice(q, -1, h * (nope + rot), (h + 1) * (nope + rot)),
               kv_h = slice(kv, -1, h * (nope + dv), (h + 1) * (nope + dv));
    out.push_back(
        attention(cat<double>({slice(q_h, -1, 0, nope), rope(slice(q_h, -1, nope, nope + rot), positions)}, -1),
                  cat<double>({slice(kv_h, -1, 0, nope), k_rope}, -1), slice(kv_h, -1, nope, nope + dv),
                  {.causal = true})
            .out);
  }
  CHECK(close(attn(x), attn.o_proj(cat(out, -1))));
  CHECK_GRADIENTS(attn, x);
  CHECK(names(attn) ==
        "q_proj.weight(14, 6) kv_a_proj_with_mqa.weight(9, 6) kv_a_layernorm.weight(5,) kv_b_proj.weight(12, "
        "5) o_proj.weight(6, 6) "sv);
  CHECK(message<ShapeError>([&] {
          nn::LatentAttention<double>(6, rng, {.heads = 2, .kv_rank = 4, .nope_dim = 2, .rope_dim = 3, .v_dim = 2});
        }) ==
        "LatentAttention: 2 heads, kv_rank 4, nope_dim 2, rope_dim 3, v_dim 2; each must be 1 or more, and "
        "rope_dim even"sv);
}

TEST_CASE("nn: latent attention decodes from the short rows what the whole sequence gives") {
  TorchRandom rng(2);
  const auto x = randn({2, 7, 8});
  const auto latent = with_random_parameters(
      nn::LatentAttention<double>(8, rng, {.heads = 3, .kv_rank = 5, .nope_dim = 4, .rope_dim = 2, .v_dim = 3}));
  const auto whole = latent(x);
  for (const auto& cuts : std::vector<std::vector<std::int64_t>>{{7}, {1, 1, 1, 1, 1, 1, 1}, {3, 1, 3}}) {
    auto cache = latent.make_cache({2}, 7);
    std::vector<Tensor<double>> out;
    for (std::int64_t n : cuts) out.push_back(latent.decode(slice(x, 1, cache.length(), cache.length() + n), cache));
    CHECK(close(cat(out, 1), whole));
    CHECK(cache.key_width() + cache.value_width() == 5 + 2);  // numbers a token
  }
}
