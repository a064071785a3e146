#pragma once
#include <concepts>

#include "tapehead/tensor/real.hpp"

// Broadcasting arithmetic and comparison. Two operands align from the right; each size is equal, or 1 on one
// side (NumPy's rule); ShapeError otherwise. A number stands for a zero-dimensional tensor.

namespace tapehead {

template <class T>
Tensor<T> add(const Tensor<T>& a, const Tensor<T>& b);
template <class T>
Tensor<T> sub(const Tensor<T>& a, const Tensor<T>& b);
template <class T>
Tensor<T> mul(const Tensor<T>& a, const Tensor<T>& b);
template <class T>
Real<T> div(const Tensor<T>& a, const Tensor<T>& b);
template <class T>
Tensor<T> neg(const Tensor<T>& x);
/// x s + c, one record: what `x * 2`, `x / 2` (by division), `x + 1`, `1 - x` are made of.
template <class T>
Tensor<T> add(const Tensor<T>& x, std::type_identity_t<T> c);
template <class T>
Tensor<T> mul(const Tensor<T>& x, std::type_identity_t<T> s);
template <class T>
Real<T> div(const Tensor<T>& x, std::type_identity_t<T> s);

/// The larger (smaller) of two, element by element; NaN where either is. A tie splits the gradient in halves.
template <class T>
Real<T> maximum(const Tensor<T>& a, const Tensor<T>& b);
template <class T>
Real<T> minimum(const Tensor<T>& a, const Tensor<T>& b);
/// a to the power b. At a = 0 with b <= 0 the gradients are what the formulas give: infinite or NaN.
template <class T>
Real<T> pow(const Tensor<T>& a, const Tensor<T>& b);
template <class T>
Real<T> pow(const Tensor<T>& x, std::type_identity_t<T> exponent);

// Comparisons give a bool tensor, to be used as a mask; they carry no gradient.
template <class T>
Tensor<bool> eq(const Tensor<T>& a, const Tensor<T>& b);
template <class T>
Tensor<bool> ne(const Tensor<T>& a, const Tensor<T>& b);
template <class T>
Tensor<bool> lt(const Tensor<T>& a, const Tensor<T>& b);
template <class T>
Tensor<bool> le(const Tensor<T>& a, const Tensor<T>& b);
Tensor<bool> operator&(const Tensor<bool>& a, const Tensor<bool>& b);
Tensor<bool> operator|(const Tensor<bool>& a, const Tensor<bool>& b);
Tensor<bool> operator~(const Tensor<bool>& x);

/// Whether two tensors have one shape and equal elements; NaN equals nothing.
template <class E>
bool equal(const Tensor<E>& a, const Tensor<E>& b);
/// Whether |a - b| <= atol + rtol |b| everywhere, shapes broadcasting (numpy.allclose); NaN is close to
/// nothing.
template <std::floating_point T>
bool allclose(const Tensor<T>& a, const Tensor<T>& b, double rtol = 1e-5, double atol = 1e-8);

namespace detail {
// A number that can stand beside elements of type T: any for float and double, whole ones for int64.
template <class N, class T>
concept Scalar = Number<N> &&(std::is_floating_point_v<T> || std::is_integral_v<N>);
template <class T, class U>
concept Mixed = !std::is_same_v<T, U>;
}  // namespace detail

template <class T>
Tensor<T> operator+(const Tensor<T>& a, const Tensor<T>& b) {
  return add(a, b);
}
template <class T>
Tensor<T> operator-(const Tensor<T>& a, const Tensor<T>& b) {
  return sub(a, b);
}
template <class T>
Tensor<T> operator*(const Tensor<T>& a, const Tensor<T>& b) {
  return mul(a, b);
}
template <class T>
Tensor<T> operator/(const Tensor<T>& a, const Tensor<T>& b) {
  return div(a, b);
}
template <class T>
Tensor<T> operator-(const Tensor<T>& x) {
  return neg(x);
}

template <class T, detail::Scalar<T> N>
Tensor<T> operator+(const Tensor<T>& x, N c) {
  return add(x, static_cast<T>(c));
}
template <class T, detail::Scalar<T> N>
Tensor<T> operator+(N c, const Tensor<T>& x) {
  return add(x, static_cast<T>(c));
}
template <class T, detail::Scalar<T> N>
Tensor<T> operator-(const Tensor<T>& x, N c) {
  return add(x, -static_cast<T>(c));
}
template <class T, detail::Scalar<T> N>
Tensor<T> operator-(N c, const Tensor<T>& x) {
  return sub(scalar<T>(static_cast<T>(c)), x);
}
template <class T, detail::Scalar<T> N>
Tensor<T> operator*(const Tensor<T>& x, N s) {
  return mul(x, static_cast<T>(s));
}
template <class T, detail::Scalar<T> N>
Tensor<T> operator*(N s, const Tensor<T>& x) {
  return mul(x, static_cast<T>(s));
}
template <class T, detail::Scalar<T> N>
Tensor<T> operator/(const Tensor<T>& x, N s) {
  return div(x, static_cast<T>(s));
}
template <class T, detail::Scalar<T> N>
Tensor<T> operator/(N s, const Tensor<T>& x) {
  return div(scalar<T>(static_cast<T>(s)), x);
}

template <class T>
Tensor<bool> operator<(const Tensor<T>& a, const Tensor<T>& b) {
  return lt(a, b);
}
template <class T>
Tensor<bool> operator<=(const Tensor<T>& a, const Tensor<T>& b) {
  return le(a, b);
}
template <class T>
Tensor<bool> operator>(const Tensor<T>& a, const Tensor<T>& b) {
  return lt(b, a);
}
template <class T>
Tensor<bool> operator>=(const Tensor<T>& a, const Tensor<T>& b) {
  return le(b, a);
}
template <class T, detail::Scalar<T> N>
Tensor<bool> operator<(const Tensor<T>& a, N b) {
  return lt(a, scalar<T>(static_cast<T>(b)));
}
template <class T, detail::Scalar<T> N>
Tensor<bool> operator<=(const Tensor<T>& a, N b) {
  return le(a, scalar<T>(static_cast<T>(b)));
}
template <class T, detail::Scalar<T> N>
Tensor<bool> operator>(const Tensor<T>& a, N b) {
  return lt(scalar<T>(static_cast<T>(b)), a);
}
template <class T, detail::Scalar<T> N>
Tensor<bool> operator>=(const Tensor<T>& a, N b) {
  return le(scalar<T>(static_cast<T>(b)), a);
}

// clang-format off
template <class T, detail::Mixed<T> U> void operator+(const Tensor<T>&, const Tensor<U>&) = delete;  // element types differ: convert one, to<float>(x) or to<double>(x)
template <class T, detail::Mixed<T> U> void operator-(const Tensor<T>&, const Tensor<U>&) = delete;  // element types differ: convert one, to<float>(x) or to<double>(x)
template <class T, detail::Mixed<T> U> void operator*(const Tensor<T>&, const Tensor<U>&) = delete;  // element types differ: convert one, to<float>(x) or to<double>(x)
template <class T, detail::Mixed<T> U> void operator/(const Tensor<T>&, const Tensor<U>&) = delete;  // element types differ: convert one, to<float>(x) or to<double>(x)
// clang-format on

/// The same values as another element type; bool becomes 0 and 1. Throws GradientError for a float or double
/// tensor that a tape knows (its gradient would be lost: detach it first). Throws ValueError where a value
/// does not fit an int64.
template <class To, class From>
Tensor<To> to(const Tensor<From>& x);

}  // namespace tapehead
