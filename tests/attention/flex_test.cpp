// Score and mask functions on the fused kernel, compared with attention() with the same thing written as a mask or a
// bias, or with operations on the tape.
#include "tapehead/attention/flex.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention/rungs.hpp"

using namespace tapehead;
using namespace rungs;
using testing::message;

TEST_CASE("flex: without functions it is attention; masks are masks") {
  const Inputs in(2, 3, 3, 130, 70, 5, 4);
  hold(results(in, {}, [&] { return flex_attention(in.q, in.k, in.v).out; }),
       results(in, {}, [&] { return attention(in.q, in.k, in.v).out; }));
  const Inputs square(1, 2, 2, 130, 130, 5, 4);
  const auto against = [&](const auto& mask_mod, const Tensor<bool>& mask) {
    const auto eager = results(square, {}, [&] { return attention(square.q, square.k, square.v, {.mask = mask}).out; });
    hold(results(square, {}, [&] { return flex_attention(square.q, square.k, square.v, NoScoreMod{}, mask_mod).out; }),
         eager);
    const auto blocks = block_mask(mask_mod, 1, 1, 130, 130);
    hold(results(square, {}, [&] { return flex_attention(square.q, square.k, square.v, NoScoreMod{}, blocks).out; }),
         eager);
  };
  const auto ids =
      cat<std::int64_t>({full<std::int64_t>({40}, 3), full<std::int64_t>({1}, 5), full<std::int64_t>({89}, 7)});
  against(flex::causal(), causal_mask(130));
  against(flex::sliding_window(9), sliding_window_mask(130, 9));
  against(flex::prefix_lm(50), prefix_mask(130, 50));
  against(flex::document(ids), document_mask(ids));
  against(and_masks(flex::causal(), flex::document(ids)), causal_mask(130) & document_mask(ids));
  against(or_masks(flex::sliding_window(3), flex::prefix_lm(2)), sliding_window_mask(130, 3) | prefix_mask(130, 2));
  against([](auto, auto, auto q, auto) { return q % 3 != 0; },
          broadcast_to(unsqueeze(distances(130, 1).reshape({130}) -
                                         3 * to<double>(to<std::int64_t>(distances(130, 1).reshape({130}) / 3)) >
                                     0,
                                 1),
                       {130, 130}));
}

TEST_CASE("flex: wholly masked tiles are skipped, and how many can be read") {
  const Tensor<float> x = ones<float>({1, 1, 1000, 8});
  const auto causal = flex_attention(x, x, x, NoScoreMod{}, flex::causal());
  CHECK(causal.skipped > causal.tiles / 4);
  CHECK(flex_attention(x, x, x).skipped == 0);
  CHECK(flex_attention(x, x, x, NoScoreMod{}, flex::sliding_window(10)).skipped > causal.skipped);
  CHECK(block_mask(flex::causal(), 1, 1, 64, 64).sparsity() == 0.25);
}

TEST_CASE("flex: score functions and what they are bound to, against the same on the tape") {
  const Inputs in(2, 4, 2, 37, 41, 5, 3);
  const auto eager = [&](const std::vector<Tensor<double>>& more, const auto& edit) {
    const auto heads = [](const Tensor<double>& x) {
      return cat<double>({x.slice(1, 0, 1), x.slice(1, 0, 1), x.slice(1, 1, 2), x.slice(1, 1, 2)}, 1);
    };
    return results(in, more, [&] {
      const Tensor<double> S = matmul(in.q, mT(heads(in.k))) / std::sqrt(5.0);
      return matmul(
          softmax(masked_fill(edit(S), ~causal_mask(37, 41, Align::top_left), -std::numeric_limits<double>::infinity()),
                  -1),
          heads(in.v));
    });
  };
  const auto fused = [&](const std::vector<Tensor<double>>& more, const auto& mod) {
    return results(in, more,
                   [&] { return flex_attention(in.q, in.k, in.v, mod, flex::causal(), {.enable_gqa = true}).out; });
  };
  NumpyRandom rng(2);
  const Tensor<double> slopes = rng.rand({4}), cap = scalar(1.7), table = rng.randn({4, 7});
  hold(fused({slopes}, flex::alibi(slopes)), eager({slopes}, [&](const auto& S) {
         return S - slopes.reshape({4, 1, 1}) * distances(37, 41);
       }));
  hold(fused({cap}, flex::soft_cap(cap)), eager({cap}, [&](const auto& S) { return tanh(S / cap) * cap; }));
  hold(fused({table}, flex::relative_bias(table)), eager({table}, [&](const auto& S) {
         const auto at = to<std::int64_t>(clamp(distances(37, 41), -3, 3) + 3).reshape({37 * 41});
         return S + index_select(table, 1, at).reshape({4, 37, 41});
       }));
  // Everything at once, with a bound index tensor read as it is.
  const Tensor<std::int64_t> kind = to<std::int64_t>(rng.rand({41}) * 2);
  const auto mixed = score_mod(
      [](auto s, auto b, auto h, auto, auto kv, auto slope, auto type, auto limit) {
        const auto bent = limit() * tanh(s / limit());
        return type(kv) == 1 ? bent * slope(h) : bent + exp(-s) * 0.01 + b;
      },
      slopes, kind, cap);
  hold(fused({slopes, cap}, mixed), eager({slopes, cap}, [&](const auto& S) {
         const auto bent = tanh(S / cap) * cap;
         const auto batch = Tensor<double>{0, 1}.reshape({2, 1, 1, 1});
         return where(eq(kind, scalar<std::int64_t>(1)), bent * slopes.reshape({4, 1, 1}),
                      bent + exp(-S) * 0.01 + batch);
       }));
}

TEST_CASE("flex: the gradient of a learned bias is its finite difference, reduced to its own shape") {
  const Tensor<double> zero = zeros<double>({2, 1}), v{{0}, {1}}, r = zeros<double>({3});
  const auto out = [&](const Tensor<double>& bias) {
    return flex_attention(
               zero, zero, v,
               score_mod([](auto s, auto, auto, auto q, auto k, auto read) { return s + read(q - k + 1); }, bias))
        .out;
  };
  Tape<double> tape;
  tape.watch(r);
  CHECK(allclose(tape.backward(sum(out(r)[1]))[r], Tensor<double>{0, 0.25, -0.25}, 0, 1e-15));
  const double h = 1e-6;
  for (std::int64_t i = 0; i < 3; ++i) {
    const Tensor<double> step = unslice(full<double>({1}, h), {3}, 0, i);
    const double slope = (sum(out(r + step)[1]).item() - sum(out(r - step)[1]).item()) / (2 * h);
    CHECK(slope == doctest::Approx(tape.backward(sum(out(r)[1]))[r].at({i})).epsilon(1e-8));
  }
  const Tensor<double> q = zeros<double>({2, 2, 2, 1}), k = zeros<double>({2, 2, 3, 1}),
                       values = broadcast_to(Tensor<double>{{0}, {1}, {2}}, {2, 2, 3, 1});
  const Tensor<double> bias = zeros<double>({1, 1, 1, 3});
  tape.watch(bias);
  for (Backend backend : {Backend::math, Backend::flash, Backend::flex}) {
    const sdpa_kernel pin(backend);
    const auto grad = tape.backward(sum(scaled_dot_product_attention(q, k, values, {.attn_mask = bias})))[bias];
    CHECK(allclose(grad, Tensor<double>{-8.0 / 3, 0, 8.0 / 3}.reshape({1, 1, 1, 3}), 0, 1e-14));
  }
}

TEST_CASE("flex: tiled softmax over any length, far from 0, with masked beginnings") {
  const Tensor<double> zero = zeros<double>({5, 1}), v = arange<double>(1, 6).reshape({5, 1});
  const auto out = flex_attention(
                       zero, zero, v, [](auto s, auto, auto, auto q, auto kv) { return s + (q - kv); }, flex::causal())
                       .out;
  CHECK(allclose(out.reshape({5}), Tensor<double>{1, 1.2689414, 1.4247896, 1.5073473, 1.5480584}, 0, 1e-7));
}

TEST_CASE("flex: what it refuses, and what it says") {
  const Tensor<double> q = zeros<double>({1, 2, 5, 3});
  CHECK(message<ShapeError>([&] { flex_attention(q, q, q, NoScoreMod{}, block_mask(flex::causal(), 1, 1, 8, 8)); }) ==
        "flex_attention: a block mask built for (1, 1, 8, 8) met scores of (1, 2, 5, 5); build one for this "
        "length (B and H may be 1)"sv);
  Tensor<double> slope = scalar(0.5);
  CHECK(message<IndexError>([&] {
          flex_attention(q, q, q, score_mod([](auto s, auto, auto, auto, auto, auto c) { return s + c(3); }, slope));
        }) == "score_mod: a bound tensor of shape () was read at (3,)"sv);
  NumpyRandom rng(1);
  const Tensor<double> x = rng.randn({2, 3});
  CHECK(message<GradientError>([&] {
          Tape<double> own;
          own.watch({x, slope});
          const auto five =
              score_mod([](auto s, auto, auto, auto, auto, auto c) { return s * c() + c() + c() + c() + c(); }, slope);
          own.backward(flex_attention(x, x, x, five).out, x);
        }).find("score_mod: more than 4 reads of bound tensors in one call") != std::string::npos);
  Tape<double> tape;
  tape.watch({{"slope", slope}});
  CHECK(message<GradientError>([&] {
          flex_attention(q, q, q, [slope](auto s, auto, auto, auto, auto) { return s + slope.item(); });
        }).find("captured a tensor of shape () that a tape knows") != std::string::npos);
  CHECK_NOTHROW(flex_attention(q, q, q, [c = detach(slope)](auto s, auto, auto, auto, auto) { return s + c.item(); }));
  CHECK(slope.item() == 0.5);  // the watch ended with the call
}

TEST_CASE("flex: empty batches and heads, whatever the score function reads") {
  const Tensor<double> none = zeros<double>({0, 1, 1, 1}), no_heads = zeros<double>({1, 0, 1, 1}),
                       empty = zeros<double>({0});
  const auto reads = score_mod([](auto s, auto, auto, auto, auto, auto x) { return s + x(0); }, empty);
  CHECK(flex_attention(none, none, none, reads).out.shape() == none.shape());
  CHECK(flex_attention(no_heads, no_heads, no_heads, flex::alibi(empty)).out.shape() == no_heads.shape());
  const sdpa_kernel pin(Backend::flex);
  CHECK(scaled_dot_product_attention(none, none, none, {.attn_mask = zeros<double>({1, 1})}).shape() == none.shape());
  CHECK(flex_attention(no_heads, no_heads, no_heads, NoScoreMod{}, NoMaskMod{}, {.enable_gqa = true}).out.shape() ==
        no_heads.shape());
}

TEST_CASE("flex: block masks of sizes that cannot be are refused; those of size 0 are empty") {
  CHECK_THROWS_AS(block_mask(flex::causal(), -1, 1, 8, 8), ShapeError);
  CHECK_THROWS_AS(block_mask(flex::causal(), 1, -1, 8, 8), ShapeError);
  CHECK_THROWS_AS(block_mask(flex::causal(), 1, 1, -8, 8), ShapeError);
  CHECK_THROWS_AS(block_mask(flex::causal(), 1, 1, 8, -8), ShapeError);
  CHECK_THROWS_AS(block_mask(flex::causal(), INT64_MAX, INT64_MAX, 8, 8), ShapeError);
  CHECK_THROWS_AS(block_mask(flex::causal(), 1, 1, INT64_MAX, INT64_MAX), Error);
  const Tensor<double> q = zeros<double>({0, 2, 8, 1});
  CHECK(flex_attention(q, q, q, NoScoreMod{}, block_mask(flex::causal(), 0, 2, 8, 8)).out.shape() == q.shape());
  CHECK(block_mask(flex::causal(), 0, 2, 8, 8).sparsity() == 0);
}

TEST_CASE("flex: options as in attention(): bias, mask, causal and sinks beside the functions; no dropout") {
  const Inputs in(2, 4, 2, 37, 41, 5, 3);
  NumpyRandom rng(4);
  const Tensor<double> bias = rng.randn({4, 1, 41}), sinks = rng.randn({4}), slopes = rng.rand({4});
  const Tensor<bool> mask = padding_mask({20, 41}, 41);
  const AttentionOptions<double> options{
      .mask = mask, .bias = bias, .sinks = sinks, .causal = true, .enable_gqa = true};
  AttentionOptions<double> written = options;
  written.mask = mask & sliding_window_mask(37, 41, 9, Align::top_left);
  hold(results(
           in, {bias, sinks, slopes},
           [&] { return flex_attention(in.q, in.k, in.v, flex::alibi(slopes), flex::sliding_window(9), options).out; }),
       results(in, {bias, sinks, slopes}, [&] {
         AttentionOptions<double> o = written;
         o.bias = bias - slopes.reshape({4, 1, 1}) * distances(37, 41);
         return attention(in.q, in.k, in.v, o).out;
       }));
  TorchRandom generator(1);
  CHECK(message<ValueError>([&] {
          flex_attention(in.q, in.k, in.v, NoScoreMod{}, NoMaskMod{},
                         {.enable_gqa = true, .dropout_p = 0.5, .generator = &generator});
        }) == "flex_attention: dropout_p 0.5; there is no dropout here, flash_attention has it"sv);
}
