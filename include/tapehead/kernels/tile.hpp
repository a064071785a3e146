#pragma once
#include <cstdint>

namespace tapehead::kernels {

/// A rectangle of scores: queries i0 … i0 + rows - 1 against keys j0 … j0 + cols - 1, for query head h of
/// batch b. In memory the score of query i0 + r and key j0 + c is element r * ld + c.
struct Tile {
  std::int64_t b, h, i0, rows, j0, cols, ld;
};

/// skip: nothing in this tile may attend. full: everything may. partial: ask for each score.
enum class TileKind { skip, partial, full };

}  // namespace tapehead::kernels
