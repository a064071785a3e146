#include "tapehead/ops/low_precision.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/require.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

double NumberFormat::largest() const { return std::ldexp(2 - epsilon(), max_exponent); }
double NumberFormat::epsilon() const { return std::ldexp(1.0, -fraction_bits); }
double NumberFormat::smallest_normal() const { return std::ldexp(1.0, 1 - max_exponent); }
double NumberFormat::smallest() const { return std::ldexp(1.0, 1 - max_exponent - fraction_bits); }

template <class T> Real<T> round_to(const NumberFormat& format, const Tensor<T>& x) {
  require<GradientError>(
      !is_recorded(x),
      "round_to: a tape knows this tensor of shape {}, and rounding to {} has derivative 0 wherever it has one; "
      "detach(x), or let the gradient pass straight through: x + detach(round_to(…, detach(x)) - detach(x))",
      x.shape(), format.name);
  require<ValueError>(format.fraction_bits >= 0 && format.fraction_bits <= 52 && format.max_exponent >= 1 &&
                          format.max_exponent <= 1023,
                      "round_to: {} has {} bits of fraction and exponents to {}; these are 0 to 52 and 1 to 1023",
                      format.name, format.fraction_bits, format.max_exponent);
  return detail::map<T>("round_to", x, [format, largest = format.largest()](T v) {
    if (v == 0 || !std::isfinite(v)) return v;
    // The gap between neighbours beside v is 2^gap; in units of it, rounding is to the nearest integer.
    const int gap = std::max(std::ilogb(v), 1 - format.max_exponent) - format.fraction_bits;
    const double rounded = std::ldexp(std::nearbyint(std::ldexp(static_cast<double>(v), -gap)), gap);
    return static_cast<T>(std::abs(rounded) > largest ? std::copysign(std::numeric_limits<double>::infinity(), rounded)
                                                      : rounded);
  });
}

template Tensor<float> round_to(const NumberFormat&, const Tensor<float>&);
template Tensor<double> round_to(const NumberFormat&, const Tensor<double>&);

}  // namespace tapehead
