#pragma once
#include <cstdint>

#include "kernels/gemm_block.hpp"

namespace tapehead::kernels {

/// Whether a product of floats is computed on the processor's matrix unit: it has one, the system permits its
/// use, and the sizes are large enough to be faster there and fill its squares of 32 well enough.
bool bf16_pays(std::int64_t m, std::int64_t n, std::int64_t k);

/// Columns of B that are packed at a time, so that their planes fit the second-level cache.
inline constexpr std::int64_t bf16_cols = 512;

/// As block(), on the matrix unit, for n <= bf16_cols and where bf16_pays(). A block is summed in steps of 32
/// along the depth, even and odd places apart, six times: about 16 + 6 k / 32 roundings in a row, where
/// block() has k. Where D is a row, these are roundings of sums that it is part of.
void bf16_block(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix<float>& A, const Matrix<float>& B,
                float* C, std::int64_t c_row, const Start<float>& D);

/// For tests and comparisons: whether the unit is used where it pays. It is, unless this said otherwise.
void use_bf16(bool yes);

}  // namespace tapehead::kernels
