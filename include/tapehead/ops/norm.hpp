#pragma once
#include <optional>
#include <type_traits>

#include "tapehead/tensor/tensor.hpp"

// Normalisation of each row (the last axis, of n elements). Means and squares are taken in double, in two
// passes: at a mean of 40,000 the float result is still good to a last digit.

namespace tapehead {

/// (x - mean x) / √(var x + ε) · weight + bias, with the biased variance; weight and bias are (n,) and may be
/// left out (Ba, Kiros & Hinton 2016). A row of equal elements gives 0 and a gradient of dy's deviation / √ε.
/// Throws ShapeError where weight or bias is not (n,), and ValueError on a negative ε.
template <class T>
Real<T> layer_norm(const Tensor<T>& x, const std::type_identity_t<std::optional<Tensor<T>>>& weight = {},
                   const std::type_identity_t<std::optional<Tensor<T>>>& bias = {}, double eps = 1e-5);

/// x / √(mean x² + ε) · weight (Zhang & Sennrich 2019); the weight may be left out.
template <class T> Real<T> rms_norm(const Tensor<T>& x,
                                    const std::type_identity_t<std::optional<Tensor<T>>>& weight = {},
                                    double eps = 1e-6);

}  // namespace tapehead
