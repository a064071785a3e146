// exp turns minus infinity into a weight of exactly 0. A score of 0 would not: it is an ordinary score,
// and e^0 = 1 is an ordinary weight. The price is a row that has nothing but minus infinity: its largest
// score is -inf too, and -inf - (-inf) is NaN, which spreads through every later layer. A large negative
// number in place of -inf avoids the NaN, but the row then gets even weights over keys that it must not
// see. The remedy is to subtract another number in such a row (0 works, because exp(-inf - 0) is 0) and to
// divide by another sum (1, because 0 / 1 is 0). All other rows stay as they were.
#include "exercise.hpp"

Tensor<double> a_row_that_breaks() { return {-inf, -inf}; }

Tensor<double> masked_weights(const Tensor<double>& scores, const Tensor<bool>& allowed) {
  const auto S = where(allowed, scores, scalar(-inf));
  const auto largest = max(S, -1, true);
  const auto e = exp(S - masked_fill(largest, eq(largest, scalar(-inf)), 0));
  const auto total = sum(e, -1, true);
  return e / masked_fill(total, eq(total, scalar(0.0)), 1);
}
