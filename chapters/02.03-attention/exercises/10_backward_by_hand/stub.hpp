// 10  dV, dA, dS, dQ, dK                                          (The backward pass, written out)
//
// S = Q Kᵀ / √d_k, A = softmax(S) along each row, O = A V. Q is (n_q, d_k), K (n_k, d_k), V
// (n_k, d_v). The upstream gradient dO, (n_q, d_v), is given. Return the gradient of V, A, S, Q
// and K, each with the shape of that matrix, without a tape and without the library's backward
// functions. The check compares them with the tape's gradients.
#include "exercise.hpp"

Backward backward_by_hand(const Tensor<double>& Q, const Tensor<double>& K, const Tensor<double>& V,
                          const Tensor<double>& dO) {
  todo();  // ... return {.dV = ..., .dA = ..., .dS = ..., .dQ = ..., .dK = ...};
}
