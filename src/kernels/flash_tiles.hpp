#pragma once
// What the forward and the backward pass of the fused kernel share: which part of the scores a band leaves,
// packing of strided rows into padded ones, and the walk through the edits.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/dropout.hpp"
#include "kernels/flash.hpp"
#include "kernels/gemm_pack.hpp"
#include "kernels/parallel.hpp"
#include "kernels/scratch.hpp"
#include "kernels/tile_product.hpp"
#include "kernels/vec.hpp"
#include "kernels/vmath.hpp"

namespace tapehead::kernels {

template <class T> inline constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T> inline constexpr T log2_e = T(1.4426950408889634074);

inline std::int64_t round_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

/// One problem of the batch: its place and its lengths.
struct Sequence {
  std::int64_t batch = 0, q_begin = 0, Lq = 0, k_begin = 0, Lk = 0;

  template <class T> T* query(const HeadsView<T>& x, std::int64_t h) const { return x.at(batch, h, q_begin); }
  template <class T> T* key(const HeadsView<T>& x, std::int64_t h) const { return x.at(batch, h, k_begin); }
};

template <class T> Sequence sequence(const FlashArgs<T>& a, std::int64_t b) {
  Sequence s{b, 0, a.Lq, 0, a.Lk};
  if (a.q_starts) s.q_begin = a.q_starts[b], s.Lq = a.q_starts[b + 1] - s.q_begin, s.batch = 0;
  if (a.k_starts) s.k_begin = a.k_starts[b], s.Lk = a.k_starts[b + 1] - s.k_begin;
  return s;
}

/// A half-open range of keys, queries or columns.
struct Range {
  std::int64_t begin, end;
  bool empty() const { return begin >= end; }
};

/// The band for given lengths: query i sees key j where low <= j - i <= high and 0 <= j < Lk.
struct Diagonals {
  std::int64_t low, high, Lq, Lk;

  Diagonals(const Band& band, const Sequence& s) : Lq(s.Lq), Lk(s.Lk) {
    const std::int64_t shift = band.bottom_right ? Lk - Lq : 0;
    low = band.left < 0 ? -(Lq + 1) : shift - std::min(band.left, Lq + Lk);
    high = band.right < 0 ? Lk : shift + std::min(band.right, Lq + Lk);
  }
  /// Keys that some of the queries i … i + rows - 1 see.
  Range keys(std::int64_t i, std::int64_t rows) const {
    return {std::clamp<std::int64_t>(i + low, 0, Lk), std::clamp<std::int64_t>(i + rows + high, 0, Lk)};
  }
  /// Queries that see some of the keys j … j + cols - 1.
  Range queries(std::int64_t j, std::int64_t cols) const {
    return {std::clamp<std::int64_t>(j - high, 0, Lq), std::clamp<std::int64_t>(j + cols - low, 0, Lq)};
  }
  /// Columns of a tile that some of its rows r … r + rows - 1 see, widened to whole vectors of `step`.
  Range columns(const Tile& t, std::int64_t r, std::int64_t rows, std::int64_t step) const {
    const Range seen = keys(t.i0 + r, rows);
    const Range c{std::clamp<std::int64_t>(seen.begin - t.j0, 0, t.cols),
                  std::clamp<std::int64_t>(seen.end - t.j0, 0, t.cols)};
    return c.empty() ? Range{0, 0} : Range{c.begin / step * step, round_up(c.end, step)};
  }
  /// Is there anything in columns c that one of the rows r … r + rows - 1 does not see?
  bool cuts(const Tile& t, std::int64_t r, std::int64_t rows, Range c) const {
    return keys(t.i0 + r + rows - 1, 1).begin > t.j0 + c.begin || keys(t.i0 + r, 1).end < t.j0 + c.end ||
           c.end > t.cols;
  }
  /// Writes -inf over what row r of the tile does not see among its columns c, padding columns included.
  template <class T> void hide(const Tile& t, std::int64_t r, Range c, T* row) const {
    const Range seen = keys(t.i0 + r, 1);
    const std::int64_t begin = std::clamp(seen.begin - t.j0, c.begin, c.end);
    const std::int64_t end = std::clamp(std::min(seen.end - t.j0, t.cols), begin, c.end);
    for (auto n = c.begin; n < begin; ++n) row[n] = -infinity<T>;
    for (auto n = end; n < c.end; ++n) row[n] = -infinity<T>;
  }
};

/// Calls f(i, n, range_of(i, n)) for pieces of `count` rows or columns: all of them at once where the first and the
/// last have one range, else strip by strip. Pieces of an empty range are left out.
template <class R, class F> void for_each_piece(std::int64_t count, const R& range_of, const F& f) {
  const Range first = range_of(0, 1), last = range_of(count - 1, 1);
  if (!first.empty() && first.begin == last.begin && first.end == last.end) return f(0, count, first);
  for (std::int64_t i = 0; i < count; i += tile_rows) {
    const std::int64_t n = std::min<std::int64_t>(tile_rows, count - i);
    const Range range = range_of(i, n);
    if (!range.empty()) f(i, n, range);
  }
}
/// The rows of a tile with the (whole vectors of) columns that they see.
template <class T, class F> void for_each_strip(const Diagonals& band, const Tile& t, const F& f) {
  for_each_piece(
      t.rows, [&](std::int64_t r, std::int64_t n) { return band.columns(t, r, n, lanes<T>); }, f);
}
/// The columns of a tile with the rows that see them.
template <class F> void for_each_key_strip(const Diagonals& band, const Tile& t, const F& f) {
  for_each_piece(
      t.cols,
      [&](std::int64_t c, std::int64_t n) {
        const Range seen = band.queries(t.j0 + c, n);
        return Range{std::clamp<std::int64_t>(seen.begin - t.i0, 0, t.rows),
                     std::clamp<std::int64_t>(seen.end - t.i0, 0, t.rows)};
      },
      f);
}

// ---- Packing ----

/// Rows one after the other, `width` elements each: n from the source, times scale, then zeros.
template <class T> void pack_rows(const T* source, std::int64_t row, std::int64_t element, std::int64_t rows,
                                  std::int64_t n, T scale, T* packed, std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r, source += row, packed += width) {
    if (element == 1)
      for (std::int64_t c = 0; c < n; ++c) packed[c] = source[c] * scale;
    else
      for (std::int64_t c = 0; c < n; ++c) packed[c] = source[c * element] * scale;
    std::fill(packed + n, packed + width, T(0));
  }
}

/// True when rows of n elements lie as pack_rows would leave them, so that they can be used where they are.
template <class T> bool lies_packed(const HeadsView<T>& x, std::int64_t n) {
  return x.element == 1 && x.row == n && n % lanes<std::remove_const_t<T>> == 0;
}

/// How much room packed copies of such rows need.
template <class T> std::int64_t room_for(const HeadsView<T>& x, std::int64_t rows, std::int64_t n) {
  return lies_packed(x, n) ? 0 : rows * round_up(n, lanes<std::remove_const_t<T>>);
}

/// Rows to read: where they are if they lie packed, else a packed copy in `room`.
template <class T>
const T* rows_to_read(const T* source, const HeadsView<const T>& x, std::int64_t rows, std::int64_t n, T* room) {
  if (lies_packed(x, n)) return source;
  pack_rows(source, x.row, x.element, rows, n, T(1), room, round_up(n, lanes<T>));
  return room;
}

/// Rows to add to, zero at first: those of the result if they lie packed, else in `room`.
template <class T> T* rows_to_sum(T* result, const HeadsView<T>& x, std::int64_t rows, std::int64_t n, T* room) {
  T* sums = lies_packed(x, n) ? result : room;
  std::fill_n(sums, rows * round_up(n, lanes<T>), T(0));
  return sums;
}

/// What was summed, times scale, to where it belongs.
template <class T>
void write_rows(const T* sums, T scale, T* result, const HeadsView<T>& x, std::int64_t rows, std::int64_t n) {
  const std::int64_t width = round_up(n, lanes<T>);
  if (sums == result && scale == 1) return;
  for (std::int64_t r = 0; r < rows; ++r, sums += width, result += x.row)
    if (x.element == 1)
      for (std::int64_t c = 0; c < n; ++c) result[c] = sums[c] * scale;
    else
      for (std::int64_t c = 0; c < n; ++c) result[c * x.element] = sums[c] * scale;
}

template <class T> T inner_product(const T* a, const T* b, std::int64_t n) {
  Vec<T> sum;
  std::int64_t c = 0;
  for (; c + lanes<T> <= n; c += lanes<T>) sum = fma(load(a + c), load(b + c), sum);
  return horizontal_sum(fma(load_n(a + c, n - c), load_n(b + c, n - c), sum));
}

// ---- Weights ----

/// e^d for a difference d <= 0 of scores, 0 where it is less than the smallest normal number: many weights are,
/// and to arrive there by scaling costs a microcode assist. NaN stays.
template <class T> TAPEHEAD_INLINE Vec<T> exp_of_difference(Vec<T> d) {
  constexpr T least = std::numeric_limits<T>::min_exponent - 1;
  const Vec<T> x = d * log2_e<T>;
  return select(x < Vec<T>(least), Vec<T>(T(0)), detail::exp2_in_range(max(Vec<T>(least), x)));
}

/// Asks every edit about a tile. Bit n of the result is set when edit n must see it; -1: skip the tile.
template <class T> int edits_at_work(std::span<const ScoreEdit<T>* const> edits, const Tile& tile) {
  int wanted = 0;
  for (std::size_t n = 0; n < edits.size(); ++n) {
    const TileKind kind = edits[n]->kind(tile);
    if (kind == TileKind::skip) return -1;
    if (kind == TileKind::partial) wanted |= 1 << n;
  }
  return wanted;
}

/// How many private sums all edits have together.
template <class T> std::int64_t sums_of(std::span<const ScoreEdit<T>* const> edits) {
  std::int64_t count = 0;
  for (const ScoreEdit<T>* edit : edits) count += edit->sum_count;
  return count;
}

inline bool drops(const Dropout& dropout) { return dropout.p > 0 || dropout.keep.data; }

/// What each weight of row i is multiplied by, 1 / (1 - p) or 0, for keys j … j + cols - 1.
template <class T> void dropout_factors(const Dropout& dropout, std::int64_t b, std::int64_t h, std::int64_t i,
                                        std::int64_t j, std::int64_t cols, T* factors) {
  const T scale = static_cast<T>(dropout_scale(dropout.p));
  if (!dropout.keep.data) return dropout_row(dropout.seed, dropout.p, b, h, i, j, cols, scale, factors);
  const bool* keep = dropout.keep.at(b, h, i);
  for (std::int64_t c = 0; c < cols; ++c) factors[c] = keep[(j + c) * dropout.keep.element] ? scale : T(0);
}

// ---- Sizes and counts ----

/// A tile side of the wanted size, no larger than the sequence.
inline std::int64_t tile_side(std::int64_t wanted, std::int64_t length) {
  return std::min(wanted, std::max<std::int64_t>(length, 1));
}

/// Multiply-adds of one pass of scores, to judge whether threads pay.
template <class T> std::int64_t operations(const FlashArgs<T>& a) {
  const std::int64_t Lq = a.q_starts ? a.q_starts[a.B] : a.B * a.Lq;
  const std::int64_t Lk = a.k_starts ? a.k_starts[a.B] / std::max<std::int64_t>(a.B, 1) : a.Lk;
  return a.Hq * Lq * Lk * (a.d + a.dv);
}

/// A TileCount that several threads add to.
class SharedCount {
 public:
  void add(const TileCount& part) { total_ += part.total, skipped_ += part.skipped; }
  TileCount get() const { return {total_, skipped_}; }

 private:
  std::atomic<std::int64_t> total_{0}, skipped_{0};
};

}  // namespace tapehead::kernels
