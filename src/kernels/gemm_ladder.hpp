#pragma once
// The way from three loops to gemm.cpp, one idea a rung. Every rung computes C = A B for contiguous row-major
// A (m x k), B (k x n) and C (m x n), for float and double; `make bench BENCH=ladder` times them all.

#include <cstdint>

namespace tapehead::kernels::ladder {

/// The definition.
template <class T>
void naive(std::int64_t m, std::int64_t n, std::int64_t k, const T* A, const T* B, T* C);

/// … in an order that memory likes.
template <class T>
void blocked(std::int64_t m, std::int64_t n, std::int64_t k, const T* A, const T* B, T* C);

/// … with B laid out in the order in which it is read, and sums kept in registers.
template <class T>
void packed(std::int64_t m, std::int64_t n, std::int64_t k, const T* A, const T* B, T* C);

/// … several numbers to a register. What gemm_block.cpp and gemm.cpp add: edges without waste, strides, small
/// sizes, threads; and gemm_bf16.cpp a unit for matrices.
template <class T>
void vectors(std::int64_t m, std::int64_t n, std::int64_t k, const T* A, const T* B, T* C);

}  // namespace tapehead::kernels::ladder
