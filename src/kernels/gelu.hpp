#pragma once
// x Φ(x), Φ the normal distribution function, and its slope, on whole vectors.
//
// What has to be found is one tail, Φ(-a) for a = |x|; by symmetry the other is 1 - Φ(-a). It falls like
// e^(-a²/2), and what is left, Φ(-a) e^(a²/2), falls like 1/a: as r P(r) with r = 1 / (a + k) it is smooth
// all the way to infinity, and P a short polynomial (interpolated at Chebyshev's points, so that the largest
// error is nearly the least). So small results keep their digits, where 1 + erf(x / √2) would cancel. The
// slope, Φ(x) + x Φ'(x), needs the same exponential.

#include <array>
#include <cstdint>

#include "kernels/vmath.hpp"

namespace tapehead::kernels {

/// The largest errors: of gelu in units of the last place (of the least normal number where it is smaller),
/// of its slope, which is at most 1.13 and crosses 0, as an absolute one, in units of epsilon.
inline constexpr double gelu_max_ulp = 12, gelu_slope_max_epsilon = 3;

namespace detail {

/// P in s = slope r - shift, which is -1 at the end of the tail and 1 where a = 0.
template <class T>
struct Tail {
  static constexpr T k = 5, slope = 11.25, shift = 1.25, end = 40;
  static constexpr std::array<T, 23> poly = {
      0.84969577171772043,    0.70046492716831294,     0.48437498414282829,    0.27811948195866782,
      0.12948165075059558,    0.046439848471167912,    0.011238259242247342,   8.9223599831150024e-4,
      -5.3135214140072299e-4, -1.9836149533099784e-4,  4.0269212343287508e-6,  1.8309490479282254e-5,
      1.9814501492430e-6,     -1.6315859586787988e-6,  -3.1422974001250010e-7, 1.6561075724716560e-7,
      3.7413919763276517e-8,  -1.9458947733644453e-8,  -3.8216936943128150e-9, 2.2853830690747058e-9,
      3.0446083584414695e-10, -1.7962184769349555e-10, -1.3541907749555957e-11};
};
template <>
struct Tail<float> {
  static constexpr float k = 3, slope = 7.2f, shift = 1.4f, end = 15;
  static constexpr std::array<float, 11> poly = {
      0.8205716009f,   0.4914361773f,   0.1747202404f,    0.02226423713f,  -0.00756719132f, -0.00217694068f,
      6.690795048e-4f, 1.690404012e-4f, -8.728985814e-5f, -7.91458135e-6f, 8.962247087e-6f};
};

/// Φ(-|x|) = weight · bell, bell = e^(-x²/2); `near` is x held within ±`end`, where all of it has long been
/// 0.
template <class T>
struct Normal {
  Vec<T> near, weight, bell;
};
template <class T>
TAPEHEAD_INLINE Normal<T> normal(Vec<T> x) {
  using C = Tail<T>;
  const Vec<T> half = T(0.5), near = clamp(x, -C::end, C::end), a = abs(near);  // NaN stays
  // a² in two pieces: a rounding of the exponent would be multiplied by a²/2 in the result. The products of
  // a's upper and lower half are exact, with and without fused multiply-adds.
  const Vec<T> upper = from_bits<T>(bits(a) & ~((Bits<T>(1) << (sizeof(T) == 4 ? 12 : 27)) - 1)),
               lower = a - upper;
  const Vec<T> square = a * a, rest = ((upper * upper - square) + (upper + upper) * lower) + lower * lower;
  const Vec<T> e = exp(-half * square);
  const Vec<T> r = Vec<T>(T(1)) / (a + Vec<T>(C::k)), s = fma(r, Vec<T>(C::slope), Vec<T>(-C::shift));
  return {near, r * polynomial(s, C::poly), fma(-half * rest, e, e)};
}

}  // namespace detail

/// x Φ(x), to gelu_max_ulp; 0 at -∞, the limit. The bell comes last: it may be subnormal.
template <class T>
TAPEHEAD_INLINE Vec<T> gelu(Vec<T> x) {
  const auto [near, weight, bell] = detail::normal(x);
  const Vec<T> part = bell * (near * weight);
  return select(x < Vec<T>(T(0)), part, x - part);
}

/// d/dx of it, Φ(x) + x Φ'(x), to gelu_slope_max_epsilon.
template <class T>
TAPEHEAD_INLINE Vec<T> gelu_slope(Vec<T> x) {
  const auto [near, weight, bell] = detail::normal(x);
  const Vec<T> tail = weight * bell, below = select(x < Vec<T>(T(0)), tail, Vec<T>(T(1)) - tail);
  return fma(near * Vec<T>(T(0.39894228040143267794)), bell, below);  // Φ' = bell / √2π
}

/// y[i] = gelu(x[i]); y may be x.
template <class T>
void gelu_n(std::int64_t n, const T* x, T* y);
/// dx[i] = dy[i] gelu_slope(x[i]); dx may be x or dy.
template <class T>
void gelu_pull_n(std::int64_t n, const T* x, const T* dy, T* dx);

}  // namespace tapehead::kernels
