// 09  D, computed twice                                           (The backward pass, written out)
//
// The D term of the softmax gradient is one number for each query. There are two ways to compute
// it.
//
// (a) d_from_weights: from the weights A and their gradient dA, both (n_q, n_k), return D, (n_q,
//     1).
// (b) d_from_output: from the output O and its gradient dO, both (n_q, d_v), return the same D,
//     (n_q, 1).
// The check calls both for the same attention. Before you look at the solution: why are the two
// equal, and why does a fused kernel use the second?
#include "exercise.hpp"

Tensor<double> d_from_weights(const Tensor<double>& A, const Tensor<double>& dA) {
  todo();  // write your code in place of this line
}

Tensor<double> d_from_output(const Tensor<double>& dO, const Tensor<double>& O) {
  todo();  // write your code in place of this line
}
