// Packed buffers: one call is one call for each document.
#include "tapehead/attention/varlen.hpp"

#include <string>
#include <vector>

#include "attention/rungs.hpp"

using namespace tapehead;
using namespace rungs;
using testing::message;

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

  const Tensor<double> zero = zeros<double>({5, 1, 1}), values = Tensor<double>{1, 3, 6, 8, 10}.reshape({5, 1, 1});
  const auto over = [&](const Tensor<std::int64_t>& cu) {
    return flash_attention_varlen(zero, zero, values, cu, cu).out.reshape({5});
  };
  CHECK(allclose(over({0, 2, 2, 5}), Tensor<double>{2, 2, 8, 8, 8}));
  CHECK(message<ValueError>([&] { over({0, 3, 2, 5}); }).find("cu_seqlens_q falls from 3 to 2") != std::string::npos);
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

TEST_CASE("varlen: bias, mask, sinks and dropout count positions in each document") {
  NumpyRandom rng(6);
  const Tensor<double> q = rng.randn({6, 2, 3}), k = rng.randn({7, 2, 3}), v = rng.randn({7, 2, 5}),
                       dO = rng.randn({6, 2, 5}), bias = rng.randn({2, 4, 4}), sinks = rng.randn({2});
  const Tensor<std::int64_t> cu_q{0, 2, 6}, cu_k{0, 4, 7};
  const Tensor<bool> mask = rng.rand({2, 1, 4, 4}) > 0.3, keep = attention_keep_mask({2, 2, 4, 4}, 0.3, 5);
  Tape<double> tape;
  tape.watch({q, k, v, bias, sinks});
  const auto packed =
      flash_attention_varlen(
          q, k, v, cu_q, cu_k,
          {.mask = mask, .bias = bias, .sinks = sinks, .causal = true, .dropout_p = 0.3, .keep_mask = keep})
          .out;
  std::vector<Tensor<double>> parts;
  for (std::int64_t n = 0; n < 2; ++n) {
    const auto document = [n](const Tensor<double>& x, const Tensor<std::int64_t>& cu) {
      return unsqueeze(x.slice(0, cu.at({n}), cu.at({n + 1})).transpose(0, 1), 0);
    };
    const auto Q = document(q, cu_q), K = document(k, cu_k);
    const auto corner = [&](const auto& x) { return x.slice(-2, 0, Q.size(-2)).slice(-1, 0, K.size(-2)); };
    parts.push_back(attention(Q, K, document(v, cu_k),
                              {.mask = corner(mask.slice(0, n, n + 1)),
                               .bias = corner(bias),
                               .sinks = sinks,
                               .causal = true,
                               .align = Align::bottom_right,
                               .dropout_p = 0.3,
                               .keep_mask = corner(keep.slice(0, n, n + 1))})
                        .out[0]
                        .transpose(0, 1));
  }
  const auto separate = cat(parts, 0);
  CHECK(close(packed, separate));
  const auto a = tape.backward(packed, dO), b = tape.backward(separate, dO);
  for (const auto& x : {q, k, v, bias, sinks}) CHECK(close(a[x], b[x]));
}

TEST_CASE("varlen: no heads, no documents, no rows; lengths below 0") {
  const Tensor<double> no_heads = zeros<double>({3, 0, 2}), nothing = zeros<double>({0, 2, 2});
  CHECK(flash_attention_varlen(no_heads, no_heads, no_heads, {0, 3}, {0, 3}).out.shape() == no_heads.shape());
  CHECK(flash_attention_varlen(no_heads, no_heads, no_heads, {0, 3}, {0, 3}, {.enable_gqa = true}).out.shape() ==
        no_heads.shape());
  Tape<double> tape;
  tape.watch(nothing);
  const auto out = flash_attention_varlen(nothing, nothing, nothing, {0}, {0}).out;
  CHECK(out.shape() == nothing.shape());
  CHECK(tape.backward(sum(out))[nothing].shape() == nothing.shape());
  const Tensor<double> x = zeros<double>({3, 1, 2});
  CHECK_THROWS_AS(flash_attention_varlen(x, x, x, {0, -1, 3}, {0, 3, 3}), ValueError);
  CHECK_THROWS_AS(flash_attention_varlen(x, x, x, {-1, 3}, {0, 3}), ValueError);
  CHECK_THROWS_AS(flash_attention_varlen(x, x, zeros<double>({2, 1, 2}), {0, 3}, {0, 3}), ShapeError);
  CHECK_THROWS_AS(flash_attention_varlen(x, zeros<double>({3, 2}), x, {0, 3}, {0, 3}), ShapeError);
}
