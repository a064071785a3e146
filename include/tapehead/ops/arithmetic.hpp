#pragma once
#include <type_traits>

#include "tapehead/autograd/accumulate.hpp"
#include "tapehead/tensor/tensor.hpp"

// Arithmetic and comparison, element by element. Two shapes broadcast: aligned from the right, each size is equal, or 1
// on one side (NumPy's rule); ShapeError otherwise. A number on either side stands for a zero-dimensional tensor.

namespace tapehead {

// What the operators call.
template <class T> Numeric<T> sub(const Tensor<T>& a, const Like<T>& b);
template <class T> Numeric<T> mul(const Tensor<T>& a, const Like<T>& b);
template <class T> Real<T> div(const Tensor<T>& a, const Like<T>& b);
template <class T> Numeric<T> neg(const Tensor<T>& x);
template <class T> Numeric<T> add(const Tensor<T>& x, NumberFor<T> c);
template <class T> Numeric<T> mul(const Tensor<T>& x, NumberFor<T> s);
template <class T> Real<T> div(const Tensor<T>& x, std::type_identity_t<T> s);

/// The larger (smaller) of two; NaN where either is NaN. A tie splits the gradient in halves.
template <class T> Real<T> maximum(const Tensor<T>& a, const Like<T>& b);
template <class T> Real<T> minimum(const Tensor<T>& a, const Like<T>& b);
/// a to the power b. At a = 0 the gradients are what the formulas give, infinite or NaN, with two exceptions,
/// PyTorch's: da is 0 where b = 0, and db is 0 where b >= 0.
template <class T> Real<T> pow(const Tensor<T>& a, const Like<T>& b);
template <class T> Real<T> pow(const Tensor<T>& x, std::type_identity_t<T> exponent);

// Comparisons give a bool tensor, to be used as a mask; they carry no gradient.
template <class T> Tensor<bool> eq(const Tensor<T>& a, const Like<T>& b);
template <class T> Tensor<bool> ne(const Tensor<T>& a, const Like<T>& b);
template <class T> Numeric<T, Tensor<bool>> lt(const Tensor<T>& a, const Like<T>& b);
template <class T> Numeric<T, Tensor<bool>> le(const Tensor<T>& a, const Like<T>& b);
template <class T> Tensor<bool> gt(const Tensor<T>& a, const Like<T>& b) { return lt(b, a); }
template <class T> Tensor<bool> ge(const Tensor<T>& a, const Like<T>& b) { return le(b, a); }
Tensor<bool> operator&(const Tensor<bool>& a, const Tensor<bool>& b);
Tensor<bool> operator|(const Tensor<bool>& a, const Tensor<bool>& b);
Tensor<bool> operator~(const Tensor<bool>& x);

/// Whether two tensors have one shape and equal elements; NaN equals nothing.
template <class E> bool equal(const Tensor<E>& a, const Like<E>& b);
/// Whether |a - b| <= atol + rtol |b| everywhere, shapes broadcasting, as numpy.allclose: infinities are close only to
/// themselves, and NaN is close to nothing, or to NaN with equal_nan.
template <class T> Real<T, bool> allclose(const Tensor<T>& a, const Like<T>& b, double rtol = 1e-5, double atol = 1e-8,
                                          bool equal_nan = false);

/// The same values as another element type; bool becomes 0 and 1. Throws GradientError for a float or double
/// tensor that a tape knows (its gradient would be lost: detach it first). Throws ValueError where a value
/// does not fit an int64.
template <class To, class From> Tensor<To> to(const Tensor<From>& x);

namespace detail {
template <class T> Tensor<T>& rebind(const char* op, Tensor<T>& w, Tensor<T> result);
}  // namespace detail

// NAME for two tensors, and for a number on the right or on the left; tensors of two element types are refused.
#define TAPEHEAD_NUMBERS(RESULT, NAME, RIGHT, LEFT)                        \
  template <class T, Number N> RESULT NAME(const Tensor<T>& a, N number) { \
    const T c = detail::as<T>(number);                                     \
    return RIGHT;                                                          \
  }                                                                        \
  template <class T, Number N> RESULT NAME(N number, const Tensor<T>& a) { \
    const T c = detail::as<T>(number);                                     \
    return LEFT;                                                           \
  }                                                                        \
  template <class T, class U>                                              \
  requires(!std::is_same_v<T, U>) RESULT NAME(const Tensor<T>& a, const Tensor<U>& b) { return NAME(a, Tensor<T>(b)); }
#define TAPEHEAD_OPERATOR(RESULT, NAME, FUNCTION, RIGHT, LEFT)                                      \
  template <class T> RESULT NAME(const Tensor<T>& a, const Tensor<T>& b) { return FUNCTION(a, b); } \
  TAPEHEAD_NUMBERS(RESULT, NAME, RIGHT, LEFT)
TAPEHEAD_OPERATOR(Tensor<T>, operator+, add, add(a, c), add(a, c))
TAPEHEAD_OPERATOR(Tensor<T>, operator-, sub, add(a, -c), sub(scalar<T>(c), a))
TAPEHEAD_OPERATOR(Tensor<T>, operator*, mul, mul(a, c), mul(a, c))
TAPEHEAD_OPERATOR(Tensor<T>, operator/, div, div(a, c), div(scalar<T>(c), a))
#define TAPEHEAD_COMPARISON(SYMBOL, NAME, FLIPPED)                                      \
  TAPEHEAD_NUMBERS(Tensor<bool>, NAME, NAME(a, scalar<T>(c)), FLIPPED(a, scalar<T>(c))) \
  TAPEHEAD_OPERATOR(Tensor<bool>, operator SYMBOL, NAME, NAME(a, scalar<T>(c)), FLIPPED(a, scalar<T>(c)))
TAPEHEAD_COMPARISON(==, eq, eq)
TAPEHEAD_COMPARISON(!=, ne, ne)
TAPEHEAD_COMPARISON(<, lt, gt)
TAPEHEAD_COMPARISON(<=, le, ge)
TAPEHEAD_COMPARISON(>, gt, lt)
TAPEHEAD_COMPARISON(>=, ge, le)
TAPEHEAD_NUMBERS(Real<T>, maximum, maximum(a, scalar<T>(c)), maximum(a, scalar<T>(c)))
TAPEHEAD_NUMBERS(Real<T>, minimum, minimum(a, scalar<T>(c)), minimum(a, scalar<T>(c)))
#undef TAPEHEAD_COMPARISON
#undef TAPEHEAD_OPERATOR
#undef TAPEHEAD_NUMBERS
template <class T> Tensor<T> operator-(const Tensor<T>& x) { return neg(x); }
/// w -= 0.1 * grad[w] means w = w - 0.1 * grad[w]: it gives the name w to a new tensor of the same shape. The old one
/// stays as it is for all that hold it: copies of w, views, and a tape that saved it. (A tape that watches w watches the
/// old tensor, so take the next gradient with a new tape.) ShapeError where broadcasting would change w's shape.
template <class T, class B> Tensor<T>& operator+=(Tensor<T>& w, const B& b) { return detail::rebind("+=", w, w + b); }
template <class T, class B> Tensor<T>& operator-=(Tensor<T>& w, const B& b) { return detail::rebind("-=", w, w - b); }
template <class T, class B> Tensor<T>& operator*=(Tensor<T>& w, const B& b) { return detail::rebind("*=", w, w * b); }
template <class T, class B> Tensor<T>& operator/=(Tensor<T>& w, const B& b) { return detail::rebind("/=", w, w / b); }
template <class T, Number N> Real<T> pow(N base, const Tensor<T>& exponent) {
  return pow(scalar<T>(detail::as<T>(base)), exponent);
}

}  // namespace tapehead
