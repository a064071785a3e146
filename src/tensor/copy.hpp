#pragma once
#include "tapehead/tensor/tensor.hpp"

// Copies that no tape records, for the library's own use. What a reader calls is to(), contiguous() and clone() in ops.

namespace tapehead::detail {

/// The elements of x stored row after row in memory of their own.
template <class E> Tensor<E> copied(const Tensor<E>& x);

/// The elements of x stored row after row: x itself where they are so already, a copy otherwise. To read from.
template <class E> Tensor<E> dense(const Tensor<E>& x) { return x.is_contiguous() ? x : copied(x); }

/// The same values as another element type; bool becomes 0 and 1, and what is not 0 becomes true. Throws ValueError
/// where a value does not fit an int64.
template <class To, class From> Tensor<To> cast(const Tensor<From>& x);

}  // namespace tapehead::detail
