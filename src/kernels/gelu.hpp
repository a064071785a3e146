#pragma once
// The exact GELU, x Φ(x), Φ being the normal distribution function, and its slope (derivative) Φ(x) + x Φ'(x), on whole
// vectors. (The tanh form is a product of x and a sigmoid; it stands with silu in ops/math.cpp.)
//
// Both are found from one tail, a = |x|; symmetry gives the other: Φ(a) = 1 - Φ(-a), slope(a) = 1 -
// slope(-a). A tail falls like e^(-a²/2). What remains without that factor is smooth all the way to infinity
// as a function of r = 1 / (a + k), and a short polynomial approximates it (interpolated at Chebyshev's
// points, so that the largest error is nearly the least possible):
//
//     Φ(-a)     = e^(-a²/2) r P(r)
//     slope(-a) = e^(-a²/2) (a0 - a) H(r)      a0 = 0.75179…, where the slope is 0
//
// So small results keep their digits, where 1 + erf(x / √2) would cancel, and so does the slope on both sides
// of its root, where a0 - a is exact except for the rounding of a0, which has two parts.

#include <array>
#include <cstdint>

#include "kernels/vmath.hpp"

namespace tapehead::kernels {

/// The largest errors in units of the last place (of the least normal number where the result is smaller).
inline constexpr double gelu_max_ulp = 12, gelu_slope_max_ulp = 6;

namespace detail {

/// P and H in s = stretch r - shift, which is 1 where a = 0 and -1 where a = end; beyond, all results round to
/// 0.
template <class T> struct Tail {
  static constexpr T k = 5, stretch = 11.25, shift = 1.25, end = 40;
  static constexpr std::array<T, 23> P = {
      0.84969577171772043,    0.70046492716831294,     0.48437498414282829,    0.27811948195866782,
      0.12948165075059558,    0.046439848471167912,    0.011238259242247342,   8.9223599831150024e-4,
      -5.3135214140072299e-4, -1.9836149533099784e-4,  4.0269212343287508e-6,  1.8309490479282254e-5,
      1.9814501492430e-6,     -1.6315859586787988e-6,  -3.1422974001250010e-7, 1.6561075724716560e-7,
      3.7413919763276517e-8,  -1.9458947733644453e-8,  -3.8216936943128150e-9, 2.2853830690747058e-9,
      3.0446083584414695e-10, -1.7962184769349555e-10, -1.3541907749555957e-11};
  static constexpr T root = 0.75179152469356447241, root_rest = -1.4956759177009883273e-17;
  static constexpr std::array<T, 22> H = {
      0.46221124404957530,    0.093029308669761264,    0.058277909648935835,    0.031198058248858946,
      0.013940307434946906,   4.9839981538430243e-3,   1.2995724007959406e-3,   1.7870044599615394e-4,
      -2.3541451907095106e-5, -1.7015389667429628e-5,  -1.7527468947786061e-6,  1.0129363490288603e-6,
      2.7687779426172852e-7,  -6.1207978286316712e-8,  -3.0002512255364340e-8,  4.6787868606252884e-9,
      3.1175204882886225e-9,  -5.0657022124336047e-10, -3.0457348751745345e-10, 6.3194308870320127e-11,
      2.0599186314553113e-11, -5.4196946674032772e-12};
};
template <> struct Tail<float> {
  static constexpr float k = 3, stretch = 7.2f, shift = 1.4f, end = 15;
  static constexpr std::array<float, 11> P = {0.8205716009f,    0.4914361773f,   0.1747202404f,   0.02226423713f,
                                              -0.00756719132f,  -0.00217694068f, 6.690795048e-4f, 1.690404012e-4f,
                                              -8.728985814e-5f, -7.91458135e-6f, 8.962247087e-6f};
  static constexpr float root = 0.751791536808f, root_rest = -1.21144494586e-8f;
  static constexpr std::array<float, 10> H = {0.4998475405f,    0.1158443304f,    0.0420944334f,   8.044810394e-3f,
                                              -3.498972318e-4f, -4.475453814e-4f, 1.660986893e-5f, 3.279463681e-5f,
                                              -2.889527263e-6f, -2.19322863e-6f};
};

/// a = |x|, with r and s for the polynomials, and e^(-a²/2) = p 2^n. Where x is beyond the end of the tail,
/// all of this is for 0 instead, and zero_beyond() puts the result right.
template <class T> struct Normal {
  Mask<T> beyond;
  Vec<T> a, r, s, p, n;

  TAPEHEAD_INLINE explicit Normal(Vec<T> x) {
    using C = Tail<T>;
    const Vec<T> half = T(0.5);
    beyond = abs(x) > Vec<T>(C::end);  // false for NaN, which stays
    a = select(beyond, Vec<T>(T(0)), abs(x));
    r = Vec<T>(T(1)) / (a + Vec<T>(C::k)), s = fma(r, Vec<T>(C::stretch), Vec<T>(-C::shift));
    // a² in two pieces: a rounding of the exponent would be multiplied by a²/2 in the result. The products of
    // a's upper and lower half are exact, with and without fused multiply-adds.
    const Vec<T> upper = from_bits<T>(bits(a) & ~((Bits<T>(1) << (sizeof(T) == 4 ? 12 : 27)) - 1)), lower = a - upper,
                 square = a * a, rest = ((upper * upper - square) + (upper + upper) * lower) + lower * lower;
    const Reduced<T> e = reduce_exp(-half * square);
    const Vec<T> near = fma(e.r, fma(e.r, e.q, Vec<T>(T(1))), Vec<T>(T(1)));
    p = fma(-half * rest, near, near), n = e.n;
  }
  /// factor · e^(-a²/2). The power of 2 comes last, because the result may be subnormal.
  TAPEHEAD_INLINE Vec<T> times_bell(Vec<T> factor) const { return select(beyond, Vec<T>(T(0)), scale2(p * factor, n)); }
};

}  // namespace detail

/// x Φ(x), to gelu_max_ulp; 0 at -∞, the limit.
template <class T> TAPEHEAD_INLINE Vec<T> gelu(Vec<T> x) {
  const detail::Normal<T> of(x);
  const Vec<T> part = of.times_bell(of.a * (of.r * detail::polynomial(of.s, detail::Tail<T>::P)));  // a Φ(-a)
  return select(x < Vec<T>(T(0)), -part, x - part);
}

/// d/dx of it, Φ(x) + x Φ'(x), to gelu_slope_max_ulp.
template <class T> TAPEHEAD_INLINE Vec<T> gelu_slope(Vec<T> x) {
  using C = detail::Tail<T>;
  const detail::Normal<T> of(x);
  const Vec<T> from_root = (Vec<T>(C::root) - of.a) + Vec<T>(C::root_rest);
  const Vec<T> part = of.times_bell(from_root * detail::polynomial(of.s, C::H));  // the slope at -a
  return select(x < Vec<T>(T(0)), part, Vec<T>(T(1)) - part);
}

/// y[i] = gelu(x[i]); y may be x.
template <class T> void gelu_n(std::int64_t n, const T* x, T* y);
/// dx[i] = dy[i] gelu_slope(x[i]); dx may be x or dy.
template <class T> void gelu_pull_n(std::int64_t n, const T* x, const T* dy, T* dx);

}  // namespace tapehead::kernels
