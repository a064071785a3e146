// 18  The fused kernel's backward pass, for one query              (The backward pass, written out)
//
// The forward pass of exercise 14 stores no weights. It leaves two numbers for the query: lse = log
// Σ exp(s_j) over its scores, and D = dO · o. Given q, (d_k,), K, (n, d_k), V, (n, d_v), the
// gradient dO, (d_v,), and these two, return what this query contributes: dq, (d_k,), dK, (n, d_k),
// dV, (n, d_v). Rebuild the weights without a new softmax.
#include "exercise.hpp"

RowGradients flash_backward_row(const Tensor<double>& q, const Tensor<double>& K, const Tensor<double>& V,
                                const Tensor<double>& dO, double lse, double D) {
  todo();  // ... return {.dq = ..., .dK = ..., .dV = ...};
}
