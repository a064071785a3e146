// Replacing the NaN after softmax repairs the output, but not the gradient: a gradient of 0 arrives at
// each replaced weight, softmax's gradient multiplies it by its own result, and 0 times NaN is NaN. If
// `where` applied the mask, this NaN stops there, because the gradient of `where` selects; but if -inf was
// added to the scores, as in the chapter, it reaches Q and K. It is safer never to produce a NaN: a row
// without a key keeps its finite scores, and its weights are multiplied by 0 after softmax, which stops
// both the output and the gradient. `alive` is 1 for a row that has a key and 0 for one that has none.
#include "exercise.hpp"

Tensor<double> masked_attention(const Tensor<double>& Q, const Tensor<double>& K, const Tensor<double>& V,
                                const Tensor<bool>& mask) {
  const auto alive = max(to<double>(mask), -1, true);
  const auto shown = mask | eq(alive, scalar(0.0));
  const auto S = matmul(Q, K.T()) / std::sqrt(static_cast<double>(Q.size(-1)));
  const auto A = softmax(where(shown, S, scalar(-inf)), -1) * alive;
  return matmul(A, V);
}
