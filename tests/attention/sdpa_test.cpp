// The dispatcher: its choice, its reasons, and the same results from every backend.
#include "tapehead/attention/sdpa.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "attention/rungs.hpp"

using namespace tapehead;
using namespace rungs;
using testing::message;

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
  const Tensor<double> three = q.reshape({6, 7, 4}), keys = k.reshape({6, 9, 4}), values = v.reshape({6, 9, 5});
  TorchRandom a(8), b(8);
  CHECK(close(attention(three, keys, values, {.dropout_p = 0.5, .generator = &a}).out,
              flash_attention(three, keys, values, {.dropout_p = 0.5, .generator = &b}).out));
}

TEST_CASE("sdpa: options that a backend does not serve are refused with the reason, or served by another") {
  const Tensor<double> q = ones<double>({1, 2, 3, 4});
  const AttentionOptions<double> nan_rows{.mask = full<bool>({3, 3}, false), .empty_rows = EmptyRows::nan};
  CHECK(std::isnan(dispatch_attention(q, q, q, nan_rows).at({0, 0, 0, 0})));
  CHECK(last_sdpa_backend() == Backend::math);
  {
    const sdpa_kernel pin(Backend::flash);
    CHECK(message<ValueError>([&] { dispatch_attention(q, q, q, nan_rows); }).find("flash: EmptyRows::nan") !=
          std::string::npos);
  }
  for (double p : {-0.5, 1.5, std::nan("")})
    CHECK_THROWS_AS(scaled_dot_product_attention(q, q, q, {.dropout_p = p}), ValueError);
  CHECK_THROWS_AS(scaled_dot_product_attention(q, q, q, {.dropout_p = 0.5}), ValueError);
  CHECK_THROWS_AS(scaled_dot_product_attention(q, q, q, {.attn_mask = full<bool>({4, 3}, true)}), ShapeError);
  CHECK_THROWS_AS(scaled_dot_product_attention(q, ones<double>({1, 3, 3, 4}), q), Error);
  Tensor<double> sinks = zeros<double>({2});  // two tapes know the sinks alone: math
  Tape<double> outer, inner;
  outer.watch(sinks), inner.watch(sinks);
  dispatch_attention(q, q, q, {.sinks = sinks});
  CHECK(last_sdpa_backend() == Backend::math);
}

TEST_CASE("sdpa: third order through the dispatcher, with one tensor in every role") {
  NumpyRandom rng(9);
  const Tensor<double> x = rng.randn({3, 2}), u = rng.randn({3, 2}), w = rng.randn({3, 2});
  const auto f = [&](const auto& t) { return sum(scaled_dot_product_attention(t, t, t, {.is_causal = true}) * w); };
  Tape<double> outermost;  // so that the innermost call, too, has two tapes
  outermost.watch(x);
  CHECK(third_order_error(f, x, u) < 1e-6);
}
