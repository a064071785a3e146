// Why minus infinity: exp turns it into a weight of exactly 0. A score of 0 is an ordinary score, and e^0 = 1
// is an ordinary weight. The price: in a row of nothing but minus infinity the largest score is -inf too, and
// -inf - (-inf) is NaN; from there it spreads through every later layer. In float16 a large negative number
// serves against that, but only half: the row then gets even weights, over keys that it must not see. The
// cure is to choose another number to subtract in such a row (0 will do: exp(-inf - 0) is 0) and another sum
// to divide by (1: 0 / 1 is 0). All other rows are as before.
#include "exercise.hpp"

Tensor<double> a_row_that_breaks() { return {-inf, -inf}; }

Tensor<double> masked_weights(const Tensor<double>& scores, const Tensor<bool>& allowed) {
  const auto S = where(allowed, scores, scalar(-inf));
  const auto largest = max(S, -1, true);
  const auto e = exp(S - masked_fill(largest, eq(largest, scalar(-inf)), 0));
  const auto total = sum(e, -1, true);
  return e / masked_fill(total, eq(total, scalar(0.0)), 1);
}
