#pragma once
// How a matrix product becomes fast: four versions between three plain loops and src/kernels/gemm.cpp, one
// idea each. Every rung computes C = A B for contiguous row-major A (m x k), B (k x n) and C (m x n), for
// float and double; `make bench BENCH=ladder` times them all. What gemm_block.cpp and gemm.cpp add to the
// last one: edges without wasted work, strides, small sizes, threads; gemm_bf16.cpp adds the matrix unit.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/vec.hpp"

namespace ladder {

using std::int64_t;
using namespace tapehead::kernels;

/// Rung 1: the definition, C_ij = Σ_p A_ip B_pj. The inner loop reads a column of B: each step touches
/// another cache line and uses one number of it, and each addition waits for the one before.
template <class T> void naive(int64_t m, int64_t n, int64_t k, const T* A, const T* B, T* C) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += A[i * k + p] * B[p * n + j];
      C[i * n + j] = sum;
    }
}

/// Rung 2: the same products in another order. With j innermost, rows of B and C are read from left to right,
/// and the additions are independent of each other. A block of B, 64 x 512 numbers, is used for all rows of A
/// before the next one is read, so it stays in the cache.
template <class T> void blocked(int64_t m, int64_t n, int64_t k, const T* A, const T* B, T* C) {
  constexpr int64_t depth = 64, width = 512;
  std::fill_n(C, m * n, T(0));
  for (int64_t p0 = 0; p0 < k; p0 += depth)
    for (int64_t j0 = 0; j0 < n; j0 += width)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t p = p0; p < std::min(p0 + depth, k); ++p) {
          const T a = A[i * k + p];
          for (int64_t j = j0; j < std::min(j0 + width, n); ++j) C[i * n + j] += a * B[p * n + j];
        }
}

/// Copies columns j … j + width - 1 of rows p … p + depth - 1 of B, one row after the other, zeros behind
/// column n.
template <class T>
void copy_panel(int64_t p, int64_t depth, int64_t j, int64_t width, int64_t n, const T* B, T* panel) {
  for (int64_t q = p; q < p + depth; ++q)
    for (int64_t c = j; c < j + width; ++c) *panel++ = c < n ? B[q * n + c] : T(0);
}

/// Rung 3: rung 2 reads and writes an element of C for every product. Here a tile of C, 4 x 32, is summed in
/// local variables and written once per block: a loaded number of B serves four rows, a number of A serves 32
/// columns. The tile reads 32 columns of B, which are short pieces far from each other, so they are first
/// copied to lie one after the other. How much of the tile stays in registers is up to the compiler.
template <class T> void packed(int64_t m, int64_t n, int64_t k, const T* A, const T* B, T* C) {
  constexpr int64_t depth = 256, height = 4, width = 32;
  std::fill_n(C, m * n, T(0));
  std::vector<T> panel(depth * width);
  for (int64_t p = 0; p < k; p += depth)
    for (int64_t j = 0; j < n; j += width) {
      const int64_t here = std::min(depth, k - p), cols = std::min(width, n - j);
      copy_panel(p, here, j, width, n, B, panel.data());
      for (int64_t i = 0; i < m; i += height) {
        const int64_t rows = std::min(height, m - i);
        const T* a[height];
        for (int64_t r = 0; r < height; ++r)
          a[r] = A + (i + std::min(r, rows - 1)) * k + p;  // a short tile repeats a row
        T sum[height][width] = {};
        for (int64_t q = 0; q < here; ++q)
          for (int64_t r = 0; r < height; ++r)
            for (int64_t c = 0; c < width; ++c) sum[r][c] += a[r][q] * panel[static_cast<std::size_t>(q * width + c)];
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < cols; ++c) C[(i + r) * n + j + c] += sum[r][c];
      }
    }
}

/// Rung 4: the tile in vectors, two of them side by side, and as many rows as leave registers for B and A. A
/// step of the innermost loop loads 2 vectors and `height` numbers and does 2 * height vector multiply-adds,
/// enough to keep the arithmetic units busy during the loads.
template <class T> void vectors(int64_t m, int64_t n, int64_t k, const T* A, const T* B, T* C) {
  constexpr int64_t depth = 256, L = lanes<T>, width = 2 * L;
  constexpr int height = vector_bytes == 64 ? 12 : 6;
  std::fill_n(C, m * n, T(0));
  std::vector<T> panel(depth * width);
  for (int64_t p = 0; p < k; p += depth)
    for (int64_t j = 0; j < n; j += width) {
      const int64_t here = std::min(depth, k - p), cols = std::min(width, n - j);
      copy_panel(p, here, j, width, n, B, panel.data());
      for (int64_t i = 0; i < m; i += height) {
        const int64_t rows = std::min<int64_t>(height, m - i);
        Vec<T> sum[height][2];
        for (int64_t q = 0; q < here; ++q) {
          const Vec<T> left = load(panel.data() + q * width), right = load(panel.data() + q * width + L);
#pragma GCC unroll 12
          for (int r = 0; r < height; ++r) {
            const Vec<T> a = A[(i + std::min<int64_t>(r, rows - 1)) * k + p + q];
            sum[r][0] = fma(a, left, sum[r][0]);
            sum[r][1] = fma(a, right, sum[r][1]);
          }
        }
        T tile[height][width];
#pragma GCC unroll 12
        for (int r = 0; r < height; ++r) store(tile[r], sum[r][0]), store(tile[r] + L, sum[r][1]);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < cols; ++c) C[(i + r) * n + j + c] += tile[r][c];
      }
    }
}

}  // namespace ladder
