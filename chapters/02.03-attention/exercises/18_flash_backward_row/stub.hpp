// 18  The fused kernel's backward pass, for one query             (The backward pass, written out)
//
// The forward pass of exercise 14 stores no weights. It keeps two numbers for the query: lse =
// log Σ exp(s_j) over the scores of all keys, and D = dO · o. K, (n, d_k), and V, (n, d_v), are
// one block of the keys and values: there may be others, which count in lse and D. Given q,
// (d_k,), this block, the gradient dO, (d_v,), and the two numbers, return what this query and
// this block contribute to the gradients: dq, (d_k,), dK, (n, d_k), and dV, (n, d_v). Compute
// the weights again from lse, without a new softmax.
#include "exercise.hpp"

RowGradients flash_backward_row(const Tensor<double>& q, const Tensor<double>& K, const Tensor<double>& V,
                                const Tensor<double>& dO, double lse, double D) {
  todo();  // ... return {.dq = ..., .dK = ..., .dV = ...};
}
