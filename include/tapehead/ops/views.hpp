#pragma once
#include <vector>

#include "tapehead/autograd/accumulate.hpp"
#include "tapehead/tensor/tensor.hpp"

// The same elements under another shape. Each is a view (no copy) wherever strides can say it, is recorded on
// the tape like any operation, and works for every element type. Where a member of Tensor has the
// same name, the function calls it.

namespace tapehead {

/// The elements in row-major order under a new shape; one size may be -1 and is worked out. Copies when the
/// elements are not stored so that strides can say it (a transposed tensor, say). ShapeError when the counts
/// differ.
template <class E> Tensor<E> reshape(const Tensor<E>& x, const Shape& shape) { return x.reshape(shape); }
template <class E> Tensor<E> transpose(const Tensor<E>& x, int axis0, int axis1) { return x.transpose(axis0, axis1); }
/// The last two axes swapped: the transpose of each matrix in a batch.
template <class E> Tensor<E> mT(const Tensor<E>& x) { return transpose(x, -2, -1); }
/// Axis i of the result is axis axes[i] of x. Each axis once; negative ones count from the end.
template <class E> Tensor<E> permute(const Tensor<E>& x, const std::vector<int>& axes) { return x.permute(axes); }
/// Elements start, start + step, … before stop along an axis. Negative bounds count from the end and bounds
/// beyond it are cut, as in NumPy; step must be positive.
template <class E>
Tensor<E> slice(const Tensor<E>& x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1) {
  return x.slice(axis, start, stop, step);
}
/// One position along an axis, which disappears.
template <class E> Tensor<E> select(const Tensor<E>& x, int axis, std::int64_t index) { return x.select(axis, index); }
template <class E> Tensor<E> flip(const Tensor<E>& x, int axis);
/// A new axis of size 1 before `axis` (-1: at the end); or one of size 1 taken away.
template <class E> Tensor<E> unsqueeze(const Tensor<E>& x, int axis) { return x.unsqueeze(axis); }
template <class E> Tensor<E> squeeze(const Tensor<E>& x, int axis) { return x.squeeze(axis); }
/// The same values in memory of their own, under an identity of their own: a second parameter that starts like x.
template <class E> Tensor<E> clone(const Tensor<E>& x);
/// The same values stored row after row: x itself where they are so already, a clone otherwise.
template <class E> Tensor<E> contiguous(const Tensor<E>& x) { return x.is_contiguous() ? x : clone(x); }
/// The reverse of slice: zeros of the given shape with x at positions start, start + step, … of an axis.
template <class E>
Tensor<E> unslice(const Tensor<E>& x, const Shape& shape, int axis, std::int64_t start, std::int64_t step = 1);

}  // namespace tapehead
