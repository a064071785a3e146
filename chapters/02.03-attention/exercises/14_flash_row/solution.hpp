// This is exercise 13 with an output row. out is Σ exp(s - m) v over the keys so far: its terms have the
// same exponentials as the sum, so it gets the same factor exp(m - m') if the largest score changes. The
// division by the sum happens once, at the end. The memory needed is d_v + 2 numbers, however long the
// sequence is.
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
