#pragma once
// Views of matrices in memory, and packed copies that are read sequentially.

#include <algorithm>
#include <cstdint>

#include "kernels/vec.hpp"

namespace tapehead::kernels {

/// A view: element (i, j) at data[i * row + j * col]. Strides may be 0 or negative.
template <class T> struct Matrix {
  const T* data;
  std::int64_t row, col;
  const T* at(std::int64_t i, std::int64_t j) const { return data + i * row + j * col; }
};

/// The first n <= lanes elements at p, zeros after.
template <class T> TAPEHEAD_INLINE Vec<T> load_up_to(const T* p, std::int64_t n) {
  return n == lanes<T> ? load(p) : load_n(p, n);
}

template <class T> TAPEHEAD_INLINE void store_up_to(T* p, Vec<T> x, std::int64_t n) {
  n == lanes<T> ? store(p, x) : store_n(p, x, n);
}

/// Up to lanes lines of up to lanes elements, transposed: register p holds element p of every line.
template <class T> TAPEHEAD_INLINE void load_transposed(const Matrix<T>& lines, std::int64_t count, std::int64_t depth,
                                                        Vec<T> (&square)[lanes<T>]) {
#pragma GCC unroll 16
  for (int r = 0; r < lanes<T>; ++r) square[r] = r < count ? load_up_to(lines.at(r, 0), depth) : Vec<T>();
  transpose(square);
}

/// Interleaves `count` lines of `depth` elements: to (depth x width) has to[p * width + i] = element p of
/// line i, and zeros for count <= i < width.
template <class T> void pack(std::int64_t count, std::int64_t width, std::int64_t depth, const Matrix<T>& lines, T* to);

}  // namespace tapehead::kernels
