#pragma once
#include "tapehead/autograd/accumulate.hpp"
#include "tapehead/tensor/tensor.hpp"

// Reductions over all axes, one axis or a list: sum(x), sum(x, -1), sum(x, {0, 2}, true). With keepdims the
// reduced axes stay, with size 1. Sums of float accumulate in double and are rounded once.

namespace tapehead {

namespace detail {
template <class T> using MeanOf = std::conditional_t<std::is_same_v<T, bool>, double, T>;
}  // namespace detail

template <class T> Tensor<T> sum(const Tensor<T>& x, const Axes& axes = {}, bool keepdims = false);
/// The mean over nothing is NaN.
template <class T> Real<detail::MeanOf<T>> mean(const Tensor<T>& x, const Axes& axes = {}, bool keepdims = false);
/// The largest (smallest) element; NaN where any is. The gradient is split evenly among equal winners. Throws
/// ShapeError where a reduced axis is empty and something is asked of it.
template <class T> Real<T> max(const Tensor<T>& x, const Axes& axes = {}, bool keepdims = false);
template <class T> Real<T> min(const Tensor<T>& x, const Axes& axes = {}, bool keepdims = false);
/// Mean squared deviation, in two passes: the sum of squares is divided by n - correction (1: unbiased; 0:
/// biased). Throws ValueError where the correction is negative.
template <class T> Real<T> var(const Tensor<T>& x, const Axes& axes = {}, int correction = 1, bool keepdims = false);
/// √var; the gradient where it is 0 is 0.
template <class T>
Real<T> std_dev(const Tensor<T>& x, const Axes& axes = {}, int correction = 1, bool keepdims = false);
/// √(sum of squares); the gradient where it is 0 is 0.
template <class T> Real<T> norm(const Tensor<T>& x, const Axes& axes = {}, bool keepdims = false);

/// The index of the first largest (smallest) element along an axis; the first NaN comes before every number. ShapeError
/// on an empty axis.
template <class T> Numeric<T, Tensor<std::int64_t>> argmax(const Tensor<T>& x, int axis = -1, bool keepdims = false);
template <class T> Numeric<T, Tensor<std::int64_t>> argmin(const Tensor<T>& x, int axis = -1, bool keepdims = false);

/// Of bool: how many elements are true, and what part of them; whether any is, and whether all are. So the accuracy of
/// a classifier is mean(argmax(logits) == target).
Tensor<std::int64_t> sum(const Tensor<bool>& x, const Axes& axes = {}, bool keepdims = false);
Tensor<double> mean(const Tensor<bool>& x, const Axes& axes = {}, bool keepdims = false);
Tensor<bool> any(const Tensor<bool>& x, const Axes& axes = {}, bool keepdims = false);
Tensor<bool> all(const Tensor<bool>& x, const Axes& axes = {}, bool keepdims = false);

}  // namespace tapehead
