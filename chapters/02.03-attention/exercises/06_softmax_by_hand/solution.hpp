// e^1000 is larger than any double, but softmax does not change if you subtract the same number c from
// every score of a row: e^-c cancels between numerator and denominator. If c is the largest score, then
// the largest exponential is e^0 = 1, and nothing overflows. Both reductions keep their axis, (m, 1), so
// that they broadcast along the row.
#include "exercise.hpp"

Tensor<double> softmax_by_hand(const Tensor<double>& x) {
  const auto e = exp(x - max(x, -1, true));
  return e / sum(e, -1, true);
}
