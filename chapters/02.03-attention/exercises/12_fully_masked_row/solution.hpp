// Clearing the NaN after softmax mends the output. The gradient is another matter: a 0 comes back to each
// cleared weight, softmax's gradient multiplies it by its own result, and 0 times NaN is NaN. Where the mask
// was put in by `where`, that NaN is dropped on the way, because its gradient selects; where -inf was added
// to the scores, as the chapter adds it, it goes on into Q and K. It is safer never to make it: such a row
// keeps its scores as they are (any finite numbers do), and its weights are multiplied by 0 after softmax,
// which stops both output and gradient. `alive` is 1 for a row with a key to see, else 0.
#include "exercise.hpp"

Tensor<double> masked_attention(const Tensor<double>& Q, const Tensor<double>& K, const Tensor<double>& V,
                                const Tensor<bool>& mask) {
  const auto alive = max(to<double>(mask), -1, true);
  const auto shown = mask | eq(alive, scalar(0.0));
  const auto S = matmul(Q, K.T()) / std::sqrt(static_cast<double>(Q.size(-1)));
  const auto A = softmax(where(shown, S, scalar(-inf)), -1) * alive;
  return matmul(A, V);
}
