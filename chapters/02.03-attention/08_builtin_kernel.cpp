// Validating against PyTorch's built-in kernel; Which kernel actually runs
//
// The same attention twice: with its weights stored (eager), and by the fused kernel, which never stores them.
// Then the dispatcher: which kernel it would run, which it ran, and how it refuses.
#include <fmt/format.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "claims.hpp"
#include "table.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

// How a kernel can do without the matrix. After m keys it holds three numbers: the largest score so far, the sum
// of exponentials relative to it, and the sum of the values weighted by the same exponentials. They give exactly
// the attention over those m keys, and the next key only updates them. The keys grow from first to last, so that
// the largest score changes late and often.
void one_key_at_a_time(Book& book) {
  NumpyRandom rng(0);
  const auto q = rng.randn({1, 8}), K = unsqueeze(arange<double>(40), 1) / 8.0 * rng.randn({40, 8}),
             V = rng.randn({40, 1});
  Table table({"m", "after m keys", "all 40 keys"}), scores({"m", "score of key m", "largest so far"}),
      factors({"m", "factor exp(before - top)"});
  std::vector<std::int64_t> changes;
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
    scores.add(m + 1, s, top), factors.add(m + 1, std::exp(before - top));
    if (top > before) changes.push_back(m + 1);
  }
  fmt::print("\none key at a time: {:.6f}, all at once: {:.6f}\n", blend / total, all);
  fmt::print("the largest score changes at m = {}\n", fmt::join(changes, ", "));
  book.draw("online_scores", {scores.curve("largest so far"), scores.curve("score of key m", Style::points)});
  book.draw("online_factor", {factors.curve("factor exp(before - top)", Style::line_points)});
  book.draw("online", {table.curve("after m keys"), table.curve("all 40 keys", Style::dashed)});
  book.expect("the largest score changes late and often", changes.size() > 4 && changes.back() > 30);
  book.expect("after m keys the online softmax gives attention over these m keys", exact);
}

void which_kernel_runs(Book& book, const Tensor<float>& q, const Tensor<float>& k, const Tensor<float>& v) {
  fmt::print("\nattention(q, k, v, is_causal) of {} would run\n{}", q.shape().str(),
             explain_sdpa(q, k, v, {.is_causal = true}));

  {
    // The first that can serve the call runs.
    const std::vector<Backend> order{Backend::flash, Backend::math};
    const sdpa_kernel prefer(order);
    const auto out = scaled_dot_product_attention(q, k, v, {.is_causal = true});
    fmt::print("\nallowed, in this order: {}, {}; {} computed by {}\n", backend_name(order[0]),
               backend_name(order[1]), out.shape().str(), backend_name(*last_sdpa_backend()));
    book.expect("of flash and math, flash runs", last_sdpa_backend() == Backend::flash);
  }

  // The fused kernel takes at most four axes. If it is the only kernel allowed, a call with five is refused:
  // nothing falls back silently.
  const auto q5 = unsqueeze(q, 0), k5 = unsqueeze(k, 0), v5 = unsqueeze(v, 0);
  bool refused = false;
  try {
    const sdpa_kernel only(Backend::flash);
    scaled_dot_product_attention(q5, k5, v5);
  } catch (const ValueError& error) {
    refused = true;
    fmt::print("\npinned to flash, five axes: {}\n", error.what());
  }
  book.expect("a pinned kernel that cannot serve the call refuses", refused);
  const auto out = scaled_dot_product_attention(q5, k5, v5);
  fmt::print("\nunpinned, five axes: {} by {}\n", out.shape().str(), backend_name(*last_sdpa_backend()));
  book.expect("without a pin another kernel serves it, and says so", last_sdpa_backend() == Backend::math);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Validating against PyTorch's built-in kernel");

  // The generator continues where the section before left it: after the smoke test's input and four weights.
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
             "less than 2e-6 apart, and both agree with PyTorch's numbers");

  one_key_at_a_time(book);
  which_kernel_runs(book, q, k, v);

  // What the fused kernel is for: 8192 tokens have 8192² weights in each head, 256 MiB in float. The kernel
  // holds a few tiles of them at a time.
  const auto Q = rng.randn({8192, 8}), K = rng.randn({8192, 8}), V = rng.randn({8192, 8});
  const auto flash = flash_attention(Q, K, V, {.causal = true});
  fmt::print("\n8192 tokens, causal: {} tiles of scores, {} of them skipped, one at a time\n", flash.tiles,
             flash.skipped);
  return book.close();
}
