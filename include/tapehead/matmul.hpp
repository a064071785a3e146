#pragma once
#include <concepts>

#include "tapehead/tensor.hpp"

namespace tapehead {

/// The matrix product, in all of torch.matmul's forms: (m, k) @ (k, n); batches in front broadcast; a one-dimensional
/// operand is a row on the left and a column on the right, and its axis disappears. An empty inner axis gives zeros.
/// float accumulates in float: each element is off by at most about k ε Σ|a||b|. Throws ShapeError where the
/// inner sizes differ.
template <std::floating_point T> Tensor<T> matmul(const Tensor<T>& A, const Tensor<T>& B);

}  // namespace tapehead
