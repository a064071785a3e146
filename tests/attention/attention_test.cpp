// The lower rungs of the ladder, each held to the next: composed from the smallest primitives, primitives on
// the tape, gradients by hand, the fused kernel. Sizes are odd and unequal on purpose: equal ones hide a
// wrong axis.
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "attention/rungs.hpp"

using namespace tapehead;
using namespace rungs;
using testing::message;

namespace {

struct Problem {
  std::string name;
  Shape q, k, v;
  AttentionOptions<double> options = {};
};

std::vector<Problem> problems() {
  NumpyRandom rng(3);
  const double inf = std::numeric_limits<double>::infinity();
  Tensor<double> holes = rng.randn({3, 5});
  holes = masked_fill(holes, holes > 1, -inf);
  std::vector<Problem> all;
  all.push_back({"one matrix", {3, 4}, {5, 4}, {5, 2}, {}});
  all.push_back({"batch", {2, 3, 4}, {2, 5, 4}, {2, 5, 7}, {}});
  all.push_back({"heads", {2, 3, 5, 4}, {2, 3, 5, 4}, {2, 3, 5, 6}, {}});
  all.push_back({"causal", {2, 3, 5, 4}, {2, 3, 5, 4}, {2, 3, 5, 6}, {.causal = true}});
  all.push_back({"causal 3 x 5, top left", {3, 4}, {5, 4}, {5, 2}, {.causal = true}});
  all.push_back({"causal 3 x 5, bottom right", {3, 4}, {5, 4}, {5, 2}, {.causal = true, .align = Align::bottom_right}});
  all.push_back({"causal 5 x 2, empty rows", {5, 4}, {2, 4}, {2, 3}, {.causal = true, .align = Align::bottom_right}});
  all.push_back({"padding and causal",
                 {2, 3, 5, 4},
                 {2, 3, 5, 4},
                 {2, 3, 5, 6},
                 {.mask = padding_mask({3, 5}, 5), .causal = true}});
  all.push_back({"padding to nothing", {2, 1, 3, 4}, {2, 1, 5, 4}, {2, 1, 5, 2}, {.mask = padding_mask({0, 4}, 5)}});
  all.push_back({"bias", {2, 3, 4}, {2, 5, 4}, {2, 5, 7}, {.bias = rng.randn({3, 5})}});
  all.push_back({"bias with -inf", {2, 3, 4}, {2, 5, 4}, {2, 5, 7}, {.bias = holes}});
  all.push_back({"scale 0", {3, 4}, {5, 4}, {5, 2}, {.scale = 0.0}});
  all.push_back({"scale -1.5", {3, 4}, {5, 4}, {5, 2}, {.scale = -1.5}});
  all.push_back({"four heads on two", {2, 4, 3, 5}, {2, 2, 7, 5}, {2, 2, 7, 3}, {.enable_gqa = true}});
  all.push_back(
      {"three heads on one, causal", {1, 3, 7, 5}, {1, 1, 7, 5}, {1, 1, 7, 3}, {.causal = true, .enable_gqa = true}});
  all.push_back({"dropped weights",
                 {2, 3, 4},
                 {2, 5, 4},
                 {2, 5, 7},
                 {.dropout_p = 0.4, .keep_mask = attention_keep_mask({2, 3, 5}, 0.4, 9)}});
  all.push_back({"sinks", {2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 6}, {.sinks = rng.randn({3})}});
  all.push_back({"a sink for each batch and head, and empty rows",
                 {2, 4, 5, 4},
                 {2, 2, 3, 4},
                 {2, 2, 3, 6},
                 {.bias = rng.randn({5, 3}),
                  .sinks = rng.randn({2, 4}),
                  .causal = true,
                  .align = Align::bottom_right,
                  .enable_gqa = true}});
  all.push_back({"one sink of a matrix, no keys", {2, 4}, {0, 4}, {0, 3}, {.sinks = scalar(0.5)}});
  all.push_back(
      {"sinks, one of them without weight", {2, 5, 4}, {2, 7, 4}, {2, 7, 6}, {.sinks = Tensor<double>{-inf, 2}}});
  all.push_back({"sinks and dropout",
                 {2, 3, 4},
                 {2, 5, 4},
                 {2, 5, 7},
                 {.sinks = rng.randn({2}), .dropout_p = 0.4, .keep_mask = attention_keep_mask({2, 3, 5}, 0.4, 9)}});
  all.push_back({"keys of no width", {3, 0}, {5, 0}, {5, 2}, {}});
  all.push_back({"one key", {3, 4}, {1, 4}, {1, 2}, {}});
  all.push_back({"one query", {1, 4}, {11, 4}, {11, 2}, {}});
  all.push_back({"no keys", {2, 4}, {0, 4}, {0, 3}, {}});
  all.push_back({"no queries", {0, 4}, {3, 4}, {3, 2}, {}});
  all.push_back({"keys broadcast over the batch", {3, 2, 4}, {5, 4}, {1, 5, 2}, {}});
  return all;
}

struct Gradients3 {
  Tensor<double> out, dQ, dK, dV;
  std::optional<Tensor<double>> d_bias, d_sinks;
};

template <class F> Gradients3 by_tape(const Tensor<double>& Q, const Tensor<double>& K, const Tensor<double>& V,
                                      const Tensor<double>& dO, const AttentionOptions<double>& options, const F& f) {
  Tape<double> tape;
  tape.watch({Q, K, V});
  if (options.bias) tape.watch(*options.bias);
  if (options.sinks) tape.watch(*options.sinks);
  const Tensor<double> out = f();
  auto grad = tape.backward(out, dO);
  const auto of = [&](const auto& x) { return x ? std::optional(grad[*x]) : std::nullopt; };
  return {out, grad[Q], grad[K], grad[V], of(options.bias), of(options.sinks)};
}

}  // namespace

TEST_CASE("attention: composed = operations = by hand = fused, values and gradients, for every kind of option") {
  NumpyRandom rng(11);
  for (const Problem& p : problems()) {
    CAPTURE(p.name);
    const Tensor<double> Q = rng.randn(p.q), K = rng.randn(p.k), V = rng.randn(p.v);
    const Tensor<double> out = attention(Q, K, V, p.options).out, dO = rng.randn(out.shape());
    const auto tape = by_tape(Q, K, V, dO, p.options, [&] { return attention(Q, K, V, p.options).out; });
    const auto hand = attention_backward(Q, K, V, dO, p.options);
    CHECK(close(tape.out, hand.O));
    CHECK(close(tape.dQ, hand.dQ));
    CHECK(close(tape.dK, hand.dK));
    CHECK(close(tape.dV, hand.dV));
    CHECK(close(hand.D, sum(hand.dA * hand.A, -1, true)));
    if (p.options.bias) CHECK(close(*tape.d_bias, *hand.d_bias));
    if (p.options.sinks) CHECK(close(*tape.d_sinks, *hand.d_sinks));

    const auto fused = by_tape(Q, K, V, dO, p.options, [&] { return flash_attention(Q, K, V, p.options).out; });
    CHECK(close(tape.out, fused.out));
    CHECK(close(tape.dQ, fused.dQ));
    CHECK(close(tape.dK, fused.dK));
    CHECK(close(tape.dV, fused.dV));
    if (p.options.bias) CHECK(close(*tape.d_bias, *fused.d_bias));
    if (p.options.sinks) CHECK(close(*tape.d_sinks, *fused.d_sinks));

    const bool composes = !p.options.bias && !p.options.sinks && !p.options.scale && !p.options.enable_gqa &&
                          p.options.dropout_p == 0 && p.k[p.k.rank() - 2] > 0;
    if (!composes) continue;
    std::optional<Tensor<bool>> mask = p.options.mask;
    if (p.options.causal) {
      const auto causal = causal_mask(Q.size(-2), K.size(-2), p.options.align.value_or(Align::top_left));
      mask = mask ? *mask & causal : causal;
    }
    const auto composed = by_tape(Q, K, V, dO, p.options, [&] { return composed::attention(Q, K, V, mask); });
    CHECK(close(tape.out, composed.out));
    CHECK(close(tape.dQ, composed.dQ));
    CHECK(close(tape.dK, composed.dK));
    CHECK(close(tape.dV, composed.dV));
  }
}

TEST_CASE("attention: a query with no key gives 0 and sends no gradient") {
  const Tensor<double> q = eye<double>(2), k = eye<double>(2), v{{1, 2}, {3, 4}};
  const Tensor<bool> keep{{false, false}, {true, true}};
  Tape<double> tape;
  tape.watch({q, k, v});
  auto [out, weights] = attention(q, k, v, {.mask = keep});
  CHECK(allclose(out, Tensor<double>{{0, 0}, {2.3395231, 3.3395231}}, 0, 1e-7));
  CHECK(sum(weights, -1).to_vector()[0] == 0);
  auto grad = tape.backward(sum(out[1]));
  CHECK(allclose(grad[q], Tensor<double>{{0, 0}, {-0.6255944, 0.6255944}}, 0, 1e-7));
  CHECK(allclose(grad[k], Tensor<double>{{0, -0.6255944}, {0, 0.6255944}}, 0, 1e-7));
  CHECK(allclose(grad[v], Tensor<double>{{0.3302385, 0.3302385}, {0.6697616, 0.6697616}}, 0, 1e-7));
  CHECK(std::isnan(attention(q, k, v, {.mask = keep, .empty_rows = EmptyRows::nan}).out.at({0, 0})));
}

TEST_CASE("attention: a masked key's score is selected away, NaN and all") {
  const double NaN = std::numeric_limits<double>::quiet_NaN();
  const Tensor<double> q{{1}}, k{{1}, {NaN}}, v{{5}, {7}};
  CHECK(attention(q, k, v, {.mask = Tensor<bool>{{true, false}}}).out.item() == 5);
}

TEST_CASE("attention: bool masks keep, float masks add, and causal holds together with a mask") {
  const Tensor<double> zero = zeros<double>({1, 1}), keys = zeros<double>({2, 1}), v{{1}, {3}};
  CHECK(attention(zero, keys, v, {.mask = Tensor<bool>{true, false}}).out.item() == 1);
  CHECK(attention(zero, keys, v, {.bias = Tensor<double>{1, 0}}).out.item() ==
        doctest::Approx(1.5378828).epsilon(1e-7));
  const Tensor<double> three = zeros<double>({3, 1});
  CHECK(allclose(
      attention(three, three, Tensor<double>{{1}, {2}, {3}}, {.mask = Tensor<bool>{true, false, true}, .causal = true})
          .out,
      Tensor<double>{{1}, {1}, {2}}));
}

TEST_CASE("attention: the two alignments of causal, and the scale as it is given") {
  const auto over = [](std::int64_t Lq, std::int64_t Lk, Align align) {
    const Tensor<double> v = arange<double>(1, static_cast<double>(Lk) + 1).reshape({Lk, 1});
    return attention(zeros<double>({Lq, 1}), zeros<double>({Lk, 1}), v, {.causal = true, .align = align})
        .out.to_vector();
  };
  CHECK(over(2, 5, Align::top_left) == std::vector<double>{1, 1.5});
  CHECK(over(2, 5, Align::bottom_right) == std::vector<double>{2.5, 3});
  CHECK(over(5, 2, Align::top_left) == std::vector<double>{1, 1.5, 1.5, 1.5, 1.5});
  CHECK(over(5, 2, Align::bottom_right) == std::vector<double>{0, 0, 0, 1, 1.5});
  const Tensor<double> q{{1}}, k{{1}, {2}}, v{{1}, {3}};
  CHECK(attention(q, k, v).out.item() == doctest::Approx(2.4621172).epsilon(1e-7));
  CHECK(attention(q, k, v, {.scale = 0.0}).out.item() == 2);
  CHECK(attention(q, k, v, {.scale = -1.0}).out.item() == doctest::Approx(1.5378828).epsilon(1e-7));
}

TEST_CASE("attention: each key head serves consecutive query heads") {
  const Tensor<double> v = cat<double>({ones<double>({1, 1, 2, 1}), full<double>({1, 1, 2, 1}, 2)}, 1);
  const auto heads = [&](std::int64_t Hq) {
    return attention(zeros<double>({1, Hq, 2, 1}), zeros<double>({1, 2, 2, 1}), v, {.enable_gqa = true}).out;
  };
  CHECK(heads(4).select(2, 0).reshape({4}).to_vector() == std::vector<double>{1, 1, 2, 2});
  CHECK(message<ShapeError>([&] { heads(3); }).find("3 query heads on 2 key and 2 value heads") != std::string::npos);
}

TEST_CASE("attention: masks of every rank broadcast from the right, others throw") {
  const Tensor<double> q = zeros<double>({2, 3, 4, 1}), k = zeros<double>({2, 3, 5, 1}), v = ones<double>({2, 3, 5, 2});
  for (const Shape& shape : {Shape{5}, Shape{4, 5}, Shape{2, 1, 1, 5}, Shape{1, 3, 4, 5}})
    CHECK(equal(attention(q, k, v, {.mask = full<bool>(shape, true)}).out, ones<double>({2, 3, 4, 2})));
  CHECK(message<ShapeError>([&] {
          attention(q, k, v, {.mask = full<bool>({2, 4, 5}, true)});
        }) ==
        "attention: a mask of shape (2, 4, 5) does not broadcast to the scores' shape (2, 3, 4, 5); aligned "
        "from the right, each of its "
        "sizes must be the scores' or 1 (a padding mask is (B, 1, 1, Lk))"sv);
}

TEST_CASE("attention: what does not fit is named") {
  const Tensor<double> q = zeros<double>({3, 4}), k = zeros<double>({5, 4}), v = zeros<double>({5, 2});
  CHECK(message<ShapeError>([&] {
          attention(q, zeros<double>({5, 3}), v);
        }) == "attention: Q (3, 4), K (5, 3), V (5, 2): queries of width 4 and keys of width 3; they must be equal"sv);
  CHECK(message<ShapeError>([&] {
          attention(q, k, zeros<double>({4, 2}));
        }) == "attention: Q (3, 4), K (5, 4), V (4, 2): 5 keys and 4 values; each key has one value"sv);
  CHECK(message<ShapeError>([&] { attention(q[0], k, v); }).find("each needs at least the axes (L, d)") !=
        std::string::npos);
  CHECK(message<ValueError>([&] { attention(q, k, v, {.dropout_p = 0.5}); }).find("nothing to draw from") !=
        std::string::npos);
  CHECK(message<ValueError>([&] { attention(q, k, v, {.dropout_p = 1.5}); }) ==
        "attention: dropout_p 1.5; it is a probability, so it must be in [0, 1]"sv);
  CHECK(message<ShapeError>([&] { attention_backward(q, k, v, q); }) ==
        "attention_backward: dO has shape (3, 4), the output (3, 2); they must be equal"sv);
}

TEST_CASE("attention: transposed and expanded inputs are read by their strides") {
  const Tensor<double> stored{{{1}, {10}}, {{2}, {20}}};  // (L, H, d)
  const Tensor<double> q = zeros<double>({2, 1, 1}), k = broadcast_to(zeros<double>({1, 1, 1}), {2, 2, 1});
  CHECK(attention(q, k, stored.transpose(0, 1)).out.to_vector() == std::vector<double>{1.5, 15});
}

TEST_CASE("attention: dropout is a function of seed and position, replayed by the same mask") {
  TorchRandom a(4), b(4);
  NumpyRandom rng(1);
  const Tensor<double> q = rng.randn({2, 3, 7, 4}), k = rng.randn({2, 3, 9, 4}), v = rng.randn({2, 3, 9, 5});
  const auto first = attention(q, k, v, {.dropout_p = 0.5, .generator = &a}).out;
  CHECK(equal(first, attention(q, k, v, {.dropout_p = 0.5, .generator = &b}).out));
  CHECK_FALSE(equal(first, attention(q, k, v, {.dropout_p = 0.5, .generator = &a}).out));
  TorchRandom again(4);
  const auto keep = attention_keep_mask({2, 3, 7, 9}, 0.5, again.next_uint64());
  CHECK(equal(first, attention(q, k, v, {.dropout_p = 0.5, .keep_mask = keep}).out));
  const double share = mean(to<double>(attention_keep_mask({4, 8, 50, 50}, 0.3, 1))).item();
  CHECK(std::abs(share - 0.7) < 4 * std::sqrt(0.3 * 0.7 / 80'000));  // 80,000 draws: four standard deviations
  CHECK(sum(attention(q, k, v, {.dropout_p = 1.0, .generator = &a}).out).item() == 0);
}

TEST_CASE("self-attention: the chapter's module is causal, and names its parameters as PyTorch does") {
  TorchRandom rng(0);
  const Tensor<float> x = rng.randn({2, 5, 16});
  nn::SelfAttention<float> attn(16, rng, {.causal = true});
  const Tensor<float> y = attn(x);
  CHECK(y.shape() == Shape{2, 5, 16});
  const Tensor<float> last = unslice(ones<float>({2, 1, 16}), {2, 5, 16}, 1, 4);
  CHECK(equal(attn(x + last).slice(1, 0, 4), y.slice(1, 0, 4)));
  CHECK_FALSE(equal(attn(x + last), y));
  std::vector<std::string> names;
  for (const auto& p : attn.parameters()) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight"});
}

TEST_CASE("self-attention: dropout is on while training and off in evaluation") {
  TorchRandom rng(0);
  const Tensor<float> x = rng.randn({1, 5, 8});
  nn::SelfAttention<float> attn(8, rng, {.dropout = 0.5});
  CHECK_FALSE(equal(attn(x), attn(x)));
  attn.eval();
  CHECK(equal(attn(x), attn(x)));
  CHECK_THROWS_AS(attention(x, x, x, {.dropout_p = -0.1f}), ValueError);
}

TEST_CASE("attention: third order, with one tensor as queries, keys, values, bias and sinks") {
  NumpyRandom rng(9);
  const Tensor<double> x = rng.randn({3, 3}), u = rng.randn({3, 3}), w = rng.randn({3, 3});
  const auto plain = [&](const auto& t) { return sum(attention(t, t, t).out * w); };
  CHECK(third_order_error(plain, x, u) < 1e-6);
  const auto with_options = [&](const auto& t) {
    return sum(attention(t, t, t, {.bias = t, .sinks = sum(t), .causal = true}).out * w);
  };
  CHECK(third_order_error(with_options, x, u) < 1e-6);
}

TEST_CASE("attention: keys of no width have scores of 0 and are averaged") {
  const Tensor<double> q = zeros<double>({2, 0}), v{{1}, {3}};
  const std::vector<double> mean{2, 2};
  CHECK(attention(q, q, v).out.to_vector() == mean);
  CHECK(attention_backward(q, q, v, ones<double>({2, 1})).O.to_vector() == mean);
  CHECK(composed::attention(q, q, v).to_vector() == mean);
  CHECK(flash_attention(q, q, v).out.to_vector() == mean);
  CHECK(flex_attention(q, q, v).out.to_vector() == mean);
  CHECK(scaled_dot_product_attention(q, q, v).to_vector() == mean);
  const Tensor<double> packed = zeros<double>({2, 1, 0});
  CHECK(flash_attention_varlen(packed, packed, v.reshape({2, 1, 1}), {0, 2}, {0, 2}).out.to_vector() == mean);
}

TEST_CASE("attention: a dropout probability is in [0, 1], in the mask too") {
  for (double p : {-0.1, 1.1, std::nan("")}) {
    CHECK_THROWS_AS(attention_keep_mask({2, 2}, p, 1), ValueError);
    CHECK_THROWS_AS(attention(ones<double>({2, 2}), ones<double>({2, 2}), ones<double>({2, 2}), {.dropout_p = p}),
                    ValueError);
  }
}

TEST_CASE("attention: sinks that do not fit the heads are named") {
  const Tensor<double> x = zeros<double>({2, 3, 4});
  for (const auto& call :
       {+[](const Tensor<double>&y, const Tensor<double>&s) { attention(y, y, y, {.sinks = s}); },
        +[](const Tensor<double>&y, const Tensor<double>&s) { flash_attention(y, y, y, {.sinks = s}); }})
    CHECK(message<ShapeError>([&] {
            call(x, zeros<double>({3}));
          }).find("a row of sinks of shape (3, 1, 1) does not broadcast") != std::string::npos);
}
