// The Jacobian of one row, J = diag(y) - y yᵀ, is its own transpose, so the gradient of one row is J dy =
// y ⊙ dy - y (y · dy) = y ⊙ (dy - y · dy). The number y · dy is the D of the chapter: the mean of dy under
// the weights y. A score gets a positive gradient if its dy is above that mean. The gradients of a row sum
// to 0, because adding the same number to all scores changes nothing.
#include "exercise.hpp"

Tensor<double> softmax_pullback(const Tensor<double>& y, const Tensor<double>& dy) {
  return y * (dy - sum(y * dy, -1, true));
}
