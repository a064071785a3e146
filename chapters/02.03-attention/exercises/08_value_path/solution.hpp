// O_ic = Σ_j A_ij V_jc. Component c of value j appears in every output i with the factor A_ij, so dV_jc =
// Σ_i A_ij dO_ic: each value receives gradient in proportion to the attention it got. Weight A_ij appears
// in all components of output i with the factors V_jc, so dA_ij = Σ_c dO_ic V_jc = dO_i · v_j: a weight
// gets a large gradient if its value points along the gradient of the output. The shapes leave no other
// choice: only one product of (n_q, n_k) and (n_q, d_v) has the shape (n_k, d_v).
#include "exercise.hpp"

Tensor<double> values_gradient(const Tensor<double>& A, const Tensor<double>& dO) {
  return matmul(A.T(), dO);
}

Tensor<double> weights_gradient(const Tensor<double>& dO, const Tensor<double>& V) {
  return matmul(dO, V.T());
}
