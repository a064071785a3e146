#pragma once

#include "tapehead/tensor/tensor.hpp"

// Choosing between values by a mask. A value that is not chosen is never read into the result: its NaN or infinity
// reaches neither the result nor a gradient.

namespace tapehead {

/// a where the mask is true, b elsewhere; the three shapes broadcast, and a or b may be a number. Each receives the
/// gradient where it was chosen.
template <class E> Tensor<E> where(const Tensor<bool>& mask, const Tensor<E>& a, const Like<E>& b);
template <class E, Number N> Tensor<E> where(const Tensor<bool>& mask, const Tensor<E>& a, N b) {
  return where(mask, a, scalar<E>(detail::as<E>(b)));
}
template <class E, Number N> Tensor<E> where(const Tensor<bool>& mask, N a, const Tensor<E>& b) {
  return where(mask, scalar<E>(detail::as<E>(a)), b);
}
/// `value` where the mask is true, x elsewhere. The mask broadcasts to x's shape; ShapeError where it does
/// not.
template <class E> Tensor<E> masked_fill(const Tensor<E>& x, const Tensor<bool>& mask, NumberFor<E> value);
/// The elements (…, i, j) with j <= i + diagonal (tril) or j >= i + diagonal (triu), zeros elsewhere. Rank 2
/// or more.
template <class E> Tensor<E> tril(const Tensor<E>& x, std::int64_t diagonal = 0);
template <class E> Tensor<E> triu(const Tensor<E>& x, std::int64_t diagonal = 0);

}  // namespace tapehead
