#pragma once
#include <optional>
#include <type_traits>

#include "tapehead/tensor/real.hpp"

namespace tapehead {

/// The matrix product, in all of torch.matmul's forms: (m, k) @ (k, n); batches in front broadcast; a
/// one-dimensional operand is a row on the left and a column on the right, and its axis disappears. An empty
/// inner axis gives zeros. float accumulates in float: each element is off by at most about k ε Σ|a||b|.
/// Throws ShapeError where the inner sizes differ.
template <class T> Real<T> matmul(const Tensor<T>& A, const Tensor<T>& B);
template <class T, class U> Mixed<T, U> matmul(const Tensor<T>& A, const Tensor<U>& B);

/// x Wᵀ + b, torch.nn.functional.linear: x is (…, in), W (out, in), b (out,) or left out; the result is (…,
/// out). One record where matmul(x, W.T()) + b has three, and one pass less through the result. Throws
/// ShapeError where they do not fit.
template <class T>
Real<T> linear(const Tensor<T>& x, const Tensor<T>& W, const std::type_identity_t<std::optional<Tensor<T>>>& b = {});

}  // namespace tapehead
