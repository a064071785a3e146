// a_j = exp(s_j) / Σ exp(s) = exp(s_j - lse). This needs neither the largest score nor the sum, so each
// block of keys can be processed by itself, in any order. The rest is exercise 10 for one row: dV_j = a_j
// dO, dA_j = dO · v_j, dS_j = a_j (dA_j - D), dq = Σ_j dS_j k_j / √d_k, dK_j = dS_j q / √d_k. A kernel
// adds dq over all blocks, and dK and dV over all queries.
#include "exercise.hpp"

RowGradients flash_backward_row(const Tensor<double>& q, const Tensor<double>& K, const Tensor<double>& V,
                                const Tensor<double>& dO, double lse, double D) {
  const double root = std::sqrt(static_cast<double>(q.size(0)));
  const auto a = exp(matmul(K, q) / root - lse);
  const auto dS = a * (matmul(V, dO) - D);
  return {.dq = matmul(dS, K) / root, .dK = unsqueeze(dS, 1) * q / root, .dV = unsqueeze(a, 1) * dO};
}
