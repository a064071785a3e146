// Modules of attention: each against its formula, its gradients through every parameter, its errors.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "models/modules.hpp"
#include "tapehead/attention/linear_attention.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace modules;
using testing::message;

TEST_CASE("nn: multi-head attention is attention head by head") {
  TorchRandom rng(2);
  const auto x = randn({2, 5, 12});
  for (std::int64_t kv_heads : {0, 1, 2, 4})
    for (bool causal : {false, true}) {
      const nn::MultiHeadAttention<double> attn(12, rng,
                                                {.heads = 4, .kv_heads = kv_heads, .causal = causal});
      const std::int64_t group = kv_heads == 0 ? 1 : 4 / kv_heads;
      std::vector<Tensor<double>> heads;
      for (std::int64_t head = 0; head < 4; ++head) {
        const auto part = [](const Tensor<double>& y, std::int64_t i) {
          return slice(y, -1, 3 * i, 3 * i + 3);
        };
        heads.push_back(attention(part(attn.q_proj(x), head), part(attn.k_proj(x), head / group),
                                  part(attn.v_proj(x), head / group), {.causal = causal})
                            .out);
      }
      CHECK(close(attn(x), attn.o_proj(cat(heads, -1))));
      CHECK(close(attn(x)[1], attn(x[1])));  // no batch axis
      CHECK_GRADIENTS(attn, randn({3, 12}));
    }
  CHECK(names(nn::MultiHeadAttention<double>(
            6, rng, {.heads = 3, .kv_heads = 1, .bias = false, .qk_norm = true, .sinks = true}, 5)) ==
        "q_proj.weight(6, 6) k_proj.weight(2, 5) v_proj.weight(2, 5) o_proj.weight(6, 6) q_norm.weight(2,) "
        "k_norm.weight(2,) sinks(3,) "sv);
}

TEST_CASE("nn: cross-attention reads a context of another width and length") {
  TorchRandom rng(2);
  const nn::MultiHeadAttention<double> attn(6, rng, {.heads = 2, .causal = true}, 5);
  const auto x = randn({2, 3, 6}), context = randn({2, 4, 5}, 2);
  const auto part = [](const Tensor<double>& y, std::int64_t i) { return slice(y, -1, 3 * i, 3 * i + 3); };
  std::vector<Tensor<double>> heads;
  for (std::int64_t i = 0; i < 2; ++i)
    heads.push_back(
        attention(part(attn.q_proj(x), i), part(attn.k_proj(context), i), part(attn.v_proj(context), i)).out);
  CHECK(close(attn.cross(x, context), attn.o_proj(cat(heads, -1))));
  const auto masked = attn.cross(x, context, padding_mask({4, 2}, 4));
  CHECK(close(masked[0], attn.cross(x, context)[0]));
  CHECK(close(masked[1], attn.cross(x[1], slice(context[1], 0, 0, 2))));
  CHECK(message<ShapeError>([&] { attn.cross(x, x); }) ==
        "MultiHeadAttention: input (2, 3, 6); it must be (…, L, 5)"sv);
  CHECK_GRADIENTS(attn, randn({3, 6}), [&](const auto& m, const auto& q) { return m.cross(q, context[0]); });
}

TEST_CASE("nn: a padding mask hides keys from every head") {
  TorchRandom rng(2);
  const nn::MultiHeadAttention<double> attn(6, rng, {.heads = 2, .kv_heads = 1, .sinks = true});
  const auto x = randn({2, 5, 6});
  const auto y = attn(x, padding_mask({5, 3}, 5));
  CHECK(close(y[0], attn(x)[0]));
  CHECK(close(slice(y[1], 0, 0, 3), attn(slice(x[1], 0, 0, 3))));
  CHECK(close(attn(x, Tensor<bool>{{true}}), attn(x)));  // a mask that broadcasts over the keys
}

TEST_CASE("nn: rope sees distances alone; QK-norm does not see the size of queries and keys") {
  TorchRandom rng(2);
  nn::MultiHeadAttention<double> attn(8, rng, {.heads = 2, .causal = true, .bias = false, .rope = true});
  const auto x = randn({6, 8});
  // With its first two tokens hidden, a sequence gives what it gives without them, two positions nearer.
  const auto mask = lt(scalar<std::int64_t>(1), arange<std::int64_t>(6));
  CHECK(close(slice(attn(x, reshape(mask, {1, 6})), 0, 2, 6), attn(slice(x, 0, 2, 6))));
  nn::MultiHeadAttention<double> plain(8, rng, {.heads = 2, .causal = true, .bias = false});
  plain.load_state(attn.state());
  CHECK_FALSE(close(plain(x), attn(x)));
  CHECK_GRADIENTS(attn, randn({4, 8}));

  nn::MultiHeadAttention<double> normed(
      8, rng, {.heads = 2, .causal = true, .bias = false, .rope = true, .qk_norm = true});
  const auto before = normed(x);
  normed.q_proj.weight = normed.q_proj.weight * 1000, normed.k_proj.weight = normed.k_proj.weight * 1000;
  CHECK(allclose(normed(x), before, 1e-4, 1e-4));  // ε in the norm is what is left of the size
  CHECK_GRADIENTS(with_random_parameters(nn::MultiHeadAttention<double>(
                      8, rng, {.heads = 2, .kv_heads = 1, .rope = true, .qk_norm = true, .sinks = true})),
                  randn({4, 8}));
}

TEST_CASE("nn: a sink takes weight and gives no value") {
  TorchRandom rng(2);
  nn::MultiHeadAttention<double> attn(6, rng, {.heads = 2, .causal = true, .bias = false, .sinks = true});
  const auto x = randn({4, 6});
  attn.heads.sinks = Tensor<double>{0.7, -1.5};
  std::vector<Tensor<double>> heads;
  for (int i = 0; i < 2; ++i) {
    const auto part = [i](const Tensor<double>& y) { return slice(y, -1, 3 * i, 3 * i + 3); };
    auto scores = matmul(part(attn.q_proj(x)), mT(part(attn.k_proj(x)))) / std::sqrt(3.0);
    scores = masked_fill(scores, ~causal_mask(4), -std::numeric_limits<double>::infinity());
    const auto weights = exp(scores) / (sum(exp(scores), -1, true) + std::exp(attn.heads.sinks->at({i})));
    heads.push_back(matmul(weights, part(attn.v_proj(x))));
  }
  CHECK(close(attn(x), attn.o_proj(cat(heads, -1))));
  attn.heads.sinks = full<double>({2}, 1000);
  CHECK(close(attn(x), zeros<double>({4, 6})));
  attn.heads.sinks = full<double>({2}, -std::numeric_limits<double>::infinity());
  nn::MultiHeadAttention<double> without(6, rng, {.heads = 2, .causal = true, .bias = false});
  without.load_state(attn.state(), false);
  CHECK(close(attn(x), without(x)));
}

TEST_CASE("nn: decoding with a cache gives the rows of the whole sequence") {
  TorchRandom rng(2);
  const auto x = randn({2, 7, 8});
  for (const nn::HeadOptions& o : std::vector<nn::HeadOptions>{
           {.heads = 4, .causal = true},
           {.heads = 4, .kv_heads = 2, .causal = true, .rope = true, .qk_norm = true},
           {.heads = 2, .kv_heads = 1, .causal = true, .rope = true, .sinks = true}}) {
    const auto attn = with_random_parameters(nn::MultiHeadAttention<double>(8, rng, o));
    const auto whole = attn(x);
    for (const auto& cuts :
         std::vector<std::vector<std::int64_t>>{{7}, {1, 1, 1, 1, 1, 1, 1}, {3, 1, 3}, {5, 2}}) {
      auto cache = attn.make_cache({2}, 7);
      std::vector<Tensor<double>> out;
      for (std::int64_t n : cuts)
        out.push_back(attn.decode(slice(x, 1, cache.length(), cache.length() + n), cache));
      CHECK(close(cat(out, 1), whole));
    }
  }
  const auto latent = with_random_parameters(nn::LatentAttention<double>(
      8, rng, {.heads = 3, .kv_rank = 5, .nope_dim = 4, .rope_dim = 2, .v_dim = 3}));
  const auto whole = latent(x);
  for (const auto& cuts : std::vector<std::vector<std::int64_t>>{{7}, {1, 1, 1, 1, 1, 1, 1}, {3, 1, 3}}) {
    auto cache = latent.make_cache({2}, 7);
    std::vector<Tensor<double>> out;
    for (std::int64_t n : cuts)
      out.push_back(latent.decode(slice(x, 1, cache.length(), cache.length() + n), cache));
    CHECK(close(cat(out, 1), whole));
    CHECK(cache.key_width() + cache.value_width() == 5 + 2);  // numbers a token
  }
}

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
        attention(
            cat<double>({slice(q_h, -1, 0, nope), rope(slice(q_h, -1, nope, nope + rot), positions)}, -1),
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
          nn::LatentAttention<double>(6, rng,
                                      {.heads = 2, .kv_rank = 4, .nope_dim = 2, .rope_dim = 3, .v_dim = 2});
        }) ==
        "LatentAttention: 2 heads, kv_rank 4, nope_dim 2, rope_dim 3, v_dim 2; each must be 1 or more, and "
        "rope_dim even"sv);
}

TEST_CASE("nn: additive attention, number by number") {
  TorchRandom rng(5);
  const nn::AdditiveAttention<double> attn(3, 2, 4, rng);
  const auto q = randn({2, 3}), k = randn({5, 2}, 2), values = randn({5, 3}, 3);
  const auto result = attn(q, k, values);
  for (std::int64_t i = 0; i < 2; ++i) {
    std::vector<double> weight;
    double total = 0;
    for (std::int64_t j = 0; j < 5; ++j) {
      double score = 0;
      for (std::int64_t h = 0; h < 4; ++h) {
        double inner = 0;
        for (std::int64_t c = 0; c < 3; ++c) inner += attn.W_q.weight.at({h, c}) * q.at({i, c});
        for (std::int64_t c = 0; c < 2; ++c) inner += attn.W_k.weight.at({h, c}) * k.at({j, c});
        score += attn.v.weight.at({0, h}) * std::tanh(inner);
      }
      weight.push_back(std::exp(score)), total += weight.back();
    }
    for (std::int64_t j = 0; j < 5; ++j)
      CHECK(result.weights.at({i, j}) ==
            doctest::Approx(weight[static_cast<std::size_t>(j)] / total).epsilon(1e-13));
  }
  CHECK(close(result.out, matmul(result.weights, values)));
  const auto masked =
      attn(q, k, values, Tensor<bool>{{true, true, false, false, true}, {false, false, false, false, false}});
  CHECK(masked.weights.at({0, 2}) == 0);
  CHECK(equal(masked.out[1], zeros<double>({3})));
  CHECK(message<ShapeError>([&] { attn(k, q, values); }) ==
        "AdditiveAttention: input (5, 2); it must be (…, L, 3)"sv);
  CHECK_GRADIENTS(attn, q, [&](const auto& m, const auto& x) { return m(x, k, values).out; });
  const auto batched = attn(randn({2, 3, 3}), randn({2, 4, 2}), randn({2, 4, 6}));
  CHECK(batched.out.shape() == Shape{2, 3, 6});
}

TEST_CASE("nn: linear attention sees no later row, and its gradients are right") {
  TorchRandom rng(1);
  const nn::LinearAttention<double> attn(6, 2, rng, true);
  const auto x = randn({4, 6});
  CHECK(close(slice(attn(x), 0, 0, 2), attn(slice(x, 0, 0, 2))));
  CHECK_GRADIENTS(attn, x);
}

TEST_CASE("nn: heads that do not fit are refused") {
  TorchRandom rng(1);
  CHECK(message<ShapeError>([&] { nn::MultiHeadAttention<float>(10, rng, {.heads = 4}); }) ==
        "MultiHeadAttention: width 10, 4 heads on 4 key and value heads; the heads must divide the width, "
        "and the key and value heads the "
        "heads"sv);
  CHECK(message<ShapeError>([&] { nn::MultiHeadAttention<float>(12, rng, {.heads = 3, .kv_heads = 2}); }) !=
        "[nothing was thrown]"sv);
  CHECK(message<ShapeError>([&] { nn::MultiHeadAttention<float>(9, rng, {.heads = 3, .rope = true}); }) ==
        "MultiHeadAttention: heads of width 9 / 3 = 3; rope turns pairs, so it must be even"sv);
}

TEST_CASE("nn: every implementation gives the same, chosen by name in one line") {
  TorchRandom rng(1);
  const auto x = randn({2, 5, 8}), context = randn({2, 3, 8}, 2), dy = randn({2, 5, 8}, 3);
  const auto padding = padding_mask({5, 3}, 5);
  for (bool sinks : {false, true})
    for (bool causal : {false, true}) {
      const nn::HeadOptions o{.heads = 4, .kv_heads = 2, .causal = causal, .sinks = sinks};
      auto attn = with_random_parameters(nn::MultiHeadAttention<double>(8, rng, o));
      const auto run = [&](const std::string& name) {
        nn::set_implementation(attn, name);
        Tape<double> tape;
        tape.watch(attn.parameters());
        const auto y = attn(x, padding) + attn.cross(x, context);
        const auto grad = tape.backward(y, dy);
        std::vector<Tensor<double>> all{y};
        for (const auto& p : attn.parameters()) all.push_back(grad[p.tensor]);
        return all;
      };
      const auto eager = run("eager");
      for (const std::string name : {"sdpa", "flash", "flex"}) {
        CAPTURE(name);
        const auto other = run(name);
        for (std::size_t i = 0; i < eager.size(); ++i) CHECK(allclose(other[i], eager[i], 1e-12, 1e-12));
      }
    }
  nn::GPT<double> model(
      {.vocabulary = 9, .block = 6, .layers = 2, .width = 8, .blocks = {.attention = {.heads = 2}}}, rng);
  nn::set_implementation(model, "flash_attention_2");
  CHECK(model.h[1].attn.options.implementation == nn::Implementation::flash);
  model(Tensor<std::int64_t>{1, 2, 3});
  nn::set_implementation(model, "flex");
  model(Tensor<std::int64_t>{1, 2, 3});
  CHECK(last_sdpa_backend() == Backend::flex);
  nn::set_implementation(model, "sdpa");
  const sdpa_kernel pinned(Backend::math);
  model(Tensor<std::int64_t>{1, 2, 3});
  CHECK(last_sdpa_backend() == Backend::math);
  CHECK(message<ValueError>([&] { nn::set_implementation(model, "Flash"); }) ==
        "implementation: 'Flash'; there are 'eager', 'sdpa', 'flash' and 'flex'"sv);
}
