#pragma once
#include "tapehead/tensor/tensor.hpp"

// What a number becomes in 16 bits. Round after each step of a formula, and the troubles of half precision
// can be seen and measured on a CPU in float: a fill of -1e9 that turns into -inf, scores that overflow, sums
// that stop growing.

namespace tapehead {

/// A binary format as IEEE 754 makes them: 1.f × 2^e with so many bits of fraction f and |e| up to
/// max_exponent; numbers without the leading 1 below 2^(1 - max_exponent); infinities and NaN.
struct NumberFormat {
  const char* name;
  int fraction_bits;
  int max_exponent;

  double largest() const;  ///< float16: 65504
  double epsilon() const;  ///< the gap after 1
  double smallest_normal() const;
  double smallest() const;  ///< above 0
};
inline constexpr NumberFormat float16{"float16", 10, 15};
inline constexpr NumberFormat bfloat16{"bfloat16", 7, 127};  ///< float's range, with 8 significant bits

/// Each element as the nearest number of the format, ties to the one whose last bit is 0; beyond the largest
/// by half a gap or more, infinity; NaN stays. Throws ValueError for a format that double does not contain. Rounding is
/// a staircase, whose derivative is 0 wherever it has one: throws GradientError for a tensor that a tape knows. To train through it as if it were not there
/// (straight-through, what a cast in PyTorch does):
///   x + detach(round_to(bfloat16, detach(x)) - detach(x))
template <class T> Real<T> round_to(const NumberFormat& format, const Tensor<T>& x);

}  // namespace tapehead
