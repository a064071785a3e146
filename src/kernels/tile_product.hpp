#pragma once
// The one matrix product that the fused attention kernel is made of: C = f C + A B for tiles that sit in
// cache.
//
// All five products of attention and its gradient have this form when the tile of scores is stored row by
// row:
//     S = Q Kᵀ      A = Q,   B = Kᵀ packed          dV += Pᵀ dO    A = P read down its columns,  B = dO
//     O = f O + P V A = P,   B = V                  dK += dSᵀ Q    A = dS read down its columns, B = Q
//     dP = dO Vᵀ    A = dO,  B = Vᵀ packed          dQ += dS K     A = dS,                       B = K
// (f: the factor by which online softmax scales a row's sums down.) A is read one number at a time and
// broadcast, so any two strides will do; rows of B and C are read as vectors, so they are contiguous and
// padded to whole vectors. The sums of a strip of six rows stay in registers for the whole depth: per step
// and vector of B one load serves six multiply-adds.

#include <cstdint>

namespace tapehead::kernels {

/// How many rows of C are worked on together.
inline constexpr std::int64_t strip_rows = 6;

/// A matrix whose element (m, k) is data[m * row + k * col].
template <class T>
struct Operand {
  const T* data;
  std::int64_t row, col;
};

/// What A B is added to: nothing (C is not read), C, or C with each row times its factor.
enum class Onto { nothing, sum, scaled_sum };

/// C = f C + A B: rows x cols, cols a multiple of lanes<T>; B is depth x cols, and f is 0, 1 or factors[row]
/// as `onto` says. Nothing is read or written outside these sizes; depth 0 is an empty sum.
template <class T>
void tile_product(std::int64_t rows, std::int64_t cols, std::int64_t depth, Operand<T> A, const T* B,
                  std::int64_t ldb, T* C, std::int64_t ldc, Onto onto, const T* factors = nullptr);

}  // namespace tapehead::kernels
