// Attention's cost against the length: time and memory, eager and fused, and the exponents of L that fit
// them.

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "memory.hpp"
#include "tapehead/tapehead.hpp"

using namespace bench;
using namespace tapehead;

namespace {

constexpr int64_t width = 64;

struct Problem {
  explicit Problem(int64_t L) {
    TorchRandom rng(0);
    for (Tensor<float>* x : {&Q, &K, &V}) *x = rng.randn<float>({L, width});
  }
  Tensor<float> Q, K, V;
};
void eager(const Problem& p) { attention(p.Q, p.K, p.V); }
void flash(const Problem& p) { flash_attention(p.Q, p.K, p.V); }

/// The slope of log y against log x by least squares: y ≈ c x^slope.
double exponent(const std::vector<std::pair<double, double>>& points) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const auto& [x, y] : points) {
    const double u = std::log(x), v = std::log(y);
    ++n, sx += u, sy += v, sxx += u * u, sxy += u * v;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

}  // namespace

int main(int, char** argv) {
  Report report("cost", argv[0]);
  use_threads(1);
  report.note("One head, d = 64, float, forward, one thread. MiB: the most that is held at once, inputs apart.");
  report.table("softmax(Q Kᵀ / √d) V over L tokens",
               {"eager ms", "± %", "flash ms", "± %", "eager / flash", "eager MiB", "flash MiB"});
  const std::vector<int64_t> lengths = {256, 512, 1024, 2048, 4096, 8192, 16'384};
  std::vector<Peak> memory_eager, memory_flash;
  for (int64_t L : lengths)
    for (const auto& [run, memory] : {std::pair(&eager, &memory_eager), std::pair(&flash, &memory_flash)})
      memory->push_back(peak_memory([L, run = run]() -> std::function<void()> {
        const auto p = std::make_shared<Problem>(L);
        return [p, run] { run(*p); };
      }));
  std::vector<std::pair<double, double>> points[4];
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Problem p(lengths[i]);
    const auto results = race({here("eager", [&] { eager(p); }), here("flash", [&] { flash(p); })}, 0.4, 0.01,
                              lengths[i] > 4096 ? 3 : 5);
    const double figures[] = {1e3 * results[0].seconds, 1e3 * results[1].seconds,
                              static_cast<double>(memory_eager[i].counted) / (1 << 20),
                              static_cast<double>(memory_flash[i].counted) / (1 << 20)};
    for (std::size_t f = 0; f < 4; ++f)
      if (lengths[i] >= 1024) points[f].push_back({static_cast<double>(lengths[i]), figures[f]});
    report.row(std::to_string(lengths[i]), {figures[0], 100 * results[0].spread, figures[1], 100 * results[1].spread,
                                            1 / results[1].ratio, figures[2], figures[3]});
  }
  report.table("exponent of L, fitted from 1024 on", {"time", "memory"});
  report.row("eager", {exponent(points[0]), exponent(points[2])});
  report.row("flash", {exponent(points[1]), exponent(points[3])});
}
