// The fused family on top of the kernel: score and mask functions, the dispatcher, packed buffers. Each is
// held to attention() with the same thing written as a mask or a bias, or to operations on the tape.
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

constexpr double rung_tolerance = 1e-13;  // another order of the same few dozen additions
bool close(const Tensor<double>& a, const Tensor<double>& b) {
  return a.shape() == b.shape() && allclose(a, b, rung_tolerance, rung_tolerance);
}

struct Inputs {
  Tensor<double> q, k, v, dO;
  Inputs(std::int64_t B, std::int64_t Hq, std::int64_t Hkv, std::int64_t Lq, std::int64_t Lk, std::int64_t d,
         std::int64_t dv) {
    NumpyRandom rng(17);
    q = rng.randn({B, Hq, Lq, d}), k = rng.randn({B, Hkv, Lk, d}), v = rng.randn({B, Hkv, Lk, dv}),
    dO = rng.randn({B, Hq, Lq, dv});
  }
};

// Output and gradients of q, k, v and `more`, under a tape.
template <class F>
std::vector<Tensor<double>> results(const Inputs& in, const std::vector<Tensor<double>>& more, const F& f) {
  Tape<double> tape;
  tape.watch({in.q, in.k, in.v});
  tape.watch(more);
  const Tensor<double> out = f();
  const auto grad = tape.backward(out, in.dO);
  std::vector<Tensor<double>> all{out, grad[in.q], grad[in.k], grad[in.v]};
  for (const auto& x : more) all.push_back(grad[x]);
  return all;
}

void hold(const std::vector<Tensor<double>>& a, const std::vector<Tensor<double>>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(close(a[i], b[i]));
  }
}

Tensor<double> distances(std::int64_t Lq, std::int64_t Lk) {  // q - kv
  return unsqueeze(arange<double>(static_cast<double>(Lq)), 1) - arange<double>(static_cast<double>(Lk));
}

}  // namespace

TEST_CASE("flex: without functions it is attention; masks are masks") {
  const Inputs in(2, 3, 3, 130, 70, 5, 4);
  hold(results(in, {}, [&] { return flex_attention(in.q, in.k, in.v).out; }),
       results(in, {}, [&] { return attention(in.q, in.k, in.v).out; }));
  const Inputs square(1, 2, 2, 130, 130, 5, 4);
  const auto against = [&](const auto& mask_mod, const Tensor<bool>& mask) {
    const auto eager =
        results(square, {}, [&] { return attention(square.q, square.k, square.v, {.mask = mask}).out; });
    hold(results(square, {},
                 [&] { return flex_attention(square.q, square.k, square.v, NoScoreMod{}, mask_mod).out; }),
         eager);
    const auto blocks = block_mask(mask_mod, 1, 1, 130, 130);
    hold(results(square, {},
                 [&] { return flex_attention(square.q, square.k, square.v, NoScoreMod{}, blocks).out; }),
         eager);
  };
  const auto ids = cat<std::int64_t>(
      {full<std::int64_t>({40}, 3), full<std::int64_t>({1}, 5), full<std::int64_t>({89}, 7)});
  against(flex::causal(), causal_mask(130));
  against(flex::sliding_window(9), sliding_window_mask(130, 9));
  against(flex::prefix_lm(50), prefix_mask(130, 50));
  against(flex::document(ids), document_mask(ids));
  against(and_masks(flex::causal(), flex::document(ids)), causal_mask(130) & document_mask(ids));
  against(or_masks(flex::sliding_window(3), flex::prefix_lm(2)),
          sliding_window_mask(130, 3) | prefix_mask(130, 2));
  against(
      [](auto, auto, auto q, auto) { return q % 3 != 0; },
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
      return matmul(softmax(masked_fill(edit(S), ~causal_mask(37, 41, Align::top_left),
                                        -std::numeric_limits<double>::infinity()),
                            -1),
                    heads(in.v));
    });
  };
  const auto fused = [&](const std::vector<Tensor<double>>& more, const auto& mod) {
    return results(in, more, [&] {
      return flex_attention(in.q, in.k, in.v, mod, flex::causal(), {.enable_gqa = true}).out;
    });
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
               score_mod([](auto s, auto, auto, auto q, auto k, auto read) { return s + read(q - k + 1); },
                         bias))
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
    const auto grad =
        tape.backward(sum(scaled_dot_product_attention(q, k, values, {.attn_mask = bias})))[bias];
    CHECK(allclose(grad, Tensor<double>{-8.0 / 3, 0, 8.0 / 3}.reshape({1, 1, 1, 3}), 0, 1e-14));
  }
}

TEST_CASE("flex: tiled softmax over any length, far from 0, with masked beginnings") {
  const Tensor<double> zero = zeros<double>({5, 1}), v = arange<double>(1, 6).reshape({5, 1});
  const auto out =
      flex_attention(
          zero, zero, v, [](auto s, auto, auto, auto q, auto kv) { return s + (q - kv); }, flex::causal())
          .out;
  CHECK(allclose(out.reshape({5}), Tensor<double>{1, 1.2689414, 1.4247896, 1.5073473, 1.5480584}, 0, 1e-7));
}

TEST_CASE("flex: what it refuses, and what it says") {
  const Tensor<double> q = zeros<double>({1, 2, 5, 3});
  CHECK(message<ShapeError>(
            [&] { flex_attention(q, q, q, NoScoreMod{}, block_mask(flex::causal(), 1, 1, 8, 8)); }) ==
        "flex_attention: a block mask built for (1, 1, 8, 8) met scores of (1, 2, 5, 5); build one for this "
        "length (B and H may be 1)"sv);
  Tensor<double> slope = scalar(0.5);
  CHECK(message<IndexError>([&] {
          flex_attention(q, q, q,
                         score_mod([](auto s, auto, auto, auto, auto, auto c) { return s + c(3); }, slope));
        }) == "score_mod: a bound tensor of shape () was read at (3,)"sv);
  NumpyRandom rng(1);
  const Tensor<double> x = rng.randn({2, 3});
  CHECK(message<GradientError>([&] {
          Tape<double> own;
          own.watch({x, slope});
          const auto five = score_mod(
              [](auto s, auto, auto, auto, auto, auto c) { return s * c() + c() + c() + c() + c(); }, slope);
          own.backward(flex_attention(x, x, x, five).out, x);
        }).find("score_mod: more than 4 reads of bound tensors in one call") != std::string::npos);
  Tape<double> tape;
  tape.watch({{"slope", slope}});
  CHECK(message<GradientError>([&] {
          flex_attention(q, q, q, [slope](auto s, auto, auto, auto, auto) { return s + slope.item(); });
        }).find("captured a tensor of shape () that a tape knows") != std::string::npos);
  CHECK_NOTHROW(
      flex_attention(q, q, q, [c = detach(slope)](auto s, auto, auto, auto, auto) { return s + c.item(); }));
  CHECK(slope.item() == 0.5);  // the watch ended with the call
}

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
  const Tensor<double> q = rng.randn({3, 2}), k = rng.randn({4, 2}), v = rng.randn({4, 2}),
                       dO = rng.randn({3, 2});
  Tape<double> outer, keys, queries;
  outer.watch(dO), keys.watch(k), queries.watch(q);
  const auto out = flash_attention(q, k, v).out;
  {
    const Tape<double>::Paused no_records;
    queries.backward(out, dO);  // dK is computed with dQ, and nobody fetches it
  }
  CHECK(outer.knows(keys.backward(out, dO)[k]));
}

TEST_CASE("sdpa: it chooses, tells, can be pinned, and refuses with each reason") {
  NumpyRandom rng(4);
  const Tensor<double> q = rng.randn({2, 3, 7, 4}), k = rng.randn({2, 3, 9, 4}), v = rng.randn({2, 3, 9, 5});
  const Tensor<bool> mask = padding_mask({4, 9}, 9);
  const auto reference = attention(q, k, v, {.mask = mask, .causal = true}).out;
  CHECK(close(scaled_dot_product_attention(q, k, v, {.attn_mask = mask, .is_causal = true}), reference));
  CHECK(last_sdpa_backend() == Backend::flash);
  {
    const sdpa_kernel pin({Backend::math, Backend::flash});
    CHECK(close(scaled_dot_product_attention(q, k, v, {.attn_mask = mask, .is_causal = true}), reference));
    CHECK(last_sdpa_backend() == Backend::math);
    {
      const sdpa_kernel inner(Backend::flex);
      CHECK(close(scaled_dot_product_attention(q, k, v, {.attn_mask = mask, .is_causal = true}), reference));
      CHECK(last_sdpa_backend() == Backend::flex);
    }
    scaled_dot_product_attention(q, k, v);
    CHECK(last_sdpa_backend() == Backend::math);
  }
  scaled_dot_product_attention(q, k, v);
  CHECK(last_sdpa_backend() == Backend::flash);

  const Tensor<double> deep = zeros<double>({1, 1, 1, 2, 3});
  CHECK(scaled_dot_product_attention(deep, deep, deep).shape() == deep.shape());
  CHECK(last_sdpa_backend() == Backend::math);
  TorchRandom generator(1);
  const sdpa_kernel pin({Backend::flash, Backend::flex});
  const std::string refusal = message<ValueError>([&] { scaled_dot_product_attention(deep, deep, deep); });
  CHECK(refusal.find("none of the backends that sdpa_kernel allows can serve this call:\n  flash: rank 5") !=
        std::string::npos);
  CHECK(refusal.find("\n  flex: rank 5") != std::string::npos);
  CHECK(explain_sdpa(q, k, v, {.dropout_p = 0.5, .generator = &generator}) ==
        "scaled_dot_product_attention: q (2, 3, 7, 4), k (2, 3, 9, 4), v (2, 3, 9, 5)\n  flash  runs\n"
        "  flex   no: dropout: flex_attention has none\n  math   not allowed here by sdpa_kernel\n"sv);
  CHECK(message<ValueError>([] { sdpa_kernel empty(std::vector<Backend>{}); }).find("an empty list") !=
        std::string::npos);
}

TEST_CASE("sdpa: dropout is the same in every rung") {
  NumpyRandom rng(4);
  const Tensor<double> q = rng.randn({2, 3, 7, 4}), k = rng.randn({2, 3, 9, 4}), v = rng.randn({2, 3, 9, 5});
  const auto run = [&](Backend backend) {
    TorchRandom generator(8);
    const sdpa_kernel pin(backend);
    return scaled_dot_product_attention(q, k, v, {.dropout_p = 0.5, .generator = &generator});
  };
  CHECK(close(run(Backend::math), run(Backend::flash)));
  const Tensor<double> three = q.reshape({6, 7, 4}), keys = k.reshape({6, 9, 4}),
                       values = v.reshape({6, 9, 5});
  TorchRandom a(8), b(8);
  CHECK(close(attention(three, keys, values, {.dropout_p = 0.5, .generator = &a}).out,
              flash_attention(three, keys, values, {.dropout_p = 0.5, .generator = &b}).out));
}

TEST_CASE("flash: the log-sum-exp, rows without keys, and sizes without limit") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor<double> q = eye<double>(2), v{{1, 2}, {3, 4}};
  const auto row1 = flash_attention(q, q, v, {.mask = Tensor<bool>{{false, false}, {true, true}}});
  CHECK(row1.lse.at({0}) == -inf);
  CHECK(row1.lse.at({1}) == doctest::Approx(1.1079403).epsilon(1e-7));
  CHECK(
      flash_attention(zeros<double>({2, 4}), zeros<double>({0, 4}), zeros<double>({0, 3})).out.to_vector() ==
      std::vector<double>(6, 0.0));
  CHECK(flash_attention(zeros<double>({0, 4}), zeros<double>({3, 4}), zeros<double>({3, 2})).out.shape() ==
        Shape{0, 2});
  CHECK(flash_attention(zeros<double>({1, 4}), zeros<double>({500, 4}), ones<double>({500, 1})).out.item() ==
        doctest::Approx(1).epsilon(1e-14));
  NumpyRandom rng(3);
  const Tensor<double> wide = rng.randn({6, 2, 5}), x = wide.transpose(0, 1);
  CHECK(equal(flash_attention(x, x, x, {.causal = true}).out,
              flash_attention(contiguous(x), contiguous(x), contiguous(x), {.causal = true}).out));
  CHECK(message<ValueError>([&] {
          flash_attention(q, q, v, {.empty_rows = EmptyRows::nan});
        }).find("EmptyRows::nan") != std::string::npos);
  CHECK(message<ShapeError>([&] {
          flash_attention(q, zeros<double>({5, 3}), zeros<double>({5, 2}));
        }).find("queries of width 2 and keys of width 3") != std::string::npos);
}

TEST_CASE("varlen: one call is one call for each document, and documents do not touch each other") {
  NumpyRandom rng(6);
  const Tensor<double> q = rng.randn({11, 4, 3}), k = rng.randn({14, 2, 3}), v = rng.randn({14, 2, 5}),
                       dO = rng.randn({11, 4, 5});
  const Tensor<std::int64_t> cu_q{0, 3, 3, 10, 11}, cu_k{0, 5, 6, 6, 14};
  for (bool causal : {false, true}) {
    Tape<double> tape;
    tape.watch({q, k, v});
    const auto packed = flash_attention_varlen(q, k, v, cu_q, cu_k, {.causal = causal, .enable_gqa = true});
    std::vector<Tensor<double>> parts;
    for (std::int64_t n = 0; n < 4; ++n) {
      const auto document = [n](const Tensor<double>& x, const Tensor<std::int64_t>& cu) {
        return x.slice(0, cu.at({n}), cu.at({n + 1})).transpose(0, 1);
      };
      parts.push_back(attention(document(q, cu_q), document(k, cu_k), document(v, cu_k),
                                {.causal = causal, .align = Align::bottom_right, .enable_gqa = true})
                          .out.transpose(0, 1));
    }
    const auto apart = cat(parts, 0);
    CHECK(close(packed.out, apart));
    CHECK(packed.lse.shape() == Shape{11, 4});
    const auto a = tape.backward(packed.out, dO), b = tape.backward(apart, dO);
    CHECK(close(a[q], b[q]));
    CHECK(close(a[k], b[k]));
    CHECK(close(a[v], b[v]));
  }
  const Tensor<double> changed = k + unslice(ones<double>({5, 2, 3}), k.shape(), 0, 0);
  CHECK(equal(flash_attention_varlen(q, k, v, cu_q, cu_k, {.enable_gqa = true}).out.slice(0, 3, 11),
              flash_attention_varlen(q, changed, v, cu_q, cu_k, {.enable_gqa = true}).out.slice(0, 3, 11)));

  const Tensor<double> zero = zeros<double>({5, 1, 1}),
                       values = Tensor<double>{1, 3, 6, 8, 10}.reshape({5, 1, 1});
  const auto over = [&](const Tensor<std::int64_t>& cu) {
    return flash_attention_varlen(zero, zero, values, cu, cu).out.reshape({5});
  };
  CHECK(allclose(over({0, 2, 2, 5}), Tensor<double>{2, 2, 8, 8, 8}));
  CHECK(message<ValueError>([&] {
          over({0, 3, 2, 5});
        }).find("cu_seqlens_q falls from 3 to 2") != std::string::npos);
  CHECK(message<ValueError>([&] { over({1, 5}); }).find("starts at 1") != std::string::npos);
  CHECK(message<ValueError>([&] {
          over({0, 2, 6});
        }).find("ends at 6, and the buffer has 5 rows") != std::string::npos);
  CHECK(message<ShapeError>([&] { over(zeros<std::int64_t>({0})); }).find("cu_seqlens_q of shape (0,)") !=
        std::string::npos);
  CHECK(message<ShapeError>([&] {
          flash_attention_varlen(zero, zero, values, {0, 5}, {0, 2, 5});
        }).find("counts 1 documents and cu_seqlens_k 2") != std::string::npos);
}
