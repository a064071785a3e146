// The fused rung: its results and their layout, its gradients as values, and inputs at the edge of what numbers can
// say.
#include "tapehead/attention/flash.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attention/rungs.hpp"

using namespace tapehead;
using namespace rungs;
using testing::message;

TEST_CASE("fused gradients are values: differentiated again they throw and name the operation") {
  NumpyRandom rng(1);
  const Tensor<double> q = rng.randn({3, 2}), k = rng.randn({4, 2}), v = rng.randn({4, 2});
  Tape<double> outer;
  outer.watch(q);
  Tape<double> inner;
  inner.watch({q, k, v});
  const auto dQ = inner.backward(sum(flash_attention(q, k, v).out))[q];
  CHECK(dQ.shape() == q.shape());
  CHECK(message<GradientError>([&] {
          outer.backward(sum(dQ));
        }).find("flash_attention: the fused kernel has no second derivative") != std::string::npos);
  const auto again = inner.backward(sum(scaled_dot_product_attention(q, k, v)))[q];
  CHECK(last_sdpa_backend() == Backend::math);  // two tapes: math is chosen
  CHECK_NOTHROW(outer.backward(sum(again)));
}

TEST_CASE("fused gradients: what one walk back left behind, no other takes: other tapes record it") {
  NumpyRandom rng(2);
  const Tensor<double> q = rng.randn({3, 2}), k = rng.randn({4, 2}), v = rng.randn({4, 2}), dO = rng.randn({3, 2});
  Tape<double> outer, keys, queries;
  outer.watch(dO), keys.watch(k), queries.watch(q);
  const auto out = flash_attention(q, k, v).out;
  {
    const Tape<double>::Paused no_records;
    queries.backward(out, dO);  // dK is computed with dQ, and nobody fetches it
  }
  CHECK(outer.knows(keys.backward(out, dO)[k]));
}

TEST_CASE("flash: the log-sum-exp, rows without keys, and sizes without limit") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor<double> q = eye<double>(2), v{{1, 2}, {3, 4}};
  const auto row1 = flash_attention(q, q, v, {.mask = Tensor<bool>{{false, false}, {true, true}}});
  CHECK(row1.lse.at({0}) == -inf);
  CHECK(row1.lse.at({1}) == doctest::Approx(1.1079403).epsilon(1e-7));
  CHECK(flash_attention(zeros<double>({2, 4}), zeros<double>({0, 4}), zeros<double>({0, 3})).out.to_vector() ==
        std::vector<double>(6, 0.0));
  CHECK(flash_attention(zeros<double>({0, 4}), zeros<double>({3, 4}), zeros<double>({3, 2})).out.shape() ==
        Shape{0, 2});
  CHECK(flash_attention(zeros<double>({1, 4}), zeros<double>({500, 4}), ones<double>({500, 1})).out.item() ==
        doctest::Approx(1).epsilon(1e-14));
  NumpyRandom rng(3);
  const Tensor<double> wide = rng.randn({6, 2, 5}), x = wide.transpose(0, 1);
  CHECK(equal(flash_attention(x, x, x, {.causal = true}).out,
              flash_attention(contiguous(x), contiguous(x), contiguous(x), {.causal = true}).out));
  CHECK(message<ValueError>([&] { flash_attention(q, q, v, {.empty_rows = EmptyRows::nan}); }).find("EmptyRows::nan") !=
        std::string::npos);
  CHECK(message<ShapeError>([&] {
          flash_attention(q, zeros<double>({5, 3}), zeros<double>({5, 2}));
        }).find("queries of width 2 and keys of width 3") != std::string::npos);
}

TEST_CASE("flash: heads cut from rows give results that merge without a copy") {
  NumpyRandom rng(5);
  const auto heads = [&rng](std::int64_t count) { return rng.randn({2, 7, count, 3}).transpose(1, 2); };
  const Tensor<double> q = heads(4), k = heads(2), v = heads(2);
  Tape<double> tape;
  tape.watch({q, k, v});
  const auto out = flash_attention(q, k, v, {.enable_gqa = true}).out;
  const auto gradients = tape.backward(sum(out * out));
  for (const Tensor<double>& x : {out, gradients[q], gradients[k], gradients[v]})
    CHECK(x.transpose(1, 2).is_contiguous());
  CHECK(equal(out, flash_attention(contiguous(q), contiguous(k), contiguous(v), {.enable_gqa = true}).out));
  CHECK(flash_attention(contiguous(q), k, v, {.enable_gqa = true}).out.is_contiguous());
}

TEST_CASE("qkvpacked: what flash_attention gives for the parts, the gradient in one piece") {
  NumpyRandom rng(7);
  const Tensor<double> qkv = rng.randn({2, 5, 8, 3}).transpose(1, 2), dO = rng.randn({2, 4, 5, 3});  // 4, 2, 2
  const AttentionOptions<double> causal{.causal = true, .enable_gqa = true};
  const auto parts = [&] { return split(qkv, {4, 2, 2}, 1); };
  Tape<double> tape;
  tape.watch(qkv);
  const auto out = flash_attention_qkvpacked(qkv, 4, causal).out,
             by_sdpa = dispatch_attention_qkvpacked(qkv, 4, {.causal = true});
  CHECK(last_sdpa_backend() == Backend::flash);
  CHECK(equal(out, flash_attention(parts()[0], parts()[1], parts()[2], causal).out));
  CHECK(equal(out, by_sdpa));
  const auto gradient = tape.backward(out, dO)[qkv];
  CHECK(gradient.transpose(1, 2).is_contiguous());
  CHECK(equal(gradient, tape.backward(flash_attention(parts()[0], parts()[1], parts()[2], causal).out, dO)[qkv]));
  CHECK(equal(gradient, tape.backward(by_sdpa, dO)[qkv]));
  {
    Tape<double> outer;  // two tapes: gradients may be differentiated again
    outer.watch(qkv);
    const auto composed = dispatch_attention_qkvpacked(qkv, 4, {.causal = true});
    CHECK(allclose(composed, out, 1e-13, 1e-13));  // another order of the same few dozen additions
    CHECK(last_sdpa_backend() == Backend::math);
  }
  for (std::int64_t heads : {0, 3, 5, 7, 8, -2})
    CHECK(message<ShapeError>([&] {
            flash_attention_qkvpacked(qkv, heads);
          }).find("flash_attention_qkvpacked: qkv (2, 8, 5, 3) with") == 0);
  CHECK_THROWS_AS(flash_attention_qkvpacked(zeros<double>({8, 3}), 4), ShapeError);
  CHECK_THROWS_AS(dispatch_attention_qkvpacked(zeros<double>({8, 3}), 4), ShapeError);
}

namespace {

// Every call that runs the fused kernel, with the same options, as (name, its output).
using Call = std::function<Tensor<double>(const AttentionOptions<double>&)>;
std::vector<std::pair<std::string, Call>> fused_calls(const Tensor<double>& q, const Tensor<double>& k,
                                                      const Tensor<double>& v) {
  const auto packed = [](const Tensor<double>& x) { return x[0].transpose(0, 1); };
  const auto pinned = [=](Backend backend) {
    return [=](const AttentionOptions<double>& o) {
      const sdpa_kernel pin(backend);
      return dispatch_attention(q, k, v, o);
    };
  };
  return {{"flash", [=](const auto& o) { return flash_attention(q, k, v, o).out; }},
          {"flex", [=](const auto& o) { return flex_attention(q, k, v, NoScoreMod{}, NoMaskMod{}, o).out; }},
          {"sdpa by flash", pinned(Backend::flash)},
          {"sdpa by flex", pinned(Backend::flex)},
          {"sdpa by math", pinned(Backend::math)},
          {"qkvpacked",
           [=](const auto& o) {
             return flash_attention_qkvpacked(cat<double>({q, k, v}, 1), q.size(1), o).out;
           }},
          {"varlen", [=](const auto& o) {
             const Tensor<std::int64_t> all_q{0, q.size(2)}, all_k{0, k.size(2)};
             return unsqueeze(
                 flash_attention_varlen(packed(q), packed(k), packed(v), all_q, all_k, o).out.transpose(0, 1), 0);
           }}};
}

}  // namespace

TEST_CASE("fused calls own what their pullbacks need: options may be temporaries") {
  const Inputs in(1, 2, 2, 4, 4, 3, 3);
  NumpyRandom rng(8);
  const Tensor<double> bias = rng.randn({4, 4}), sinks = rng.randn({2});
  const auto options = [&] {
    return AttentionOptions<double>{.mask = document_mask({0, 0, 1, 1}), .bias = bias, .sinks = sinks};
  };
  const auto expected = results(in, {bias, sinks}, [&] { return attention(in.q, in.k, in.v, options()).out; });
  for (const auto& entry : fused_calls(in.q, in.k, in.v)) {
    const auto& name = entry.first;  // clang 14 captures no structured binding
    const auto& call = entry.second;
    CAPTURE(name);
    hold(results(in, {bias, sinks},
                 [&, f = &call] {
                   const Tensor<double> out = (*f)(options());
                   for (int n = 0; n < 20; ++n) zeros<bool>({4, 4}), full<double>({4, 4}, 77);  // reuses freed blocks
                   return out;
                 }),
         expected);
  }
  const auto masked = results(in, {}, [&] {
    return attention(in.q, in.k, in.v, {.mask = document_mask({0, 0, 1, 1})}).out;
  });
  hold(
      results(
          in, {},
          [&] {
            const sdpa_kernel pin(Backend::flex);
            const auto out = scaled_dot_product_attention(in.q, in.k, in.v, {.attn_mask = document_mask({0, 0, 1, 1})});
            ones<bool>({4, 4}), ones<double>({4, 4});
            return out;
          }),
      masked);
  {  // the generator too
    std::optional<TorchRandom> generator(3);
    Tape<double> tape;
    tape.watch(in.v);
    const auto out = flash_attention(in.q, in.k, in.v, {.dropout_p = 0.5, .generator = &*generator}).out;
    generator.reset();
    const auto dV = tape.backward(out, in.dO)[in.v];
    TorchRandom again(3);
    CHECK(close(dV, attention_backward(in.q, in.k, in.v, in.dO, {.dropout_p = 0.5, .generator = &again}).dV));
  }
}

TEST_CASE("fused calls: scores of any finite size, values and gradients as eager attention has them") {
  const double largest = std::numeric_limits<double>::max();
  const Tensor<double> q = zeros<double>({1, 1, 1, 1}), k = zeros<double>({1, 1, 2, 1}),
                       v = Tensor<double>{1, 3}.reshape({1, 1, 2, 1});
  for (double level : {1e7, -1e7, -1e9, 1e10, -1e20, 1e300, largest, -largest})
    for (const auto& entry : fused_calls(q, k, v)) {
      const auto& name = entry.first;
      const auto& call = entry.second;
      if (name == "qkvpacked") continue;  // its q, k and v have one length
      CAPTURE(name);
      CAPTURE(level);
      Tape<double> tape;
      tape.watch(v);
      const auto out = call({.bias = full<double>({1, 2}, level)});
      CHECK(out.item() == 2);
      CHECK(tape.backward(out)[v].to_vector() == std::vector<double>{0.5, 0.5});
      CHECK(call({.bias = Tensor<double>{{level, -level}}}).item() == (level > 0 ? 1 : 3));
    }
  // In float, where the book's models run; three tokens in one tensor, and scores from products.
  const Tensor<float> x = full<float>({1, 1, 3, 1}, 3e9f), values = Tensor<float>{1, 3, 5}.reshape({1, 1, 3, 1});
  Tape<float> tape;
  tape.watch(values);
  const auto out = flash_attention_qkvpacked(cat<float>({x, x, values}, 1), 1, {.scale = 1.0}).out;
  CHECK(out.to_vector() == std::vector<float>{3, 3, 3});
  CHECK(allclose(tape.backward(out, ones<float>({1, 1, 3, 1}))[values], ones<float>({1, 1, 3, 1}), 1e-6, 0));
}

TEST_CASE("fused calls: NaN among infinite scores is NaN, in every one of them") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Tensor<double> q = zeros<double>({1, 1, 1, 1}), k = zeros<double>({1, 1, 3, 1}),
                       v = Tensor<double>{1, 3, 5}.reshape({1, 1, 3, 1});
  for (const auto& row : {Tensor<double>{{nan, nan, nan}}, {{-inf, nan, -inf}}, {{inf, nan, 0}}, {{nan, inf, 0}}})
    for (const auto& entry : fused_calls(q, k, v)) {
      const auto& name = entry.first;
      const auto& call = entry.second;
      if (name == "qkvpacked") continue;
      CAPTURE(name);
      CHECK(std::isnan(call({.bias = row}).item()));
      CHECK(std::isnan(flash_attention(q, k, v, {.bias = row}).lse.at({0, 0, 0})));
    }
  CHECK(flash_attention(q, k, v, {.bias = Tensor<double>{{inf, 0, 0}}}).lse.at({0, 0, 0}) == inf);
}

TEST_CASE("fused calls: empty operands and biases, forward and backward") {
  for (std::int64_t B : {0, 1})
    for (std::int64_t H : {0, 2})
      for (std::int64_t Lq : {0, 3})
        for (std::int64_t Lk : {0, 3})
          for (std::int64_t d : {0, 2}) {
            const Inputs in(B, H, H, Lq, Lk, d, 2);
            for (const Shape& shape : {Shape{1, Lk}, Shape{Lq, 1}, Shape{Lq, Lk}, Shape{B, H, Lq, Lk}, Shape{1}}) {
              const Tensor<double> bias = zeros<double>(shape), sinks = zeros<double>({H});
              CAPTURE(shape.str());
              hold(results(in, {bias, sinks},
                           [&] { return flash_attention(in.q, in.k, in.v, {.bias = bias, .sinks = sinks}).out; }),
                   results(in, {bias, sinks},
                           [&] { return attention(in.q, in.k, in.v, {.bias = bias, .sinks = sinks}).out; }));
            }
          }
  const Tensor<double> q = zeros<double>({1, 1}), k = zeros<double>({0, 1}), bias = zeros<double>({1, 0});
  Tape<double> tape;
  tape.watch({q, bias});
  const auto grad = tape.backward(sum(flash_attention(q, k, k, {.bias = bias}).out));
  CHECK(grad[bias].shape() == Shape{1, 0});
}

TEST_CASE("fused gradients: one tensor as queries, keys and values, and bias; no gradient for what no tape knows") {
  NumpyRandom rng(5);
  const Tensor<double> x = rng.randn({2, 4, 4}), dO = rng.randn({2, 4, 4});
  const auto gradient = [&](const auto& f) {
    Tape<double> tape;
    tape.watch(x);
    return tape.backward(f(), dO)[x];
  };
  const auto eager = gradient([&] { return attention(x, x, x, {.bias = x, .causal = true}).out; });
  CHECK(close(gradient([&] { return flash_attention(x, x, x, {.bias = x, .causal = true}).out; }), eager));
  const Tensor<double> k = rng.randn({2, 4, 4}), bias = rng.randn({4, 4});
  CHECK(close(gradient([&] { return flash_attention(k, x, k, {.bias = bias}).out; }),
              gradient([&] { return attention(k, x, k, {.bias = bias}).out; })));
}
