#pragma once
// Helpers for the tests of the paged cache and of the tree of prefixes.
#include <cmath>
#include <set>
#include <vector>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

namespace paged {

using namespace tapehead;

/// The invariants of a paged cache: a block is free or held, each holder is counted once, and the free list has no
/// repeats. `kept` are the blocks that others (a tree) hold.
inline void check_invariants(const PagedKVCache<double>& cache, const std::vector<std::int64_t>& kept = {}) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(cache.size().blocks), 0);
  for (std::int64_t block : kept) ++count.at(static_cast<std::size_t>(block));
  for (std::int64_t sequence : cache.sequences()) {
    const auto& blocks = cache.blocks(sequence);
    const std::int64_t B = cache.size().block_size;
    CHECK(static_cast<std::int64_t>(blocks.size()) == (cache.length(sequence) + B - 1) / B);
    CHECK(std::set<std::int64_t>(blocks.begin(), blocks.end()).size() == blocks.size());
    for (std::int64_t block : blocks) ++count.at(static_cast<std::size_t>(block));
  }
  std::int64_t free = 0;
  for (std::size_t block = 0; block < count.size(); ++block) {
    CHECK(cache.holders(static_cast<std::int64_t>(block)) == count[block]);
    free += count[block] == 0;
  }
  CHECK(cache.free_blocks() == free);
}

/// Rows that depend only on the token and its place, as those of a model without context would.
inline Tensor<double> rows_of(const std::vector<std::int64_t>& tokens, std::int64_t heads, std::int64_t width,
                              double salt) {
  Buffer<double> rows({heads, static_cast<std::int64_t>(tokens.size()), width});
  std::int64_t at = 0;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::size_t i = 0; i < tokens.size(); ++i)
      for (std::int64_t c = 0; c < width; ++c)
        rows[at++] = std::sin(salt + 1.7 * static_cast<double>(tokens[i]) + 0.3 * static_cast<double>(i == 0) +
                              static_cast<double>(h) + 0.1 * static_cast<double>(c));
  return rows;
}

}  // namespace paged
