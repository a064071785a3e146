#pragma once
#include "tapehead/autograd/tape.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace detail {
template <class T> Tensor<T> jacobian_of(const Tape<T>& tape, const Tensor<T>& y, const Tensor<T>& x);
template <class T> Tensor<T> gradient_of(const Tape<T>& tape, const Tensor<T>& y, const Tensor<T>& x);
}  // namespace detail

/// ∂yᵢ/∂xⱼ of y = f(x), of shape (y's shape, x's shape), by one backward pass for each element of y. It is recorded
/// on outer tapes, so it can be differentiated. f is called with a copy of x: where f has captured x itself, that
/// one is a constant. Throws ShapeError where the two ranks together exceed six.
template <class T, class F> Tensor<T> jacobian(const F& f, const Tensor<T>& x) {
  const Tensor<T> at = clone(x);
  Tape<T> tape;
  tape.watch(at);
  return detail::jacobian_of<T>(tape, f(at), at);
}

/// ∂²y/∂xᵢ∂xⱼ of y = f(x), which must have one element: the Jacobian of the gradient, of shape (x's shape,
/// x's shape). As for jacobian, an x that f has captured is a constant.
template <class T, class F> Tensor<T> hessian(const F& f, const Tensor<T>& x) {
  return jacobian(
      [&f](const Tensor<T>& at) {
        Tape<T> tape;
        tape.watch(at);
        return detail::gradient_of<T>(tape, f(at), at);
      },
      x);
}

}  // namespace tapehead
