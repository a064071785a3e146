#pragma once
#include "tapehead/tensor/tensor.hpp"

// Picking elements by tensors of indices. An index runs from 0; a negative one throws, since in data it is
// more often a padding mark than a place counted from the end. Gradients of repeated indices add up.

namespace tapehead {

/// y[i][j] = x[i][index[i][j]] for axis 1, and likewise along any axis and rank. index has x's rank and, on
/// the other axes, at most x's sizes; y has its shape. Throws ShapeError and IndexError.
template <class E> Tensor<E> gather(const Tensor<E>& x, int axis, const Tensor<std::int64_t>& index);
/// x with src[i][j] added at [i][index[i][j]], for axis 1: what gather's gradient is made of. src has index's
/// shape. Repeated indices accumulate (in double).
template <class T>
Real<T> scatter_add(const Tensor<T>& x, int axis, const Tensor<std::int64_t>& index, const Like<T>& src);

/// The positions of an axis that a one-dimensional index names, in its order: rows of a matrix, say.
template <class E> Tensor<E> index_select(const Tensor<E>& x, int axis, const Tensor<std::int64_t>& index);
/// x with position i of src (along the axis) added at position index[i].
template <class T>
Real<T> index_add(const Tensor<T>& x, int axis, const Tensor<std::int64_t>& index, const Like<T>& src);

/// Row index[…] of the weight, (vocabulary, …), for each index: (index's shape, the rest of the weight's).
template <class T> Real<T> embedding(const Tensor<std::int64_t>& index, const Tensor<T>& weight);

/// Sums of the elements up to and including each position of an axis; float accumulates in double.
template <class T> Numeric<T> cumsum(const Tensor<T>& x, int axis);

template <class T> struct TopK {
  Tensor<T> values;              ///< from the largest down
  Tensor<std::int64_t> indices;  ///< where they stood
};
/// The k largest along an axis, without sorting the rest. Among equals the first comes first; NaN counts as
/// largest. Throws ValueError where the axis has fewer than k.
template <class T> Real<T, TopK<T>> topk(const Tensor<T>& x, std::int64_t k, int axis = -1);

/// 1 at each index and 0 elsewhere, along a new last axis of `classes`.
template <class E = std::int64_t> Tensor<E> one_hot(const Tensor<std::int64_t>& index, std::int64_t classes);

}  // namespace tapehead
