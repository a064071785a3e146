#pragma once
#include <cstdint>

namespace tapehead::kernels {

/// A rectangle of scores: queries i0 … i0 + rows - 1 against keys j0 … j0 + cols - 1, for query head h of
/// batch b. In memory the score of query i0 + r and key j0 + c is element r * ld + c.
struct Tile {
  std::int64_t b, h, i0, rows, j0, cols, ld;
};

/// skip: no key of this tile is visible. full: every key is, and the edit changes nothing. partial: the edit
/// must see the tile.
enum class TileKind { skip, partial, full };

/// Anything that changes scores inside the fused kernel: a mask, a bias, a reader's own function. One call
/// covers a tile. Several threads call these functions at once.
template <class T> struct ScoreEdit {
  virtual ~ScoreEdit() = default;

  virtual TileKind kind(const Tile&) const { return TileKind::partial; }

  /// Changes the scaled scores in place; -inf means "may not attend". Scores that FlashArgs::band hides hold
  /// arbitrary values (the band is applied last) and may be changed or left alone.
  virtual void edit(const Tile& tile, T* S) const = 0;

  /// Turns the gradient of the score that `edit` left into that of the score it found, in place, and adds the
  /// gradients of the edit's own tensors to `sums`. S is the tile as `edit` found it if reads_scores is set,
  /// else null. Where dS is 0 it must stay 0 and nothing may be added: hidden scores are among these, and a
  /// derivative there may be anything. The default is right for masks and sums: dS passes through unchanged.
  virtual void edit_gradient(const Tile&, const T* /*S*/, T* /*dS*/, double* /*sums*/) const {}
  bool reads_scores = false;

  /// How many doubles `sums` has. They are private to one (batch, kv head) and start at 0; afterwards the
  /// kernel adds them to the gradient's total, from element first_sum(b, kv_head) on.
  std::int64_t sum_count = 0;
  virtual std::int64_t first_sum(std::int64_t /*b*/, std::int64_t /*kv_head*/) const { return 0; }
};

}  // namespace tapehead::kernels
