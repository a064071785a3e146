// Modules of attention: each against its formula, its gradients through every parameter, its errors.
#include "tapehead/models/attention.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "models/modules.hpp"
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
      const nn::MultiHeadAttention<double> attn(12, rng, {.heads = 4, .kv_heads = kv_heads, .causal = causal});
      const std::int64_t group = kv_heads == 0 ? 1 : 4 / kv_heads;
      std::vector<Tensor<double>> heads;
      for (std::int64_t head = 0; head < 4; ++head) {
        const auto part = [](const Tensor<double>& y, std::int64_t i) { return slice(y, -1, 3 * i, 3 * i + 3); };
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
  CHECK(message<ShapeError>([&] { attn.cross(x, x); }).starts_with("linear: x (2, 3, 6), W (6, 5)"));
  CHECK_GRADIENTS(attn, randn({3, 6}), [&](const auto& m, const auto& q) { return m.cross(q, context[0]); });
}

TEST_CASE("nn: multi-head attention hands out its weights") {
  TorchRandom rng(2);
  const auto x = randn({2, 5, 12}), context = randn({2, 4, 12}, 2);
  const auto mask = padding_mask({5, 3}, 5);
  for (const char* how : {"eager", "flash", "sdpa"}) {
    nn::MultiHeadAttention<double> attn(12, rng, {.heads = 4, .kv_heads = 2, .causal = true, .rope = false});
    nn::set_implementation(attn, how);
    const auto [out, each] = attn.with_weights(x, mask, false);
    CHECK((close(out, attn(x, mask)) && each.shape() == Shape{2, 4, 5, 5}));
    CHECK(equal(attn.with_weights(x, mask).weights, mean(each, 1)));
    CHECK(close(sum(each, -1), ones<double>({2, 4, 5})));
    CHECK((equal(each, tril(each)) && equal(masked_fill(each, mask, 0), zeros_like(each))));
    const auto crossed = attn.cross_with_weights(x, context);
    CHECK((close(crossed.out, attn.cross(x, context)) && crossed.weights.shape() == Shape{2, 5, 4}));
    CHECK(crossed.weights.at({0, 0, 3}) > 0);  // never causal
    const auto q = nn::split_heads(attn.q_proj(x), 4), k = nn::split_heads(attn.k_proj(x), 2);
    const auto scores = matmul(select(q, 1, 3), mT(select(k, 1, 1))) / std::sqrt(3.0);
    CHECK(close(select(attn.with_weights(x, {}, false).weights, 1, 3),
                softmax(masked_fill(scores, ~causal_mask(5), -INFINITY), -1)));
    CHECK_GRADIENTS(attn, randn({3, 12}), [](const auto& m, const auto& in) { return m.with_weights(in).weights; });
  }
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

  nn::MultiHeadAttention<double> normed(8, rng,
                                        {.heads = 2, .causal = true, .bias = false, .rope = true, .qk_norm = true});
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
  for (const nn::HeadOptions& o :
       std::vector<nn::HeadOptions>{{.heads = 4, .causal = true},
                                    {.heads = 4, .kv_heads = 2, .causal = true, .rope = true, .qk_norm = true},
                                    {.heads = 2, .kv_heads = 1, .causal = true, .rope = true, .sinks = true}}) {
    const auto attn = with_random_parameters(nn::MultiHeadAttention<double>(8, rng, o));
    const auto whole = attn(x);
    for (const auto& cuts : std::vector<std::vector<std::int64_t>>{{7}, {1, 1, 1, 1, 1, 1, 1}, {3, 1, 3}, {5, 2}}) {
      auto cache = attn.make_cache({2}, 7);
      std::vector<Tensor<double>> out;
      for (std::int64_t n : cuts) out.push_back(attn.decode(slice(x, 1, cache.length(), cache.length() + n), cache));
      CHECK(close(cat(out, 1), whole));
    }
  }
}

TEST_CASE("nn: heads that do not fit are refused") {
  TorchRandom rng(1);
  CHECK(message<ShapeError>([&] { nn::MultiHeadAttention<float>(10, rng, {.heads = 4}); }) ==
        "MultiHeadAttention: width 10, 4 heads on 4 key and value heads; the heads must divide the width, "
        "and the key and value heads the "
        "heads"sv);
  CHECK(message<ShapeError>([&] { nn::MultiHeadAttention<float>(12, rng, {.heads = 3, .kv_heads = 2}); }) !=
        "[nothing was thrown]"sv);
  for (std::int64_t wrong : {std::int64_t{-1}, std::int64_t{0}, std::numeric_limits<std::int64_t>::min()})
    CHECK(message<ShapeError>([&] { nn::MultiHeadAttention<float>(12, rng, {.heads = wrong}); }) !=
          "[nothing was thrown]"sv);
  CHECK(message<ShapeError>([&] { nn::MultiHeadAttention<float>(12, rng, {.heads = 4, .kv_heads = -2}); }) !=
        "[nothing was thrown]"sv);
  CHECK(message<ShapeError>([&] { nn::MultiHeadAttention<float>(12, rng, {.heads = 4}, -2); }) !=
        "[nothing was thrown]"sv);
  CHECK(message<ShapeError>([&] { nn::SelfAttention<float>(12, rng, {.d_k = -2}); }) != "[nothing was thrown]"sv);
  CHECK(message<ShapeError>([&] {
          nn::split_heads(zeros<float>({3, 4}), 3);
        }) == "attention: an input (3, 4) for 3 heads; it must be (…, L, width), the width a multiple of the heads"sv);
  CHECK(message<ShapeError>([&] { nn::MultiHeadAttention<float>(9, rng, {.heads = 3, .rope = true}); }) ==
        "MultiHeadAttention: heads of width 9 / 3 = 3; rope rotates pairs, so it must be even"sv);
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
  nn::GPT<double> model({.vocabulary = 9, .block = 6, .layers = 2, .width = 8, .blocks = {.attention = {.heads = 2}}},
                        rng);
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
