#pragma once
// Matrices of every layout, for the tests of their products.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/gemm_bf16.hpp"

namespace gemm_test {

using namespace tapehead::kernels;
using std::int64_t;

template <class T> inline constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T> inline constexpr T not_a_number = std::numeric_limits<T>::quiet_NaN();

template <std::size_t N> using Sizes = std::vector<std::array<int64_t, N>>;

/// The next of a fixed sequence of numbers in (-1, 1).
inline double next() {
  static std::uint64_t s = 88172645463325252u;
  s ^= s << 13, s ^= s >> 7, s ^= s << 17;
  return static_cast<double>(s >> 11) * 0x1p-52 - 1;
}

/// How a matrix lies in memory.
enum class Layout { rows, columns, padded, one_row, one_column, one_number, reversed, every_other };
inline constexpr Layout all_layouts[] = {Layout::rows,       Layout::columns,    Layout::padded,   Layout::one_row,
                                         Layout::one_column, Layout::one_number, Layout::reversed, Layout::every_other};

/// A factor of a product: an m x n matrix of some layout, at any address that T allows, NaN wherever it has
/// no elements.
template <class T> struct Factor {
  std::vector<T> memory;
  int64_t rows, cols, origin, row, col;

  Factor(int64_t m, int64_t n, Layout layout, int64_t shift = 0) : rows(m), cols(n), origin(shift), row(n), col(1) {
    if (layout == Layout::columns) row = 1, col = m;
    if (layout == Layout::padded) row = n + 3;
    if (layout == Layout::one_row) row = 0;
    if (layout == Layout::one_column) row = 1, col = 0;
    if (layout == Layout::one_number) row = col = 0;
    if (layout == Layout::every_other) row = 2 * n + 1, col = 2;
    if (layout == Layout::reversed) row = -n, col = -1, origin += std::max<int64_t>(m * n - 1, 0);
    const int64_t span = std::abs(row) * std::max<int64_t>(m - 1, 0) + std::abs(col) * std::max<int64_t>(n - 1, 0) + 1;
    memory.assign(static_cast<std::size_t>(shift + span), not_a_number<T>);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) at(i, j) = static_cast<T>(next());
  }
  const T* data() const { return memory.data() + origin; }
  T& at(int64_t i, int64_t j) { return memory[static_cast<std::size_t>(origin + i * row + j * col)]; }
  T at(int64_t i, int64_t j) const { return memory[static_cast<std::size_t>(origin + i * row + j * col)]; }

  /// The same numbers, row by row.
  Factor plain() const {
    Factor copy(rows, cols, Layout::rows);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) copy.at(i, j) = at(i, j);
    return copy;
  }
};

template <class T> void multiply(const Factor<T>& A, const Factor<T>& B, T* C, int64_t c_row, bool accumulate = false) {
  gemm(A.rows, B.cols, A.cols, A.data(), A.row, A.col, B.data(), B.row, B.col, C, c_row, accumulate);
}

/// Equal as numbers, with the same sign of zero; NaN equals NaN.
template <class T> bool same(T a, T b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

/// Until the end of the scope, nothing is multiplied on a matrix unit.
struct InVectors {
  InVectors() { use_bf16(false); }
  ~InVectors() { use_bf16(true); }
};

}  // namespace gemm_test
