// Heads that lie side by side in rows, as one product makes them: where results lie, and Q, K and V in one
// tensor.
#include <cstdint>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

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
  const Tensor<double> qkv = rng.randn({2, 5, 8, 3}).transpose(1, 2),
                       dO = rng.randn({2, 4, 5, 3});  // 4, 2, 2
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
  CHECK(equal(gradient,
              tape.backward(flash_attention(parts()[0], parts()[1], parts()[2], causal).out, dO)[qkv]));
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
