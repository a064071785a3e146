#pragma once
// exp, log, tanh and their like on whole vectors, for float and double.
//
// Each follows one plan. (1) Reduce: move x into a small interval by an identity that costs a subtraction,
// such as e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2. (2) Evaluate a polynomial there. Its
// coefficients are minimax (Remez' exchange): of all polynomials of that degree they leave the smallest
// largest error, a tenth of what the same number of Taylor terms would. They approximate only the part after
// the exactly known first terms, so that the last operation is an addition of something small, and its
// rounding is nearly the whole error. (3) Undo the reduction. There are no branches: both sides of a case are
// computed and one is selected, lane by lane, so a value does not depend on its neighbours or its place.
//
// Special values are the mathematical limits: exp(-inf) = 0, log(0) = -inf, log(x < 0) = NaN, tanh(inf) = 1;
// NaN stays NaN, odd functions keep the sign of zero, subnormal arguments and results are handled as any
// other. An error is counted in ulps: units in the last place of the true result. The bounds hold with and
// without fused multiply-adds; tests/kernels/vmath_test.cpp measures them.

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/vec.hpp"

namespace tapehead::kernels {

inline constexpr double exp_max_ulp = 1.25;
inline constexpr double exp2_max_ulp = 1.25;
inline constexpr double expm1_max_ulp = 2.5;
inline constexpr double log_max_ulp = 1.0;
inline constexpr double tanh_max_ulp = 2.75;
inline constexpr double sigmoid_max_ulp = 2.5;
inline constexpr double erf_max_ulp = 1.5;

namespace detail {

// (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2
template <class T> inline constexpr std::array<T, 0> exp_poly{};
template <> inline constexpr std::array<float, 5> exp_poly<float> = {0.500000003f, 0.166665766f, 0.0416663741f,
                                                                     8.36323789e-3f, 1.39412156e-3f};
template <> inline constexpr std::array<double, 10> exp_poly<double> = {
    0.50000000000000010,   0.16666666666666675,   0.041666666666623811,  8.3333333333221269e-3, 1.3888888917370848e-3,
    1.9841269886836392e-4, 2.4801521052860205e-5, 2.7557242059340426e-6, 2.7620203671600249e-7, 2.5110154340462049e-8};

// (2^f - 1) / f on |f| <= 1/2
template <class T> inline constexpr std::array<T, 0> exp2_poly{};
template <> inline constexpr std::array<float, 6> exp2_poly<float> = {0.693147188f,   0.240226511f,   0.0555035705f,
                                                                      9.61803070e-3f, 1.33908943e-3f, 1.54697585e-4f};
template <> inline constexpr std::array<double, 11> exp2_poly<double> = {
    0.69314718055994531,   0.24022650695910098,   0.055504108664821660,  9.6181291076068501e-3,
    1.3333558146395951e-3, 1.5403530441799742e-4, 1.5252733853339907e-5, 1.3215442549534219e-6,
    1.0178051700635756e-7, 7.0725935588867847e-9, 4.4566799241111392e-10};

// (log((1 + s) / (1 - s)) - 2 s) / s^3 as a polynomial in s^2, for (1 + s) / (1 - s) between 1/sqrt 2 and
// sqrt 2
template <class T> inline constexpr std::array<T, 0> log_poly{};
template <> inline constexpr std::array<float, 3> log_poly<float> = {0.666666853f, 0.399886959f, 0.295830877f};
template <> inline constexpr std::array<double, 7> log_poly<double> = {
    0.66666666666666697, 0.39999999999897888, 0.28571428626651407, 0.22222211031749324,
    0.18182896207631686, 0.15331497764506818, 0.14619096992012279};

// erf(x) / x - 1 as a polynomial in x^2, for |x| <= 1
template <class T> inline constexpr std::array<T, 0> erf_poly{};
template <> inline constexpr std::array<float, 7> erf_poly<float> = {
    0.128379166f, -0.376126271f, 0.112836002f, -0.0268544447f, 5.18953546e-3f, -8.02084231e-4f, 7.88912297e-5f};
template <> inline constexpr std::array<double, 12> erf_poly<double> = {
    0.12837916709551257,   -0.37612638903183547,   0.11283791670945253,   -0.026866170643276218,
    5.2239776074234678e-3, -8.5483259896967580e-4, 1.2055295320494294e-4, -1.4924744663335490e-5,
    1.6447517677871874e-6, -1.6209175911748696e-7, 1.3722976265924503e-8, -7.8011888740977516e-10};

// -log(1 - erf(x)) as a polynomial in x - 1, from 1 to where erf(x) rounds to 1
template <class T> inline constexpr std::array<T, 0> erfc_poly{};
template <> inline constexpr std::array<float, 7> erfc_poly<float> = {
    1.84960552f, 2.63896688f, 0.843117608f, 0.0415034975f, -9.89546003e-3f, 1.82938288e-3f, -1.86379117e-4f};
template <> inline constexpr std::array<double, 19> erfc_poly<double> = {
    1.8496055099332483,      2.6389675142347886,     0.84310725635865896,    0.041561098042183427,
    -0.010033825378472255,   1.9779025941395075e-3,  -2.3732259120940942e-4, -2.6277560630965884e-5,
    2.7158472407379001e-5,   -9.6079529923850029e-6, 2.0587352728782320e-6,  -1.4202998694080894e-7,
    -9.8061453323492579e-8,  5.2269413223174989e-8,  -1.4987422604069170e-8, 2.8816491802110253e-9,
    -3.7097446441759014e-10, 2.9068102971790487e-11, -1.0496654299446217e-12};

/// c[0] + c[1] x + c[2] x^2 + … by Horner's rule.
template <class T, std::size_t N> TAPEHEAD_INLINE Vec<T> polynomial(Vec<T> x, const std::array<T, N>& c) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    Vec<T> p = c[N - 1];
    ((p = fma(p, x, Vec<T>(c[N - 2 - I]))), ...);
    return p;
  }
  (std::make_index_sequence<N - 1>{});
}

/// Numbers that differ with the precision.
template <class T> struct Real {
  static constexpr bool is_float = sizeof(T) == 4;
  /// Added and taken away again, it rounds |x| < 2^22 (2^51) to an integer; its low bits then hold that
  /// integer.
  static constexpr T magic = is_float ? T(12582912) : T(6755399441055744);
  static constexpr T inf = std::numeric_limits<T>::infinity();
  static constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  static constexpr T log2_e = T(1.4426950408889634074);
  /// ln 2 in two pieces, the first with so few bits that its product with an exponent is exact.
  static constexpr T ln2_hi = is_float ? T(0.693359375) : T(6.93147180369123816490e-01);
  static constexpr T ln2_lo = is_float ? T(-2.12194440054690583e-4) : T(1.90821492927058770002e-10);
  /// Outside these bounds exp rounds to 0 or infinity, and so does exp2 with the next pair.
  static constexpr T exp_lo = is_float ? T(-104) : T(-746), exp_hi = is_float ? T(89) : T(710);
  static constexpr T exp2_lo = is_float ? T(-150) : T(-1075), exp2_hi = is_float ? T(135) : T(1030);
};

/// x held between lo and hi; NaN stays.
template <class T> TAPEHEAD_INLINE Vec<T> clamp(Vec<T> x, T lo, T hi) { return min(Vec<T>(hi), max(Vec<T>(lo), x)); }

/// x = n ln 2 + r and q(r) of e^r = 1 + r + r^2 q(r).
template <class T> struct Reduced { Vec<T> n, r, q; };
template <class T> TAPEHEAD_INLINE Reduced<T> reduce_exp(Vec<T> x) {
  using R = Real<T>;
  const Vec<T> n = fma(x, Vec<T>(R::log2_e), Vec<T>(R::magic)) - Vec<T>(R::magic);
  const Vec<T> r = fma(-n, Vec<T>(R::ln2_lo), fma(-n, Vec<T>(R::ln2_hi), x));
  return {n, r, polynomial(r, exp_poly<T>)};
}

/// 2^x where exp2's bounds hold.
template <class T> TAPEHEAD_INLINE Vec<T> exp2_in_range(Vec<T> x) {
  const Vec<T> magic = Real<T>::magic, n = (x + magic) - magic, f = x - n;
  return scale2(fma(f, polynomial(f, exp2_poly<T>), Vec<T>(T(1))), n);
}

}  // namespace detail

/// e^x, to exp_max_ulp. Lanes whose result is 0 are masked out first (masked scores fill whole rows with
/// them): when scaling underflows to 0, the processor takes a microcode assist, as slow as a hundred
/// multiplications.
template <class T> TAPEHEAD_INLINE Vec<T> exp(Vec<T> x) {
  using R = detail::Real<T>;
  const Vec<T> zero = T(0), one = T(1);
  const auto gone = x < Vec<T>(R::exp_lo);
  const auto [n, r, q] = detail::reduce_exp(min(Vec<T>(R::exp_hi), select(gone, zero, x)));
  return select(gone, zero, scale2(fma(r, fma(r, q, one), one), n));
}

/// 2^x, to exp2_max_ulp.
template <class T> TAPEHEAD_INLINE Vec<T> exp2(Vec<T> x) {
  using R = detail::Real<T>;
  const Vec<T> zero = T(0);
  const auto gone = x < Vec<T>(R::exp2_lo);
  return select(gone, zero, detail::exp2_in_range(min(Vec<T>(R::exp2_hi), select(gone, zero, x))));
}

/// e^x - 1 without cancellation near 0, to expm1_max_ulp: 2^n (e^r - 1) + (2^n - 1), halved and doubled
/// because 2^n alone may overflow.
template <class T> TAPEHEAD_INLINE Vec<T> expm1(Vec<T> x) {
  using R = detail::Real<T>;
  const auto [n, r, q] = detail::reduce_exp(detail::clamp(x, T(-50), R::exp_hi));
  const Vec<T> p = fma(r * r, q, r), half = T(0.5), scale = scale2(half, n), y = fma(scale, p, scale - half);
  return copysign(select(n == Vec<T>(T(0)), p, y + y), x);
}

/// Natural logarithm, to log_max_ulp. x = 2^e (1 + f); with s = f / (2 + f), 1 + f = (1 + s) / (1 - s), whose
/// logarithm is the odd series 2 s + 2 s^3 / 3 + …; 2 s = f - s f keeps f, which is exact, in front.
template <class T> TAPEHEAD_INLINE Vec<T> log(Vec<T> x) {
  using R = detail::Real<T>;
  using U = UnsignedVec<T>;
  constexpr int mantissa = R::is_float ? 23 : 52;
  constexpr Bits<T> sqrt_half = R::is_float ? 0x3f3504f3 : static_cast<Bits<T>>(0x3fe6a09e667f3bcd);
  constexpr Bits<T> one = static_cast<Bits<T>>(R::is_float ? 0x3f800000 : 0x3ff0000000000000);
  constexpr T subnormal_scale = R::is_float ? T(8388608) : T(4503599627370496);

  const auto tiny = x < Vec<T>(std::numeric_limits<T>::min());
  // Unsigned, because the bits of NaN and infinity would overflow; they are selected away at the end.
  const auto shifted =
      reinterpret_cast<IntVec<T>>(reinterpret_cast<U>(bits(select(tiny, x * Vec<T>(subnormal_scale), x))) +
                                  static_cast<std::make_unsigned_t<Bits<T>>>(one - sqrt_half));
  const auto exponent = reinterpret_cast<IntVec<T>>(reinterpret_cast<U>(shifted) >> mantissa);
  const auto m = from_bits<T>((shifted & ((Bits<T>(1) << mantissa) - 1)) + sqrt_half);
  const Vec<T> biased = from_bits<T>(exponent + bits(Vec<T>(R::magic))) - Vec<T>(R::magic);
  const Vec<T> e =
      biased - select(tiny, Vec<T>(T(R::is_float ? 127 + 23 : 1023 + 52)), Vec<T>(T(R::is_float ? 127 : 1023)));

  const Vec<T> f = m - Vec<T>(T(1)), s = f / (Vec<T>(T(2)) + f), z = s * s, half_square = Vec<T>(T(0.5)) * f * f;
  const Vec<T> tail = fma(s, fma(z, detail::polynomial(z, detail::log_poly<T>), half_square), e * Vec<T>(R::ln2_lo));
  const Vec<T> y = fma(e, Vec<T>(R::ln2_hi), f - (half_square - tail));

  const Vec<T> zero = T(0), inf = R::inf;
  const Vec<T> special = select(x == zero, -inf, select(x < zero, Vec<T>(R::nan), x));
  return select((x > zero) & (x < inf), y, special);
}

/// Hyperbolic tangent, to tanh_max_ulp: t / (t + 2) with t = e^{2|x|} - 1.
template <class T> TAPEHEAD_INLINE Vec<T> tanh(Vec<T> x) {
  const Vec<T> a = min(Vec<T>(T(20)), abs(x));  // tanh(20) rounds to 1; NaN stays
  const Vec<T> t = expm1(a + a);
  return copysign(t / (t + Vec<T>(T(2))), x);
}

/// 1 / (1 + e^-x), to sigmoid_max_ulp: with e = e^-|x| nothing overflows, and small results keep their
/// digits.
template <class T> TAPEHEAD_INLINE Vec<T> sigmoid(Vec<T> x) {
  const Vec<T> one = T(1), e = exp(-abs(x));
  return select(x < Vec<T>(T(0)), e, one) / (one + e);
}

/// The error function, to erf_max_ulp: a polynomial up to 1, 1 - e^-q(|x|) beyond.
template <class T> TAPEHEAD_INLINE Vec<T> erf(Vec<T> x) {
  const Vec<T> one = T(1), a = min(Vec<T>(T(sizeof(T) == 4 ? 4 : 6)), abs(x));
  const Vec<T> near = fma(a, detail::polynomial(a * a, detail::erf_poly<T>), a);
  const Vec<T> q = detail::polynomial(a - one, detail::erfc_poly<T>);
  return copysign(select(a < one, near, one - exp(-q)), x);
}

// ---- The same for n elements in a row: y[i] = f(x[i]). y may be x, but must not overlap it otherwise. ----

template <class T> void exp_n(std::int64_t n, const T* x, T* y);
template <class T> void exp2_n(std::int64_t n, const T* x, T* y);
template <class T> void expm1_n(std::int64_t n, const T* x, T* y);
template <class T> void log_n(std::int64_t n, const T* x, T* y);
template <class T> void tanh_n(std::int64_t n, const T* x, T* y);
template <class T> void sigmoid_n(std::int64_t n, const T* x, T* y);
template <class T> void erf_n(std::int64_t n, const T* x, T* y);

}  // namespace tapehead::kernels
