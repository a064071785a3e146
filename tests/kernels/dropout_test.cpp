// The hash that decides which weights are dropped.
#include "kernels/dropout.hpp"

#include <cmath>
#include <cstdint>

#include "testing.hpp"

using namespace tapehead::kernels;
using std::int64_t;

TEST_CASE("dropout: the share that is kept, and no pattern along any axis") {
  const int64_t n = 64;
  const double p = 0.3;
  double kept = 0, pairs[4] = {};
  const auto keep = [&](std::uint64_t seed, int64_t b, int64_t h, int64_t i, int64_t j) {
    return dropout_keep(seed, b, h, i, j, p) ? p : p - 1;
  };
  for (int64_t b = 0; b < 4; ++b)
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
          const double x = keep(7, b, h, i, j);
          kept += x > 0 ? 1 : 0;
          pairs[0] += x * keep(7, b, h, i, j + 1), pairs[1] += x * keep(7, b, h, i + 1, j);
          pairs[2] += x * keep(7, b, h + 1, i, j), pairs[3] += x * keep(8, b, h, i, j);
        }
  // Kept weights are the others; 65536 draws of variance p (1 - p), products of variance (p (1 - p))^2: 5
  // sigma.
  const double draws = 16.0 * n * n, variance = p * (1 - p);
  CHECK(std::abs(kept - draws * (1 - p)) < 5 * std::sqrt(draws * variance));
  for (double sum : pairs) CHECK(std::abs(sum) < 5 * std::sqrt(draws) * variance);
  CHECK(dropout_keep(3, 0, 0, 0, 0, 0.0));
  CHECK(!dropout_keep(3, 0, 0, 0, 0, 1.0));
  // Pinned: a run must replay in the next version too.
  CHECK(dropout_bits(dropout_row_key(1, 2, 3, 4), 5) == 535929857);
}
