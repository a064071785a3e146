// Validating against PyTorch's built-in kernel; Which kernel actually runs
//
// The same attention twice: with its weights stored, and by the fused kernel that never stores them. Then the
// dispatcher: what it would run, what it ran, and how it refuses.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "claims.hpp"
#include "table.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

// How it can do without the matrix. After m keys it holds three things: the largest score so far, the sum of
// exponentials, and the blend of values; together they are exactly attention over those m keys, and the next
// key only corrects them.
void one_key_at_a_time(Book& book) {
  NumpyRandom rng(0);
  const auto q = rng.randn({1, 8}), K = rng.randn({40, 8}), V = rng.randn({40, 1});
  Table table({"m", "after m keys", "all 40 keys"});
  const double all = attention(q, K, V).out.item();
  double top = -1e300, total = 0, blend = 0;
  bool exact = true;
  for (std::int64_t m = 0; m < 40; ++m) {
    const double s = (matmul(q, K[m]) / std::sqrt(8.0)).item(), before = top;
    top = std::max(top, s);
    total = total * std::exp(before - top) + std::exp(s - top);
    blend = blend * std::exp(before - top) + std::exp(s - top) * V.at({m, 0});
    const auto direct = attention(q, K.slice(0, 0, m + 1), V.slice(0, 0, m + 1)).out;
    exact &= std::abs(blend / total - direct.item()) < 1e-13;
    table.add(m + 1, blend / total, all);
  }
  fmt::print("\none key at a time: {:.6f}, all at once: {:.6f}\n", blend / total, all);
  book.draw("online", {table.curve("after m keys"), table.curve("all 40 keys", Style::dashed)});
  book.expect("after m keys the online softmax holds attention over these m", exact);
}

void which_kernel_runs(Book& book, const Tensor<float>& q, const Tensor<float>& k, const Tensor<float>& v) {
  fmt::print("\nattention(q, k, v, is_causal) of {} would run\n{}", q.shape().str(),
             explain_sdpa(q, k, v, {.is_causal = true}));

  {
    const sdpa_kernel prefer({Backend::flash, Backend::math});  // in this order, and no other
    const auto out = scaled_dot_product_attention(q, k, v, {.is_causal = true});
    fmt::print("\nflash or math: {} by {}\n", out.shape().str(), backend_name(*last_sdpa_backend()));
    book.expect("of flash and math, flash runs", last_sdpa_backend() == Backend::flash);
  }

  // A fifth axis is more than the fused kernel walks. Pinned to it, the call is refused; nothing falls back
  // in silence.
  const auto q5 = unsqueeze(q, 0), k5 = unsqueeze(k, 0), v5 = unsqueeze(v, 0);
  bool refused = false;
  try {
    const sdpa_kernel only(Backend::flash);
    scaled_dot_product_attention(q5, k5, v5);
  } catch (const ValueError& error) {
    refused = true;
    fmt::print("\npinned to flash, five axes: {}\n", error.what());
  }
  book.expect("a pinned kernel that cannot serve refuses", refused);
  const auto out = scaled_dot_product_attention(q5, k5, v5);
  fmt::print("\nunpinned, five axes: {} by {}\n", out.shape().str(), backend_name(*last_sdpa_backend()));
  book.expect("unpinned, another one serves, and says so", last_sdpa_backend() == Backend::math);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Validating against PyTorch's built-in kernel");

  // The generator goes on where the section before left it: after the smoke test's input and four weights.
  TorchRandom rng(0);
  rng.randn({2, 5, 16});
  const nn::SelfAttention<float> attn(16, rng, {.causal = true});

  const std::int64_t B = 2, H = 4, L = 7, d = 32;
  const auto q = rng.randn({B, H, L, d});
  const auto k = rng.randn({B, H, L, d});
  const auto v = rng.randn({B, H, L, d});

  const auto ours = attention(q, k, v, {.causal = true}).out;
  const auto ref = scaled_dot_product_attention(q, k, v, {.is_causal = true});
  book.expect("the reference is the fused kernel", last_sdpa_backend() == Backend::flash);

  fmt::print("max abs diff: {:.1e}\n", apart(ours, ref));
  fmt::print("allclose(ours, ref, atol=1e-5): {}\n", allclose(ours, ref, 0, 1e-5) ? "True" : "False");

  const auto in_double = attention(to<double>(q), to<double>(k), to<double>(v), {.causal = true}).out;
  book.claim("builtin_comparison")
      .drawn("q", q)
      .drawn("k", k)
      .drawn("v", v)
      .values({{"ours", ours}, {"out_float64", ours}, {"out_float64", ref}, {"out_float64", in_double}})
      .aside("max_abs_diff_vs_builtin_here")  // of PyTorch's kernels, not of these
      .aside("max_abs_diff_vs_float64")
      .holds(apart(ours, ref) < 2e-6 && allclose(ours, ref, 0, 1e-5),
             "less than 2e-6 apart, and both PyTorch's numbers");

  one_key_at_a_time(book);
  which_kernel_runs(book, q, k, v);

  // What the fused kernel is for: 8192 tokens have 8192² weights a head, 256 MiB in float; it holds a few
  // tiles of them.
  const auto Q = rng.randn({8192, 8}), K = rng.randn({8192, 8}), V = rng.randn({8192, 8});
  const auto flash = flash_attention(Q, K, V, {.causal = true});
  fmt::print("\n8192 tokens, causal: {} tiles of scores, {} of them skipped, one at a time\n", flash.tiles,
             flash.skipped);
  return book.close();
}
