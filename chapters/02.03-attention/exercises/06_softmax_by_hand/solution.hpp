// e^1000 is more than a double can hold, but softmax does not change when the same number is taken from every
// score of a row: e^-c cancels between numerator and denominator. With c the largest score, the largest
// exponential is e^0 = 1 and nothing overflows. Both reductions keep their axis, (m, 1), so that they
// broadcast along the row again.
#include "exercise.hpp"

Tensor<double> softmax_by_hand(const Tensor<double>& x) {
  const auto e = exp(x - max(x, -1, true));
  return e / sum(e, -1, true);
}
