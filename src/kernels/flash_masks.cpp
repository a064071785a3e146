#include "kernels/flash_masks.hpp"

#include <algorithm>
#include <limits>

namespace tapehead::kernels {
namespace {

/// Calls f(score, value) for a tile and the part of `array` that belongs to it. Contiguous rows have a loop of
/// their own, which becomes vector code.
template <class T, class A, class F> void for_each_score(const Tile& t, const HeadsView<A>& array, T* S, const F& f) {
  for (std::int64_t r = 0; r < t.rows; ++r, S += t.ld) {
    A* row = array.at(t.b, t.h, t.i0 + r) + t.j0 * array.element;
    if (array.element == 1)
      for (std::int64_t c = 0; c < t.cols; ++c) f(S[c], row[c]);
    else
      for (std::int64_t c = 0; c < t.cols; ++c) f(S[c], row[c * array.element]);
  }
}

/// The tile without what repeats itself: one row, or one column, of an axis along which the array is
/// broadcast.
template <class A> Tile distinct(Tile t, const HeadsView<A>& array) {
  if (array.row == 0) t.rows = std::min<std::int64_t>(t.rows, 1);
  if (array.element == 0) t.cols = std::min<std::int64_t>(t.cols, 1);
  return t;
}

}  // namespace

template <class T> TileKind MaskEdit<T>::kind(const Tile& tile) const {
  const Tile t = distinct(tile, mask);
  std::int64_t visible = 0;
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const bool* row = mask.at(t.b, t.h, t.i0 + r) + t.j0 * mask.element;
    int in_row = 0;
    if (mask.element == 1)
      for (std::int64_t c = 0; c < t.cols; ++c) in_row += row[c];
    else
      for (std::int64_t c = 0; c < t.cols; ++c) in_row += row[c * mask.element];
    visible += in_row;
    if (visible > 0 && in_row < t.cols) return TileKind::partial;
  }
  return visible == 0 ? TileKind::skip : visible == t.rows * t.cols ? TileKind::full : TileKind::partial;
}

template <class T> void MaskEdit<T>::edit(const Tile& tile, T* S) const {
  for_each_score(tile, mask, S, [](T& s, bool keep) { s = keep ? s : -std::numeric_limits<T>::infinity(); });
}

template <class T> BiasEdit<T>::BiasEdit(const HeadsView<const T>& bias, const std::array<std::int64_t, 4>& sizes,
                                         std::int64_t group, T* direct)
    : bias_(bias), sizes_(sizes), group_(group) {
  const auto [B, H, rows, cols] = sizes;
  if (direct != nullptr)
    direct_ = {direct, H * rows * cols, rows * cols, cols, 1};
  else
    this->sum_count = (H == 1 ? 1 : group) * rows * cols;
}

template <class T> TileKind BiasEdit<T>::kind(const Tile& tile) const {
  const Tile t = distinct(tile, bias_);
  for (std::int64_t r = 0; r < t.rows; ++r)
    for (std::int64_t c = 0; c < t.cols; ++c)
      if (bias_.at(t.b, t.h, t.i0 + r)[(t.j0 + c) * bias_.element] != -std::numeric_limits<T>::infinity())
        return TileKind::partial;
  return TileKind::skip;
}

template <class T> void BiasEdit<T>::edit(const Tile& tile, T* S) const {
  for_each_score(tile, bias_, S, [](T& s, T bias) {
    constexpr T hidden = -std::numeric_limits<T>::infinity();
    s = bias == hidden ? hidden : s + bias;
  });
}

template <class T> void BiasEdit<T>::edit_gradient(const Tile& tile, const T*, T* dS, double* sums) const {
  if (direct_.data) return for_each_score(tile, direct_, dS, [](T& ds, T& gradient) { gradient = ds; });
  if (this->sum_count == 0) return;
  // The private sums as a strided array (heads of this group, rows, columns).
  const auto [B, H, rows, cols] = sizes_;
  HeadsView<double> own{sums, 0, 0, rows > 1 ? cols : 0, cols > 1 ? 1 : 0};
  if (H > 1) own.head = rows * cols, own.data -= tile.h / group_ * group_ * own.head;
  for_each_score(tile, own, dS, [](T& ds, double& sum) { sum += static_cast<double>(ds); });
}

template <class T> std::int64_t BiasEdit<T>::first_sum(std::int64_t b, std::int64_t kv_head) const {
  const auto [B, H, rows, cols] = sizes_;
  return ((B == 1 ? 0 : b) * H + (H == 1 ? 0 : kv_head * group_)) * rows * cols;
}

template struct MaskEdit<float>;
template struct MaskEdit<double>;
template class BiasEdit<float>;
template class BiasEdit<double>;

}  // namespace tapehead::kernels
