#pragma once
// Floats split into bfloat16, in the layout that the tiles of a matrix unit need.
//
// A float has 24 significant bits, a bfloat16 has 8, and both have the same exponents. So a float is the sum
// of three bfloat16, exactly:
//
//     a = a0 + a1 + a2        a0 = a rounded to 8 bits, a1 = a - a0 rounded to 8 bits, a2 = what is left
//
// A *line* is a row of A or a column of B, which is multiplied along the depth. 32 lines are a group, 32
// numbers of each are a step, and a step of a group is two tiles in each of three *planes*, one for a0, one
// for a1, one for a2. In a tile of A a line is a row; in a tile of B it is a column, and rows are pairs along
// the depth. Since it does not matter in which order a depth of 32 is summed as long as A and B agree,
// numbers p and p + 16 make a pair: so pairs come from whole vectors.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/gemm_bf16.hpp"
#include "kernels/gemm_pack.hpp"
#include "kernels/vec.hpp"

namespace tapehead::kernels::bf16 {

using Real = Vec<float>;
using Word = std::uint32_t;  // a pair
using Words = UnsignedVec<float>;

inline constexpr std::int64_t side = 16, depth = 32, group = 2 * side, planes = 3;
inline constexpr std::int64_t tile_words = side * side, plane_words = 2 * tile_words, step_words = planes * plane_words;

/// The bits of 2^e. Without their signs, floats are in order when read as integers.
constexpr Word power(int e) { return static_cast<Word>(e + 127) << 23; }

/// The unit treats subnormal numbers as zero, and splitting infinity produces NaN. Its results are right for
/// lines whose numbers are zero or at least 2^-100 and below 2^55, the largest at least 2^-45: then no part
/// is subnormal, no sum overflows, and products that underflow are far below the last bit of the largest of a
/// line of A times the largest of a line of B.
inline constexpr Word smallest = power(-100), small = power(-45), large = power(55);

/// Which sizes have been seen: the smallest beside zero, less one, and the largest.
struct Range {
  Words low = ~Words{}, high{};
  TAPEHEAD_INLINE void see(Real x) {
    const Words size = reinterpret_cast<Words>(abs(x).v), less = size - 1;  // 0 - 1 is the largest
    low = less < low ? less : low, high = size > high ? size : high;
  }
  TAPEHEAD_INLINE bool leaves(Word from, Word to) const {
    return any(Mask<float>{reinterpret_cast<IntVec<float>>((low < from - 1) | (high >= to))});
  }
};

/// Writes the three parts of x and y in pairs, each part in its plane. What is left of a float after two
/// parts has eight bits and needs no rounding.
TAPEHEAD_INLINE void split(Real x, Real y, Word* to, Range& range) {
  constexpr Word upper = 0xffff0000, half = 0x8000;
  const auto words = [](Real v) { return reinterpret_cast<Words>(v.v); };
  const auto real = [](Words w) { return Real(reinterpret_cast<Real::Native>(w)); };
  const auto pair = [](Words a, Words b) { return (a >> 16) | (b & upper); };
  range.see(x), range.see(y);
#pragma GCC unroll 2
  for (std::int64_t q = 0; q < 2; ++q) {
    const Words a = (words(x) + half) & upper, b = (words(y) + half) & upper;
    store(reinterpret_cast<float*>(to + q * plane_words), real(pair(a, b)));
    x -= real(a), y -= real(b);
  }
  store(reinterpret_cast<float*>(to + 2 * plane_words), real(pair(words(x), words(y))));
}

/// A square of M, a vector each row, zeros where M has no elements.
TAPEHEAD_INLINE void load_square(const Matrix<float>& M, std::int64_t rows, std::int64_t cols, Real (&square)[side]) {
  if (M.row == 1 && rows >= side && cols >= side) {
    load_transposed({M.data, M.col, 1}, side, side, square);
    return;
  }
  for (std::int64_t r = 0; r < side; ++r) {
    alignas(64) float row[side] = {};
    for (std::int64_t c = 0; r < rows && c < std::min(cols, side); ++c) row[c] = *M.at(r, c);
    square[r] = load(row);
  }
}

/// For each line: whether it must be multiplied in vectors.
struct Flags {
  bool any = false, line[bf16_cols] = {};
  /// In the group from line i on.
  bool in_group(std::int64_t i) const {
    return any && std::any_of(line + i, line + i + group, [](bool flag) { return flag; });
  }
};

/// Up to bf16_cols lines of k numbers on their way into planes, group after group, a few rows of tiles at a
/// time.
template <bool rows_are_lines> class Packing {
 public:
  Packing(std::int64_t count, std::int64_t k, const Matrix<float>& lines, Word* to)
      : count_(count), k_(k), lines_(lines), to_(to), group_words_((k + depth - 1) / depth * step_words) {}

  /// Takes up the tiles of the lines from i and their numbers from p.
  TAPEHEAD_INLINE void turn_to(std::int64_t i, std::int64_t p) {
    tile_ = to_ + i / group * group_words_ + p / depth * step_words + i % group / side * tile_words;
    first_ = part(i, p), second_ = part(i, p + side);
    const std::int64_t there = count_ - i, deep = k_ - p;
    as_it_lies_ = first_.col == 1 && there >= side && deep >= depth;
    if (as_it_lies_) return;
    load_square(first_, rows_are_lines ? there : deep, rows_are_lines ? deep : there, x_);
    load_square(second_, rows_are_lines ? there : deep - side, rows_are_lines ? deep - side : there, y_);
  }
  /// Splits rows of the tiles taken up.
  TAPEHEAD_INLINE void rows(std::int64_t from, std::int64_t to) {
    Range range = range_;  // in registers
    if (as_it_lies_) {
      const float *x = first_.at(from, 0), *y = second_.at(from, 0);
      for (std::int64_t r = from; r < to; ++r, x += first_.row, y += second_.row)
        split(load(x), load(y), tile_ + r * side, range);
    } else {
      for (std::int64_t r = from; r < to; ++r) split(x_[r], y_[r], tile_ + r * side, range);
    }
    range_ = range;
  }
  /// Everything, in the order of memory: it reads twice as fast as panel by panel.
  void all() {
    const std::int64_t lines = (count_ + group - 1) / group * group;
    if (lines_.col == 1) {
      for (std::int64_t i = 0; i < lines; i += side)
        for (std::int64_t p = 0; p < k_; p += depth) turn_to(i, p), rows(0, side);
    } else {
      for (std::int64_t p = 0; p < k_; p += depth)
        for (std::int64_t i = 0; i < lines; i += side) turn_to(i, p), rows(0, side);
    }
  }

  /// After all(): finds the lines for which the unit would be wrong. They are examined one by one only if
  /// some number is unusual.
  void find(Flags& found) const {
    if (found.any) found = {};
    if (!range_.leaves(small, large)) return;
    const bool only_small = !range_.leaves(smallest, large);  // then one number that is not small will do
    for (std::int64_t i = 0; i < count_; ++i) {
      Word high = 0, low = large;
      for (std::int64_t p = 0; p < k_ && !(only_small && high >= small); ++p) {
        const Word size = std::bit_cast<Word>(*lines_.at(i, p)) & 0x7fffffff;
        high = std::max(high, size), low = size == 0 ? low : std::min(low, size);
      }
      found.line[i] = low < smallest || high >= large || (high > 0 && high < small);
      found.any = found.any || found.line[i];
    }
  }

 private:
  Matrix<float> part(std::int64_t i, std::int64_t p) const {
    return rows_are_lines ? Matrix<float>{lines_.at(i, p), lines_.row, lines_.col}
                          : Matrix<float>{lines_.at(i, p), lines_.col, lines_.row};
  }

  std::int64_t count_, k_;
  Matrix<float> lines_, first_{}, second_{};
  Word *to_, *tile_ = nullptr;
  std::int64_t group_words_;
  bool as_it_lies_ = false;
  Range range_;
  Real x_[side], y_[side];
};

}  // namespace tapehead::kernels::bf16
