#pragma once
#include "tapehead/tensor/tensor.hpp"

// Functions of one number, applied to each element, for float and double. A NaN element gives NaN. The relative error
// of a first derivative is at most 8 units in the last place, in the tails too. Where the derivative of silu or of
// gelu's tanh form crosses 0 in double, the error is relative to the larger of its two terms.

namespace tapehead {

template <class T> Real<T> exp(const Tensor<T>& x);
template <class T> Real<T> expm1(const Tensor<T>& x);  ///< exp(x) - 1, exact also for small x
template <class T> Real<T> log(const Tensor<T>& x);
template <class T> Real<T> log1p(const Tensor<T>& x);  ///< log(1 + x), exact also for small x
template <class T> Real<T> sqrt(const Tensor<T>& x);   ///< the gradient at 0 is infinite: see norm()
template <class T> Real<T> abs(const Tensor<T>& x);    ///< the gradient at 0 is 0
template <class T> Real<T> sin(const Tensor<T>& x);
template <class T> Real<T> cos(const Tensor<T>& x);
template <class T> Real<T> tanh(const Tensor<T>& x);
template <class T> Real<T> erf(const Tensor<T>& x);
template <class T> Real<T> sigmoid(const Tensor<T>& x);
template <class T> Real<T> relu(const Tensor<T>& x);  ///< the gradient at 0 is 0

/// x Φ(x), Φ the normal distribution function (Hendrycks & Gimpel 2016); or its approximation by tanh.
enum class Gelu { erf, tanh };
template <class T> Real<T> gelu(const Tensor<T>& x, Gelu form);
template <class T> Real<T> gelu(const Tensor<T>& x) { return gelu(x, Gelu::erf); }
/// x sigmoid(x), also called swish.
template <class T> Real<T> silu(const Tensor<T>& x);
/// log(1 + exp(beta x)) / beta, a smooth relu, exact in both tails; x itself where beta x > threshold, where the gradient
/// is 1 (torch.nn.functional.softplus). Throws ValueError unless beta > 0.
template <class T> Real<T> softplus(const Tensor<T>& x, double beta, double threshold = 20);
template <class T> Real<T> softplus(const Tensor<T>& x) { return softplus(x, 1); }
/// x, but no less than `low` and no more than `high` (infinities leave a side open). The gradient passes at
/// the bounds themselves. Throws ValueError where low > high.
template <class T> Real<T> clamp(const Tensor<T>& x, std::type_identity_t<T> low, std::type_identity_t<T> high);

/// Which elements are NaN; which are neither NaN nor infinite.
template <class T> Real<T, Tensor<bool>> isnan(const Tensor<T>& x);
template <class T> Real<T, Tensor<bool>> isfinite(const Tensor<T>& x);

/// x rounded to so many decimals (negative: to tens, hundreds, …) as np.round does: x · 10^decimals goes to
/// the nearest integer, halves to the even one. Where that product overflows, x has no such decimals and
/// stays. For display: no tape records it, since its gradient is 0 wherever it has one.
template <class T> Real<T> round(const Tensor<T>& x, int decimals = 0);

}  // namespace tapehead
