#pragma once
// A matrix times a vector: every element of the matrix is used once, so memory is the limit, and nothing is
// packed. Each sum is still taken in the order that gemm.hpp promises.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/gemm.hpp"
#include "kernels/gemm_pack.hpp"
#include "kernels/vec.hpp"

namespace tapehead::kernels {

/// sums = M x, M (m x k) with contiguous rows: squares of M are transposed in registers, so that each lane
/// sums one row.
template <class T>
void dots(std::int64_t m, std::int64_t k, const Matrix<T>& M, const T* x, std::int64_t x_step, T* sums) {
  constexpr std::int64_t L = lanes<T>;
  for (std::int64_t i = 0; i < m; i += L) {
    const std::int64_t rows = std::min(L, m - i);
    Vec<T> sum, square[L];
    for (std::int64_t p = 0; p < k; p += L) {
      const std::int64_t depth = std::min(L, k - p);
      load_transposed({M.at(i, p), M.row, 1}, rows, depth, square);
#pragma GCC unroll 16
      for (std::int64_t q = 0; q < L; ++q)
        if (q < depth) sum = fma(Vec<T>(x[(p + q) * x_step]), square[q], sum);
    }
    store_n(sums + i, sum, rows);
  }
}

/// sums = M x, M (m x k) with contiguous columns: columns are scaled and added, four at a time.
template <class T>
void combine(std::int64_t m, std::int64_t k, const Matrix<T>& M, const T* x, std::int64_t x_step, T* sums) {
  constexpr std::int64_t L = lanes<T>;
  const auto turn = [&](std::int64_t p, auto columns) {
    for (std::int64_t i = 0; i < m; i += L) {
      const std::int64_t n = std::min(L, m - i);
      Vec<T> sum = p == 0 ? Vec<T>() : load_n(sums + i, n);
      for (int q = 0; q < columns; ++q) sum = fma(Vec<T>(x[(p + q) * x_step]), load_up_to(M.at(i, p + q), n), sum);
      store_n(sums + i, sum, n);
    }
  };
  std::int64_t p = 0;
  for (; p + 4 <= k; p += 4) turn(p, std::integral_constant<int, 4>{});
  for (; p < k; ++p) turn(p, std::integral_constant<int, 1>{});
}

/// a b + c, rounded as in one lane of a vector: compilers may split a scalar expression in two.
template <class T> TAPEHEAD_INLINE T multiply_add(T a, T b, T c) {
#if defined(__FMA__) || defined(__AVX512F__) || defined(__ARM_FEATURE_FMA)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// start + x · y for two vectors of k elements. Only the blocks of the depth are independent of each other,
/// so up to eight of them are summed at the same time.
template <class T> T dot(std::int64_t k, const T* x, std::int64_t x_step, const T* y, std::int64_t y_step, T start) {
  constexpr int most = 8;
  for (std::int64_t p = 0; p < k;) {
    const int whole = static_cast<int>(std::min<std::int64_t>(most, (k - p) / gemm_depth));
    const std::int64_t blocks = std::max(whole, 1), depth = std::min(gemm_depth, k - p);
    std::int64_t block[most];  // where each begins; missing ones repeat the first, and their sums are not used
    for (int b = 0; b < most; ++b) block[b] = p + (b < whole ? b * gemm_depth : 0);
    T sums[most] = {};
    for (std::int64_t q = 0; q < depth; ++q)
#pragma GCC unroll 8
      for (int b = 0; b < most; ++b)
        sums[b] = multiply_add(x[(block[b] + q) * x_step], y[(block[b] + q) * y_step], sums[b]);
    for (int b = 0; b < blocks; ++b) start += sums[b];
    p += (blocks - 1) * gemm_depth + depth;
  }
  return start;
}

/// y (+)= M x for M (m x k) with contiguous rows or columns.
template <class T> void matrix_vector(std::int64_t m, std::int64_t k, const Matrix<T>& M, const T* x,
                                      std::int64_t x_step, T* y, std::int64_t y_step, bool add) {
  constexpr std::int64_t most = 1024;
  alignas(64) T sums[most];
  for (std::int64_t i = 0; i < m; i += most)
    for (std::int64_t p = 0; p < k; p += gemm_depth) {
      const std::int64_t rows = std::min(most, m - i), depth = std::min(gemm_depth, k - p);
      (M.col == 1 ? dots<T> : combine<T>)(rows, depth, {M.at(i, p), M.row, M.col}, x + p * x_step, x_step, sums);
      for (std::int64_t r = 0; r < rows; ++r) {
        T& to = y[(i + r) * y_step];
        to = add || p > 0 ? to + sums[r] : sums[r];
      }
    }
}

}  // namespace tapehead::kernels
