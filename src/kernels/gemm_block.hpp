#pragma once
// Products of blocks that lie in the near caches: what gemm.cpp cuts matrices into.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "kernels/gemm.hpp"
#include "kernels/gemm_pack.hpp"
#include "kernels/vec.hpp"

namespace tapehead::kernels {

/// What a product is added to: nothing, C itself, or one row for all (row = 0).
template <class T>
struct Start {
  const T* data;
  std::int64_t row;
  Start at(std::int64_t i, std::int64_t j) const {
    return data == nullptr ? *this : Start{data + i * row + j, row};
  }
};

template <class T>
constexpr std::int64_t tile_cols = 2 * lanes<T>;
/// Columns of B that are packed at a time, to lie in the second-level cache.
template <class T>
constexpr std::int64_t block_cols = (3 << 18) / (gemm_depth * static_cast<std::int64_t>(sizeof(T)));

/// C = D + A B for one block of columns and of the depth (k <= gemm_depth, n <= block_cols), all rows, in
/// vectors.
template <class T>
void block(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix<T>& A, const Matrix<T>& B, T* C,
           std::int64_t c_row, const Start<T>& D);

/// Memory for packed panels, kept from call to call: fresh pages cost more than the product. One piece for
/// each thread and each T.
template <class T>
T* workspace(std::int64_t size) {
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  thread_local std::unique_ptr<T, Free> memory;
  thread_local std::int64_t capacity = 0;
  if (size > capacity) {
    memory.reset();
    memory.reset(
        static_cast<T*>(::operator new(static_cast<std::size_t>(size) * sizeof(T), std::align_val_t(64))));
    capacity = size;
  }
  return memory.get();
}

}  // namespace tapehead::kernels
