// 08  dV and dA                                                   (The backward pass, written out)
//
// O = A V, where A, (n_q, n_k), are the weights and V, (n_k, d_v), the values. The upstream
// gradient dO, (n_q, d_v), is given.
//
// (a) values_gradient: return dV, with V's shape.
// (b) weights_gradient: return dA, with A's shape.
#include "exercise.hpp"

Tensor<double> values_gradient(const Tensor<double>& A, const Tensor<double>& dO) {
  todo();  // write your code in place of this line
}

Tensor<double> weights_gradient(const Tensor<double>& dO, const Tensor<double>& V) {
  todo();  // write your code in place of this line
}
