// Cost, Complexity & What the Gradients Look Like: the quadratic bottleneck
//
// The scores of n tokens are an n x n matrix: counted, weighed in bytes, and timed. The times double twice
// with each line; the memory need not.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "claims.hpp"

using namespace tapehead;
using chapter::Book;

namespace {

double entries(double n) { return n * n; }
double multiply_adds(double n, double d) { return 2 * n * n * d; }  // Q Kᵀ and A V, n² d each

// The shortest of ten runs, in milliseconds.
template <class F>
double milliseconds(const F& f) {
  double best = 1e300;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(
        best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Cost, Complexity & What the Gradients Look Like: the quadratic bottleneck");

  const std::int64_t d = 64;
  TorchRandom rng(0);
  fmt::print("one head, d = {}, float; milliseconds with the weights stored, and by the fused kernel\n", d);
  fmt::print("    n   entries of A      bytes   multiply-adds   stored    fused\n");
  bool counted = true, same = true;
  for (const std::int64_t n : {256, 512, 1024, 2048}) {
    const auto Q = rng.randn({n, d}), K = rng.randn({n, d}), V = rng.randn({n, d});
    Tensor<float> weights, out;
    const double stored = milliseconds([&] { weights = attention(Q, K, V).weights; });
    const double fused = milliseconds([&] { out = flash_attention(Q, K, V).out; });
    fmt::print("{:5} {:14} {:10} {:15.0f} {:8.2f} {:8.2f}\n", n, weights.numel(), weights.numel() * 4,
               multiply_adds(static_cast<double>(n), d), stored, fused);
    counted &= weights.numel() == n * n;
    same &= allclose(out, attention(Q, K, V).out, 0, 1e-5);
  }

  book.expect("n tokens have n² weights", counted);
  book.expect("the kernel that never stores them gives the same output", same);

  const double n = 8192, bytes = 4 * entries(n);
  book.claim("scores_entries_8192").value(entries(n)).printed(entries(n));
  book.claim("scores_bytes_8192")
      .values({{"bytes", bytes}, {"MB", bytes / 1e6}, {"MiB", bytes / (1 << 20)}})
      .printed(bytes / 1e6);
  const double all = bytes * 32 * 32;
  book.claim("scores_bytes_32x32")
      .values({{"bytes", all}, {"GB", all / 1e9}, {"GiB", all / (1 << 30)}})
      .printed(all / 1e9)
      .note("274.877906944 GB exactly: 32 * 32 times the unrounded 268.435456 MB");
  const double ratio = multiply_adds(2 * n, d) / multiply_adds(n, d);
  book.claim("quadratic_doubling")
      .value(ratio)
      .holds(ratio == 4 && entries(2 * n) / entries(n) == 4, "4 times");
  return book.close();
}
