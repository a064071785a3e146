#pragma once
#include "tapehead/tensor/tensor.hpp"

// How far a softmax is saturated, and how much gradient still passes it. A softmax is saturated if one weight is
// nearly 1; then the other weights and the whole Jacobian are nearly 0.

namespace chapter {

/// diag(a) - a aᵀ of the weights a = softmax(s): J[m, l] = ∂a_m / ∂s_l = a_m (δ_ml - a_l).
tapehead::Tensor<double> softmax_jacobian(const tapehead::Tensor<double>& a);

/// For a matrix of weights, the mean over its rows of the largest weight, and of the Jacobian's Frobenius norm (the root
/// of the sum of its squared entries).
double largest_weight(const tapehead::Tensor<double>& A);
double jacobian_norm(const tapehead::Tensor<double>& A);

}  // namespace chapter
