// The hash that decides which weights are dropped.
#include "kernels/dropout.hpp"

#include <cmath>
#include <cstdint>

#include "testing.hpp"

using namespace tapehead::kernels;
using std::int64_t;

namespace {
bool kept_weight(std::uint64_t seed, int64_t b, int64_t h, int64_t i, int64_t j, double p) {
  bool keep = false;
  dropout_row(seed, p, b, h, i, j, 1, true, &keep);
  return keep;
}
}  // namespace

TEST_CASE("dropout: the fraction that is kept, and no pattern along any axis") {
  const int64_t n = 64;
  const double p = 0.3;
  double kept = 0, pairs[4] = {};
  const auto keep = [&](std::uint64_t seed, int64_t b, int64_t h, int64_t i, int64_t j) {
    return kept_weight(seed, b, h, i, j, p) ? p : p - 1;
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
  CHECK(kept_weight(3, 0, 0, 0, 0, 0.0));
  CHECK(!kept_weight(3, 0, 0, 0, 0, 1.0));
  CHECK(kept_weight(3, 0, 0, 0, 0, 0x1p-60));
  // Pinned: a run must replay in the next version too.
  CHECK(dropout_bits(dropout_row_key(1, 2, 3, 4), 5) == 535929857);
}

TEST_CASE("dropout: next to p = 1, a weight is kept exactly where its bits reach p 2^32") {
  const auto key = dropout_row_key(5, 0, 0, 0);
  int64_t top = 0;  // the key with the largest bits of the first million
  for (int64_t j = 0; j < 1'000'000; ++j)
    if (dropout_bits(key, j) > dropout_bits(key, top)) top = j;
  const double bits = dropout_bits(key, top);
  CHECK(kept_weight(5, 0, 0, 0, top, bits * 0x1p-32));
  CHECK(!kept_weight(5, 0, 0, 0, top, (bits + 1) * 0x1p-32));
  CHECK(!kept_weight(5, 0, 0, 0, top, 1 - 0x1p-40));  // rounds up to 2^32: nothing is kept
  float row[3] = {1, 1, 1};
  dropout_row(5, 1 - 0x1p-40, 0, 0, 0, top, 3, 2.0f, row);
  CHECK((row[0] == 0 && row[1] == 0 && row[2] == 0));
}
