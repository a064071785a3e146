#pragma once
#include "tapehead/tensor/tensor.hpp"

// Copies that no tape records, for the library's own use. What a reader calls is to(), contiguous() and clone() in ops.

namespace tapehead::detail {

/// The elements of x stored row after row in memory of their own.
template <class E> Tensor<E> copied(const Tensor<E>& x);

/// The elements of x stored row after row: x itself where they are so already, a copy otherwise. To read from.
template <class E> Tensor<E> dense(const Tensor<E>& x) { return x.is_contiguous() ? x : copied(x); }

/// Whether no other tensor has or shows these elements; false for a default tensor, which has none.
template <class E> bool unshared(const Tensor<E>& x) {
  const Header& h = x.header();
  return h.storage != nullptr && h.owners.load(std::memory_order_acquire) == 1 &&
         h.storage->owners.load(std::memory_order_acquire) == 1;
}

/// The same values as another element type; bool becomes 0 and 1, and what is not 0 becomes true. Throws ValueError
/// where a value does not fit an int64.
template <class To, class From> Tensor<To> cast(const Tensor<From>& x);

}  // namespace tapehead::detail
