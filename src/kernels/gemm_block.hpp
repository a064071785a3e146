#pragma once
// Products of the blocks into which gemm.cpp cuts matrices, so that they fit the near caches.

#include <cstddef>
#include <cstdint>

#include "kernels/gemm.hpp"
#include "kernels/gemm_pack.hpp"
#include "kernels/vec.hpp"

namespace tapehead::kernels {

/// What a product is added to: nothing, C itself, or one row for all rows of C (row = 0). Row i of it is
/// multiplied by factors[i], if there are any.
template <class T> struct Start {
  const T* data;
  std::int64_t row;
  const T* factors = nullptr;
  Start at(std::int64_t i, std::int64_t j) const {
    return data == nullptr ? *this : Start{data + i * row + j, row, factors == nullptr ? factors : factors + i};
  }
};

template <class T> constexpr std::int64_t tile_cols = 2 * lanes<T>;
/// Columns of B that are packed at a time, so that the copy fits the second-level cache.
template <class T> constexpr std::int64_t block_cols = (3 << 18) / (gemm_depth * static_cast<std::int64_t>(sizeof(T)));

/// C = D + A B for one block of columns and of the depth (k <= gemm_depth, n <= block_cols), all rows, in
/// vectors.
template <class T> void block(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix<T>& A, const Matrix<T>& B,
                              T* C, std::int64_t c_row, const Start<T>& D);

}  // namespace tapehead::kernels
