#pragma once
#include <concepts>

#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

/// What a softmax over nothing but -inf gives: NaN, as mathematics says, or zeros, as attention wants of a
/// query that may attend to nothing.
enum class EmptyRows { nan, zero };

/// exp(x) / Σ exp(x) along an axis, the largest subtracted first so that nothing overflows.
template <std::floating_point T>
Tensor<T> softmax(const Tensor<T>& x, int axis, EmptyRows empty = EmptyRows::nan);
/// log softmax(x), without passing through a softmax that may have underflowed to 0.
template <std::floating_point T>
Tensor<T> log_softmax(const Tensor<T>& x, int axis);
/// log Σ exp(x) along an axis; of nothing but -inf it is -inf, with gradient 0.
template <std::floating_point T>
Tensor<T> logsumexp(const Tensor<T>& x, int axis, bool keepdims = false);

}  // namespace tapehead
