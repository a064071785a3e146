#pragma once
#include "tapehead/tensor/tensor.hpp"

// How decided a softmax is, and what that leaves of the gradient. A decided one is saturated: one weight is
// nearly 1, the others and the Jacobian are nearly 0.

namespace chapter {

/// diag(a) - a aᵀ of the weights a = softmax(s): J[m, l] = ∂a_m / ∂s_l = a_m (δ_ml - a_l).
tapehead::Tensor<double> softmax_jacobian(const tapehead::Tensor<double>& a);

/// Of a matrix of weights, row by row, the mean of: the largest one; the Jacobian's Frobenius norm |J|.
double largest_weight(const tapehead::Tensor<double>& A);
double jacobian_norm(const tapehead::Tensor<double>& A);

}  // namespace chapter
