// The gradient flows back through O = A V (exercise 08), through softmax (exercise 07, with D from 09),
// and through S = Q Kᵀ / √d_k. S_ij is q_i · k_j times a constant, so dq_i = Σ_j dS_ij k_j and dk_j = Σ_i
// dS_ij q_i, each divided by √d_k once more. dQ and dK have the scale, and dV does not, because only
// queries and keys pass through it.
#include "exercise.hpp"

Backward backward_by_hand(const Tensor<double>& Q, const Tensor<double>& K, const Tensor<double>& V,
                          const Tensor<double>& dO) {
  const double root = std::sqrt(static_cast<double>(Q.size(-1)));
  const auto A = softmax(matmul(Q, K.T()) / root, -1);

  const auto dV = matmul(A.T(), dO);
  const auto dA = matmul(dO, V.T());
  const auto D = sum(A * dA, -1, true);
  const auto dS = A * (dA - D);
  const auto dQ = matmul(dS, K) / root;
  const auto dK = matmul(dS.T(), Q) / root;
  return {.dV = dV, .dA = dA, .dS = dS, .dQ = dQ, .dK = dK};
}
