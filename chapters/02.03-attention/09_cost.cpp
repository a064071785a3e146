// Cost, Complexity & What the Gradients Look Like: the quadratic bottleneck
//
// The scores of n tokens are an n x n matrix: this program counts its entries and bytes, and times it. Twice the
// tokens take four times as long with either kernel; the memory need not grow that fast.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "claims.hpp"
#include "table.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

double entries(double n) { return n * n; }
double multiply_adds(double n, double d) { return 2 * n * n * d; }  // Q Kᵀ and A V, n² d each

// The shortest of up to ten runs, in milliseconds; fewer where they are long.
template <class F>
double milliseconds(const F& f) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  double best = 1e300;
  const auto begin = Clock::now();
  for (int i = 0; i < 10 && (i < 2 || since(begin) < 200); ++i) {
    const auto start = Clock::now();
    f();
    best = std::min(best, since(start));
  }
  return best;
}

// The most memory that f held at any one time beyond what was held before, in KiB.
template <class F>
double kibibytes(const F& f) {
  const std::int64_t before = memory_use().bytes;
  reset_peak_memory();
  f();
  return static_cast<double>(memory_use().peak_bytes - before) / 1024;
}

// What the matrix costs to compute and to store, and what the cost is without storing it.
Table measured(Book& book, std::int64_t d) {
  TorchRandom rng(0);
  Table cost({"n", "eager ms", "flash ms", "eager KiB", "flash KiB"});
  bool counted = true, same = true;
  fmt::print("    n   entries of A      bytes   multiply-adds\n");
  for (const std::int64_t n : {256, 512, 1024, 2048}) {
    const auto Q = rng.randn({n, d}), K = rng.randn({n, d}), V = rng.randn({n, d});
    Tensor<float> weights, out;
    const auto eager = [&] { weights = attention(Q, K, V).weights; };
    const auto flash = [&] { out = flash_attention(Q, K, V).out; };
    const double eager_kib = kibibytes(eager), flash_kib = kibibytes(flash);
    const double eager_ms = milliseconds(eager), flash_ms = milliseconds(flash);
    cost.add(n, eager_ms, flash_ms, eager_kib, flash_kib);
    fmt::print("{:5} {:14} {:10} {:15.0f}\n", n, weights.numel(), weights.numel() * 4,
               multiply_adds(static_cast<double>(n), static_cast<double>(d)));
    counted &= weights.numel() == n * n;
    same &= allclose(out, attention(Q, K, V).out, 0, 1e-5);
  }
  book.expect("n tokens have n² weights", counted);
  book.expect("the kernel that never stores them gives the same output", same);
  return cost;
}

void show(Book& book, const Table& cost, std::int64_t d) {
  fmt::print("\nmeasured here: one head, d = {}, float\n", d);
  fmt::print("    n     eager ms   flash ms    eager KiB   flash KiB\n");
  cost.print("{:5.0f} {:12.2f} {:10.2f} {:12.0f} {:11.0f}\n");
  fmt::print("n^p, p = {:9.2f} {:10.2f} {:12.2f} {:11.2f}\n", cost.exponent("eager ms"),
             cost.exponent("flash ms"), cost.exponent("eager KiB"), cost.exponent("flash KiB"));
  const auto curve = [&](const char* kernel, const char* unit) {
    const auto column = fmt::format("{} {}", kernel, unit);
    Series s = cost.curve(column, Style::line_points);
    s.name = fmt::format("{}, n to the {:.2f}", kernel, cost.exponent(column));
    return s;
  };
  book.draw("sample_time", {curve("eager", "ms"), curve("flash", "ms")});
  book.draw("sample_memory", {curve("eager", "KiB"), curve("flash", "KiB")});
  book.expect("memory grows like n² with the matrix, and about like n without",
              cost.exponent("flash KiB") < 1.3 && cost.exponent("eager KiB") > 1.7);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Cost, Complexity & What the Gradients Look Like: the quadratic bottleneck");
  const std::int64_t d = 64;
  show(book, measured(book, d), d);

  const double n = 8192, bytes = 4 * entries(n);
  book.claim("scores_entries_8192", entries(n)).printed(entries(n));
  book.claim("scores_bytes_8192", {{"bytes", bytes}, {"MB", bytes / 1e6}, {"MiB", bytes / (1 << 20)}})
      .printed(bytes / 1e6);
  const double all = bytes * 32 * 32;
  book.claim("scores_bytes_32x32", {{"bytes", all}, {"GB", all / 1e9}, {"GiB", all / (1 << 30)}})
      .printed(all / 1e9)
      .note("274.877906944 GB exactly: 32 * 32 times the unrounded 268.435456 MB");
  const double ratio = multiply_adds(2 * n, 64) / multiply_adds(n, 64);
  book.claim("quadratic_doubling", ratio).holds(ratio == 4 && entries(2 * n) / entries(n) == 4, "4 times");
  return book.close();
}
