#pragma once
#include <cstdint>

namespace tapehead::kernels {

/// C = A B, or C += A B when `accumulate`, for float and double.
///
/// A is m x k, its element (i, p) at A[i * a_row + p * a_col]; B is k x n likewise; C is m x n, its rows
/// c_row elements apart, each row contiguous. Strides of A and B count elements and may be anything:
/// transposed, broadcast (0) and reversed (negative) matrices are read without a copy. C must not overlap A
/// or B. k = 0 gives zeros, or leaves C unchanged when accumulating. NaN and infinity propagate as in plain
/// loops.
///
/// The order in which an element of C is summed depends on k alone: blocks of gemm_depth products, each
/// summed from 0 in order of p, and the blocks in order. So the result is the same, to the bit, for any m, n,
/// strides and number of threads. The exception are large products of floats on a processor with a matrix
/// unit (gemm_bf16.hpp), which has its own order of summation: m, n and k decide whether the unit is used,
/// and elements have the same bits in all products that use it.
///
/// |error| <= gemm_error(k) * epsilon * (|A| |B|), element by element, and on a matrix unit up to 2^-115 more
/// where products underflow.
template <class T> void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* A, std::int64_t a_row,
                             std::int64_t a_col, const T* B, std::int64_t b_row, std::int64_t b_col, T* C,
                             std::int64_t c_row, bool accumulate = false);

/// The same with one row of n numbers added to every row of the product; nothing is added if `row` is null.
/// On a matrix unit the sums start from it, so their errors are in proportion to |row| + |A| |B|.
template <class T> void gemm_row(std::int64_t m, std::int64_t n, std::int64_t k, const T* A, std::int64_t a_row,
                                 std::int64_t a_col, const T* B, std::int64_t b_row, std::int64_t b_col, const T* row,
                                 T* C, std::int64_t c_row);

/// `batch` products of the same sizes: number i reads A + a_at[i] and B + b_at[i] and writes C + i * m * n,
/// contiguous rows (c_row = n). The threads share a batch of many small products.
template <class T> void gemm_batch(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, const T* A,
                                   const std::int64_t* a_at, std::int64_t a_row, std::int64_t a_col, const T* B,
                                   const std::int64_t* b_at, std::int64_t b_row, std::int64_t b_col, T* C,
                                   bool accumulate = false);

inline constexpr std::int64_t gemm_depth = 384;

/// Roundings that one element can see, in units of epsilon: a product and a sum for each p of a block
/// (epsilon/2 each), then one sum a block, or two when accumulating; a half more for terms of second order.
constexpr double gemm_error(std::int64_t k) {
  const std::int64_t block = k < gemm_depth ? k : gemm_depth, blocks = (k + gemm_depth - 1) / gemm_depth;
  return 0.5 * static_cast<double>(block + 1 + blocks) + 0.5;
}

}  // namespace tapehead::kernels
