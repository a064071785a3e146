// 08  dV and dA                                                    (The backward pass, written out)
//
// O = A V, where A, (n_q, n_k), are the weights and V, (n_k, d_v), the values. The gradient dO,
// (n_q, d_v), arrives.
//
// (a) values_gradient: dV, of V's shape.
// (b) weights_gradient: dA, of A's shape.
#include "exercise.hpp"

Tensor<double> values_gradient(const Tensor<double>& A, const Tensor<double>& dO) {
  todo();  // your code here, instead of this line
}

Tensor<double> weights_gradient(const Tensor<double>& dO, const Tensor<double>& V) {
  todo();  // your code here, instead of this line
}
