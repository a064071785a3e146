#pragma once
// The one matrix product that the fused attention kernel is made of: C = f C + A B for tiles that lie in the
// near caches. All five products of attention and its gradient have this form if the tile of scores is stored
// row by row:
//
//     S = Q Kᵀ      A = Q,   B = Kᵀ packed          dV += Pᵀ dO    A = Pᵀ, P read by columns,    B = dO
//     O = f O + P V A = P,   B = V                  dK += dSᵀ Q    A = dSᵀ, dS read by columns,  B = Q
//     dP = dO Vᵀ    A = dO,  B = Vᵀ packed          dQ += dS K     A = dS,                       B = K
//
// (f: the factor by which online softmax scales the sums of a row down.) It is gemm's register tile without
// gemm's packing: numbers of A are read one at a time and broadcast, so A may have any two strides; rows of B
// and C are read as vectors, so they are contiguous and padded to whole vectors.

#include <cstdint>

#include "kernels/gemm_pack.hpp"
#include "kernels/vec.hpp"

namespace tapehead::kernels {

/// How many rows of C one register tile has; so many rows are also multiplied together at the edge of a mask.
#if defined(TAPEHEAD_AVX512) || defined(__aarch64__)
inline constexpr int tile_rows = 12;  // 32 registers: 12 x 2 sums, 2 of B, 1 of A
#else
inline constexpr int tile_rows = 6;  // 16 registers: 6 x 2 sums, 2 of B, 1 of A
#endif

/// What A B is added to: nothing (C is not read), C, or C with each row times its factor.
enum class Onto { nothing, sum, scaled_sum };

/// C = f C + A B, where A is rows x depth, B depth x cols, C rows x cols, cols a multiple of lanes<T>, and f
/// is 0, 1 or factors[row], as `onto` says. Nothing outside these sizes is read or written; depth 0 is an
/// empty sum.
template <class T> void tile_product(std::int64_t rows, std::int64_t cols, std::int64_t depth, const Matrix<T>& A,
                                     const T* B, std::int64_t b_row, T* C, std::int64_t c_row, Onto onto,
                                     const T* factors = nullptr);

}  // namespace tapehead::kernels
