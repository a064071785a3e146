// Exercise 13 with the output carried along. out is Σ exp(s - m) v over the keys so far: a sum of the same
// terms as the denominator, so it takes the same factor exp(m - m') when the largest score changes. The
// division by the sum comes once, at the end. Memory: d_v numbers and two more, however long the sequence is.
#include "exercise.hpp"

Tensor<double> flash_row(const Tensor<double>& q, const std::vector<Block>& blocks) {
  const double root = std::sqrt(static_cast<double>(q.size(0)));
  double m = -inf, total = 0;
  auto out = zeros<double>({blocks[0].V.size(1)});
  for (const Block& block : blocks) {
    const auto s = matmul(block.K, q) / root;
    const double larger = std::max(m, max(s).item());
    const double shrink = std::exp(m - larger);
    const auto e = exp(s - larger);
    total = total * shrink + sum(e).item();
    out = out * shrink + matmul(e, block.V);
    m = larger;
  }
  return out / total;
}
