// One more token against a cache of keys and values: what it costs beyond reading the cache once.

#include <cstdint>
#include <memory>
#include <vector>

#include "bench.hpp"
#include "kernels/vec.hpp"
#include "peers.hpp"
#include "tapehead/tapehead.hpp"

using namespace bench;
using namespace tapehead;

namespace {

constexpr int64_t heads = 8, width = 64;

/// Reads n floats from end to end, and does next to nothing with them.
float read(const float* x, int64_t n) {
  using namespace kernels;
  constexpr int64_t L = lanes<float>;
  Vec<float> sum[8];
  for (int64_t i = 0; i + 8 * L <= n; i += 8 * L)
    for (int64_t c = 0; c < 8; ++c) sum[c] += load(x + i + c * L);
  return horizontal_sum((sum[0] + sum[1]) + (sum[2] + sum[3]) + ((sum[4] + sum[5]) + (sum[6] + sum[7])));
}

struct Step {
  explicit Step(int64_t length) : cache({1, heads}, length, width) {
    TorchRandom rng(0);
    cache.append(rng.randn<float>({1, heads, length, width}), rng.randn<float>({1, heads, length, width}));
    q = rng.randn<float>({1, heads, 1, width});
  }
  KVCache<float> cache;
  Tensor<float> q;
};

}  // namespace

int main(int, char** argv) {
  Report report("decode", argv[0]);
  use_threads(1);
  Python python;
  const bool torch = !python.version("torch").empty();
  report.note(python.about("torch"));
  report.note(
      "One token, 8 heads, d = 64, float, one thread: medians of interleaved turns, in time of the "
      "processor.");
  report.note("/ reading: our time over that of reading all keys and values once, in the same turn.");
  report.table("cache of L tokens", {"µs", "± %", "GFLOP/s", "MB", "GB/s", "/ reading", "/ PyTorch"});
  for (int64_t L : {256, 1024, 4096, 16'384}) {
    const auto s = std::make_shared<Step>(L);
    volatile float sink = 0;
    std::vector<Contender> contenders = {here("ours", [&] { sink = sink + *decode(s->q, s->cache).data(); }),
                                         here("reading", [&] {
                                           const Tensor<float> k = s->cache.keys(), v = s->cache.values();
                                           sink = sink + read(k.data(), k.numel()) + read(v.data(), v.numel());
                                         })};
    if (torch)
      contenders.push_back(
          python.contender("PyTorch", fmt::format("torch decode float32 1 {} {} {}", heads, L, width)));
    const auto results = race(contenders);
    const double numbers = 2.0 * static_cast<double>(heads * L * width), seconds = results[0].seconds;
    report.row(std::to_string(L),
               {1e6 * seconds, 100 * results[0].spread, 1e-9 * 2 * numbers / seconds, 1e-6 * 4 * numbers,
                1e-9 * 4 * numbers / seconds, 1 / *ratio_of("reading", results), ratio_of("PyTorch", results)});
  }
}
