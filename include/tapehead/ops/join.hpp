#pragma once
#include <initializer_list>
#include <vector>

#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

namespace detail {
// A list whose parts differ in element type is one of these.
struct AnyPart {
  template <class E> AnyPart(const Tensor<E>&);
};
template <int never> Tensor<float> mixed() {
  static_assert(never != 0, "the element types differ: convert the parts with to<float>(x) or to<double>(x)");
  return {};
}
}  // namespace detail

/// The tensors one after the other along an axis: cat({a, b}, 1), or a std::vector of them. ShapeError where another
/// size differs, ValueError for no tensors.
template <class E> Tensor<E> cat(const std::vector<Tensor<E>>& parts, int axis = 0);
template <class E> Tensor<E> cat(std::initializer_list<Tensor<E>> parts, int axis = 0) {
  return cat(std::vector<Tensor<E>>(parts), axis);
}
template <int never = 0> Tensor<float> cat(std::initializer_list<detail::AnyPart>, int = 0) {
  return detail::mixed<never>();
}
/// The tensors side by side along a new axis. All of one shape.
template <class E> Tensor<E> stack(const std::vector<Tensor<E>>& parts, int axis = 0);
template <class E> Tensor<E> stack(std::initializer_list<Tensor<E>> parts, int axis = 0) {
  return stack(std::vector<Tensor<E>>(parts), axis);
}
template <int never = 0> Tensor<float> stack(std::initializer_list<detail::AnyPart>, int = 0) {
  return detail::mixed<never>();
}
/// Views of `size` positions each along an axis, the last one shorter where it does not divide; or of the
/// given sizes, which must add up. The reverse of cat.
template <class E> std::vector<Tensor<E>> split(const Tensor<E>& x, std::int64_t size, int axis = 0);
template <class E>
std::vector<Tensor<E>> split(const Tensor<E>& x, const std::vector<std::int64_t>& sizes, int axis = 0);

}  // namespace tapehead
