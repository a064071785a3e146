#pragma once
#include "tapehead/tensor/tensor.hpp"

// The three operations that backward() itself performs: gradients that arrive along several paths are added, and the
// gradient of a broadcast tensor is summed to the shape that it had. They are each other's pullbacks.

namespace tapehead {

/// a + b, broadcasting. int64 wraps around.
template <class T> Numeric<T> add(const Tensor<T>& a, const Like<T>& b);

/// x summed over the axes along which `shape` broadcasts to x's shape. float accumulates in double. Throws ShapeError
/// where `shape` does not broadcast to x's.
template <class T> Real<T> sum_to(const Tensor<T>& x, const Shape& shape);

/// x repeated along new leading axes and axes of size 1, as a view without a copy: PyTorch's expand. Throws ShapeError
/// where x's shape does not broadcast to `shape`.
template <class E> Tensor<E> broadcast_to(const Tensor<E>& x, const Shape& shape);

}  // namespace tapehead
