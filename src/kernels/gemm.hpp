#pragma once
#include <cstdint>

namespace tapehead::kernels {

/// C = A B, or C += A B when `accumulate`, for float and double.
///
/// A is m x k, its element (i, p) at A[i * a_row + p * a_col]; B is k x n likewise; C is m x n, its rows
/// c_row apart, their elements side by side. Strides of A and B count elements and may be anything: a
/// transposed matrix, a broadcast one (0) or a reversed one (negative) is passed as it lies. C must not
/// overlap A or B. k = 0 gives zeros, or leaves C alone when accumulating. NaN and infinity spread as in
/// plain loops.
///
/// The order in which an element of C is summed depends on k alone: blocks of gemm_depth products, each
/// summed from 0 in order of p, and the blocks in order. So it comes out the same, to the bit, whatever m, n,
/// the strides and the number of threads. But large products of floats are taken on a matrix unit where the
/// processor has one (gemm_bf16.hpp), and it has an order of its own: there m, n and k decide who multiplies,
/// and elements are the same to the bit in all products of one kind.
///
/// |error| <= gemm_error(k) * epsilon * (|A| |B|), element by element, and on a matrix unit up to 2^-115 more
/// where products underflow.
template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* A, std::int64_t a_row, std::int64_t a_col,
          const T* B, std::int64_t b_row, std::int64_t b_col, T* C, std::int64_t c_row,
          bool accumulate = false);

/// The same with one row of n numbers added to every row of the product (which stays as it is where `row` is
/// null). On a matrix unit the sums start from it, so that their errors are in proportion to |row| + |A| |B|.
template <class T>
void gemm_row(std::int64_t m, std::int64_t n, std::int64_t k, const T* A, std::int64_t a_row,
              std::int64_t a_col, const T* B, std::int64_t b_row, std::int64_t b_col, const T* row, T* C,
              std::int64_t c_row);

/// `batch` products of the same sizes: number i reads A + a_at[i] and B + b_at[i] and writes C + i * m * n,
/// whole rows (c_row = n). Many small ones are shared out among the threads.
template <class T>
void gemm_batch(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, const T* A,
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
