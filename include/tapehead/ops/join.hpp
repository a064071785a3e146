#pragma once
#include <initializer_list>
#include <vector>

#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

/// The tensors one after the other along an axis: cat({a, b}, 1), or a std::vector of them. ShapeError where another
/// size differs, ValueError for no tensors.
template <class E> Tensor<E> cat(const std::vector<Tensor<E>>& parts, int axis = 0);
template <class E> Tensor<E> cat(std::initializer_list<Tensor<E>> parts, int axis = 0) {
  return cat(std::vector<Tensor<E>>(parts), axis);
}
/// The tensors side by side along a new axis. All of one shape.
template <class E> Tensor<E> stack(const std::vector<Tensor<E>>& parts, int axis = 0);
template <class E> Tensor<E> stack(std::initializer_list<Tensor<E>> parts, int axis = 0) {
  return stack(std::vector<Tensor<E>>(parts), axis);
}
/// Views of `size` positions each along an axis, the last one shorter where it does not divide; or of the
/// given sizes, which must add up. The reverse of cat.
template <class E> std::vector<Tensor<E>> split(const Tensor<E>& x, std::int64_t size, int axis = 0);
template <class E>
std::vector<Tensor<E>> split(const Tensor<E>& x, const std::vector<std::int64_t>& sizes, int axis = 0);

}  // namespace tapehead
