// 10  dV, dA, dS, dQ, dK                                           (The backward pass, written out)
//
// S = Q Kᵀ / √d_k, A = softmax(S) along each row, O = A V. Q is (n_q, d_k), K (n_k, d_k), V (n_k,
// d_v). The gradient dO, (n_q, d_v), arrives. Return all gradients on the way back, each of the
// shape of what it belongs to. The check holds dQ, dK and dV against the tape, which differentiates
// the forward pass on its own.
#include "exercise.hpp"

Backward backward_by_hand(const Tensor<double>& Q, const Tensor<double>& K, const Tensor<double>& V,
                          const Tensor<double>& dO) {
  todo();  // ... return {.dV = ..., .dA = ..., .dS = ..., .dQ = ..., .dK = ...};
}
