// D_i = Σ_j A_ij dA_ij, and dA_ij = dO_i · v_j. The factor dO_i does not depend on j, so it can be moved
// out of the sum: D_i = dO_i · (Σ_j A_ij v_j), and the sum in brackets is the output o_i. Hence D_i = dO_i
// · o_i. For each query, the second way reads two rows of d_v numbers instead of two rows of n_k numbers,
// and it needs neither A nor dA, which a fused kernel never stores. So the kernel can compute D first, in
// one pass, and then compute A and dA again block by block.
#include "exercise.hpp"

Tensor<double> d_from_weights(const Tensor<double>& A, const Tensor<double>& dA) {
  return sum(A * dA, -1, true);
}

Tensor<double> d_from_output(const Tensor<double>& dO, const Tensor<double>& O) {
  return sum(dO * O, -1, true);
}
