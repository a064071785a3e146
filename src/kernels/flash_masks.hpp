#pragma once
// The two ready-made edits of scores: a boolean mask, and a bias that is added and can be learned.

#include <array>
#include <cstdint>

#include "kernels/flash.hpp"

namespace tapehead::kernels {

/// Query i may attend to key j where mask.at(b, h, i)[j * mask.element] is true. Tiles without a true entry
/// are skipped; tiles of nothing else are not edited.
template <class T> struct MaskEdit final : ScoreEdit<T> {
  explicit MaskEdit(const HeadsView<const bool>& visible) : mask(visible) {}
  TileKind kind(const Tile& tile) const override;
  void edit(const Tile& tile, T* S) const override;

  HeadsView<const bool> mask;
};

/// bias.at(b, h, i)[j * bias.element] is added to the scaled score; -inf there means "may not attend" even
/// where the score is NaN, and a tile of nothing else is skipped.
template <class T> class BiasEdit final : public ScoreEdit<T> {
 public:
  explicit BiasEdit(const HeadsView<const T>& bias) : bias_(bias) {}
  /// The same with a gradient. `sizes` is the bias's own shape as (B, H, Lq, Lk), each size the scores' or 1;
  /// the gradient is summed over what was broadcast, in double, to a contiguous total of these sizes.
  /// `group` query heads share a kv head. Where no axis was broadcast there is nothing to sum: give the
  /// gradient's place in `direct`, which must be zero at the start, since skipped tiles write nothing.
  BiasEdit(const HeadsView<const T>& bias, const std::array<std::int64_t, 4>& sizes, std::int64_t group, T* direct);

  TileKind kind(const Tile& tile) const override;
  void edit(const Tile& tile, T* S) const override;
  void edit_gradient(const Tile& tile, const T* S, T* dS, double* sums) const override;
  std::int64_t first_sum(std::int64_t b, std::int64_t kv_head) const override;

 private:
  HeadsView<const T> bias_;
  std::array<std::int64_t, 4> sizes_{};
  std::int64_t group_ = 1;
  HeadsView<T> direct_{};
};

}  // namespace tapehead::kernels
