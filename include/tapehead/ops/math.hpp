#pragma once
#include <concepts>

#include "tapehead/tensor/tensor.hpp"

// Functions of one number, element by element, for float and double. NaN goes in and comes out.

namespace tapehead {

template <std::floating_point T>
Tensor<T> exp(const Tensor<T>& x);
template <std::floating_point T>
Tensor<T> log(const Tensor<T>& x);
template <std::floating_point T>
Tensor<T> sqrt(const Tensor<T>& x);  ///< the gradient at 0 is infinite: see norm()
template <std::floating_point T>
Tensor<T> abs(const Tensor<T>& x);  ///< the gradient at 0 is 0
template <std::floating_point T>
Tensor<T> tanh(const Tensor<T>& x);
template <std::floating_point T>
Tensor<T> erf(const Tensor<T>& x);
template <std::floating_point T>
Tensor<T> sigmoid(const Tensor<T>& x);
template <std::floating_point T>
Tensor<T> relu(const Tensor<T>& x);  ///< the gradient at 0 is 0

/// x Φ(x), Φ the normal distribution function (Hendrycks & Gimpel 2016); or its approximation by tanh.
enum class Gelu { erf, tanh };
template <std::floating_point T>
Tensor<T> gelu(const Tensor<T>& x, Gelu form = Gelu::erf);
/// x sigmoid(x), also called swish.
template <std::floating_point T>
Tensor<T> silu(const Tensor<T>& x);
/// x, but no less than `low` and no more than `high` (infinities leave a side open). The gradient passes at
/// the bounds themselves. Throws ValueError where low > high.
template <std::floating_point T>
Tensor<T> clamp(const Tensor<T>& x, std::type_identity_t<T> low, std::type_identity_t<T> high);

}  // namespace tapehead
