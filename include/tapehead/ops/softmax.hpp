#pragma once
#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

/// What a softmax over nothing but -inf gives: NaN, as mathematics says, or zeros, as attention wants of a
/// query that may attend to nothing.
enum class EmptyRows { nan, zero };

/// exp(x) / Σ exp(x) along an axis, the largest subtracted first so that nothing overflows.
template <class T> Real<T> softmax(const Tensor<T>& x, int axis, EmptyRows empty = EmptyRows::nan);
/// A ⊙ (dA - Σ dA ⊙ A) along an axis: the gradient of softmax's input from that of its result A. Both have one
/// shape; ShapeError otherwise.
template <class T> Real<T> softmax_backward(const Tensor<T>& A, const Like<T>& dA, int axis);
/// log softmax(x), without passing through a softmax that may have underflowed to 0.
template <class T> Real<T> log_softmax(const Tensor<T>& x, int axis);
/// log Σ exp(x) along an axis; of nothing but -inf it is -inf, with gradient 0.
template <class T> Real<T> logsumexp(const Tensor<T>& x, int axis, bool keepdims = false);

}  // namespace tapehead
