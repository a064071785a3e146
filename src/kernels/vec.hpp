#pragma once
// One SIMD register of float or double, for loops that are written once and compiled for every width.
//
// GCC and clang have vectors as a language extension: `+` on them is one instruction. This header adds what
// the extension lacks: load, broadcast, select, round, sum. The width is fixed when the file is compiled: 64
// bytes with AVX-512, 32 with AVX2, 16 otherwise (SSE2, NEON, or whatever the compiler makes of it).
// TAPEHEAD_PLAIN selects the last on every machine, so that this path can be tested everywhere.
//
// A scalar converts to a Vec (broadcast), so a polynomial reads as it does on paper: fma(p, x, 0.5f).

#include <cstdint>
#include <cstring>
#include <utility>

#if !defined(TAPEHEAD_PLAIN) && defined(__AVX512F__) && defined(__AVX512DQ__)
#define TAPEHEAD_AVX512 1
#include <immintrin.h>
#elif !defined(TAPEHEAD_PLAIN) && defined(__AVX2__)
#define TAPEHEAD_AVX2 1
#include <immintrin.h>
#elif defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/// Vectors stay in registers only if no function is called, and at -O2 compilers would call a long function.
#define TAPEHEAD_INLINE [[gnu::always_inline]] inline

namespace tapehead::kernels {

#if defined(TAPEHEAD_AVX512)
inline constexpr int vector_bytes = 64;
#elif defined(TAPEHEAD_AVX2)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

/// How many T one vector holds.
template <class T> inline constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

namespace detail {
/// The compiler's own vector types. Spelled out for each T because g++ loses the attribute on a dependent
/// type.
template <class T> struct Native;
template <> struct Native<float> {
  using Bits = std::int32_t;
  typedef std::uint32_t Unsigned __attribute__((vector_size(vector_bytes)));
  typedef float Real __attribute__((vector_size(vector_bytes)));
  typedef std::int32_t Int __attribute__((vector_size(vector_bytes)));
};
template <> struct Native<double> {
  using Bits = std::int64_t;
  typedef std::uint64_t Unsigned __attribute__((vector_size(vector_bytes)));
  typedef double Real __attribute__((vector_size(vector_bytes)));
  typedef std::int64_t Int __attribute__((vector_size(vector_bytes)));
};

// The instruction is called by name, because compilers do not fuse a * b + c everywhere: never at -O0 and -O1.
#if defined(TAPEHEAD_AVX512)
TAPEHEAD_INLINE __m512 fma(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
TAPEHEAD_INLINE __m512d fma(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
#elif defined(TAPEHEAD_AVX2) && defined(__FMA__)
TAPEHEAD_INLINE __m256 fma(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
TAPEHEAD_INLINE __m256d fma(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
#elif defined(__FMA__)
TAPEHEAD_INLINE __m128 fma(__m128 a, __m128 b, __m128 c) { return _mm_fmadd_ps(a, b, c); }
TAPEHEAD_INLINE __m128d fma(__m128d a, __m128d b, __m128d c) { return _mm_fmadd_pd(a, b, c); }
#elif defined(__aarch64__)
TAPEHEAD_INLINE float32x4_t fma(float32x4_t a, float32x4_t b, float32x4_t c) { return vfmaq_f32(c, a, b); }
TAPEHEAD_INLINE float64x2_t fma(float64x2_t a, float64x2_t b, float64x2_t c) { return vfmaq_f64(c, a, b); }
#else
template <class V> TAPEHEAD_INLINE V fma(V a, V b, V c) { return a * b + c; }
#endif
}  // namespace detail

/// The signed integer as wide as T, and a vector of them: what comparisons give and what bits() shows.
template <class T> using Bits = typename detail::Native<T>::Bits;
template <class T> using IntVec = typename detail::Native<T>::Int;
template <class T> using UnsignedVec = typename detail::Native<T>::Unsigned;

/// lanes<T> truth values, each all ones or all zeros.
template <class T> struct Mask {
  IntVec<T> v;

  TAPEHEAD_INLINE friend Mask operator&(Mask a, Mask b) { return {a.v & b.v}; }
  TAPEHEAD_INLINE friend Mask operator|(Mask a, Mask b) { return {a.v | b.v}; }
  TAPEHEAD_INLINE friend Mask operator!(Mask a) { return {~a.v}; }
};

template <class T> struct Vec {
  using Native = typename detail::Native<T>::Real;
  Native v;

  TAPEHEAD_INLINE Vec() : v{} {}
  TAPEHEAD_INLINE Vec(Native native) : v(native) {}
  /// Broadcast. Subtracting zero changes no value, -0.0 included; adding it would turn -0.0 into +0.0.
  TAPEHEAD_INLINE Vec(T x) : v(x - Native{}) {}

  TAPEHEAD_INLINE T operator[](int i) const { return v[i]; }

  TAPEHEAD_INLINE friend Vec operator+(Vec a, Vec b) { return a.v + b.v; }
  TAPEHEAD_INLINE friend Vec operator-(Vec a, Vec b) { return a.v - b.v; }
  TAPEHEAD_INLINE friend Vec operator*(Vec a, Vec b) { return a.v * b.v; }
  TAPEHEAD_INLINE friend Vec operator/(Vec a, Vec b) { return a.v / b.v; }
  TAPEHEAD_INLINE friend Vec operator-(Vec a) { return -a.v; }
  TAPEHEAD_INLINE Vec& operator+=(Vec b) { return v += b.v, *this; }
  TAPEHEAD_INLINE Vec& operator-=(Vec b) { return v -= b.v, *this; }
  TAPEHEAD_INLINE Vec& operator*=(Vec b) { return v *= b.v, *this; }

  TAPEHEAD_INLINE friend Mask<T> operator<(Vec a, Vec b) { return {a.v < b.v}; }
  TAPEHEAD_INLINE friend Mask<T> operator<=(Vec a, Vec b) { return {a.v <= b.v}; }
  TAPEHEAD_INLINE friend Mask<T> operator>(Vec a, Vec b) { return {a.v > b.v}; }
  TAPEHEAD_INLINE friend Mask<T> operator>=(Vec a, Vec b) { return {a.v >= b.v}; }
  TAPEHEAD_INLINE friend Mask<T> operator==(Vec a, Vec b) { return {a.v == b.v}; }
  TAPEHEAD_INLINE friend Mask<T> operator!=(Vec a, Vec b) { return {a.v != b.v}; }

  /// a b + c, rounded once where the target has the instruction (outside x86 only with -ffp-contract=fast),
  /// twice elsewhere.
  TAPEHEAD_INLINE friend Vec fma(Vec a, Vec b, Vec c) { return detail::fma(a.v, b.v, c.v); }
  /// Lane by lane m ? a : b.
  TAPEHEAD_INLINE friend Vec select(Mask<T> m, Vec a, Vec b) { return m.v ? a.v : b.v; }
  /// a > b ? a : b, as the instruction does: b where either is NaN.
  TAPEHEAD_INLINE friend Vec max(Vec a, Vec b) { return a.v > b.v ? a.v : b.v; }
  /// a < b ? a : b: b where either is NaN.
  TAPEHEAD_INLINE friend Vec min(Vec a, Vec b) { return a.v < b.v ? a.v : b.v; }
};

// ---- Memory. No alignment is asked for. ----

template <class T> TAPEHEAD_INLINE Vec<T> load(const T* p) {
  typename Vec<T>::Native v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class T> TAPEHEAD_INLINE void store(T* p, Vec<T> x) { std::memcpy(p, &x.v, sizeof x.v); }

template <class T> TAPEHEAD_INLINE Vec<T> broadcast(T x) { return Vec<T>(x); }

#if defined(TAPEHEAD_AVX2)
/// All ones in the first n lanes.
template <class T> TAPEHEAD_INLINE __m256i first_lanes(std::int64_t n) {
  if constexpr (sizeof(T) == 4)
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  else
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
#endif

/// The first n <= lanes elements at p, zeros after; touches nothing behind p[n - 1].
template <class T> TAPEHEAD_INLINE Vec<T> load_n(const T* p, std::int64_t n) {
#if defined(TAPEHEAD_AVX512)
  const auto m = n > 0 ? (1u << static_cast<unsigned>(n)) - 1u : 0u;
  if constexpr (sizeof(T) == 4)
    return Vec<T>(_mm512_maskz_loadu_ps(static_cast<__mmask16>(m), p));
  else
    return Vec<T>(_mm512_maskz_loadu_pd(static_cast<__mmask8>(m), p));
#elif defined(TAPEHEAD_AVX2)
  if constexpr (sizeof(T) == 4)
    return Vec<T>(_mm256_maskload_ps(p, first_lanes<T>(n)));
  else
    return Vec<T>(_mm256_maskload_pd(p, first_lanes<T>(n)));
#else
  typename Vec<T>::Native v{};
  for (int i = 0; i < lanes<T>; ++i)
    if (i < n) v[i] = p[i];
  return v;
#endif
}

/// Writes the first n <= lanes elements; touches nothing behind p[n - 1].
template <class T> TAPEHEAD_INLINE void store_n(T* p, Vec<T> x, std::int64_t n) {
#if defined(TAPEHEAD_AVX512)
  const auto m = n > 0 ? (1u << static_cast<unsigned>(n)) - 1u : 0u;
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>(m), x.v);
  else
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>(m), x.v);
#elif defined(TAPEHEAD_AVX2)
  if constexpr (sizeof(T) == 4)
    _mm256_maskstore_ps(p, first_lanes<T>(n), x.v);
  else
    _mm256_maskstore_pd(p, first_lanes<T>(n), x.v);
#else
  for (int i = 0; i < lanes<T>; ++i)
    if (i < n) p[i] = x.v[i];
#endif
}

// ---- Bits and integers ----

/// The same bits read as integers, and back.
template <class T> TAPEHEAD_INLINE IntVec<T> bits(Vec<T> x) { return reinterpret_cast<IntVec<T>>(x.v); }
template <class T> TAPEHEAD_INLINE Vec<T> from_bits(IntVec<T> i) {
  return reinterpret_cast<typename Vec<T>::Native>(i);
}

/// Truncating conversion to integers, and the exact or rounded way back.
template <class T> TAPEHEAD_INLINE IntVec<T> to_int(Vec<T> x) { return __builtin_convertvector(x.v, IntVec<T>); }
template <class T> TAPEHEAD_INLINE Vec<T> to_real(IntVec<T> i) {
  return __builtin_convertvector(i, typename Vec<T>::Native);
}

template <class T> inline constexpr Bits<T> sign_bit = static_cast<Bits<T>>(Bits<T>(1) << (8 * sizeof(T) - 1));

template <class T> TAPEHEAD_INLINE Vec<T> abs(Vec<T> x) { return from_bits<T>(bits(x) & ~sign_bit<T>); }

/// The size of x with the sign of y.
template <class T> TAPEHEAD_INLINE Vec<T> copysign(Vec<T> x, Vec<T> y) {
  return from_bits<T>((bits(x) & ~sign_bit<T>) | (bits(y) & sign_bit<T>));
}

/// x 2^n for whole n and 1/2 <= |x| < 2, rounded once where the result is subnormal; n may go past the range
/// of exponents by half. 2^n is made by adding n to the exponent field: n + 1.5 2^23 (2^52) has n in its low
/// bits.
template <class T> TAPEHEAD_INLINE Vec<T> scale2(Vec<T> x, Vec<T> n) {
#if defined(TAPEHEAD_AVX512)
  if constexpr (sizeof(T) == 4)
    return Vec<T>(_mm512_maskz_scalef_ps(0xffff, x.v, n.v));
  else
    return Vec<T>(_mm512_maskz_scalef_pd(0xff, x.v, n.v));
#else
  constexpr T magic = sizeof(T) == 4 ? T(12582912) : T(6755399441055744);
  constexpr Bits<T> bias = sizeof(T) == 4 ? 127 : 1023, mantissa = sizeof(T) == 4 ? 23 : 52;
  const auto power = [](Vec<T> k) { return from_bits<T>((bits(k + Vec<T>(magic)) + bias) << mantissa); };
  const Vec<T> half = (n * Vec<T>(T(0.5)) + Vec<T>(magic)) - Vec<T>(magic);
  return x * power(half) * power(n - half);
#endif
}

/// To the nearest integer, halves to even; the sign of zero is kept. From 2^23 on (2^52 for double) floats
/// have no bits for a fraction, so adding that number and subtracting it again rounds; larger numbers are
/// already integers.
template <class T> TAPEHEAD_INLINE Vec<T> round_nearest(Vec<T> x) {
  const Vec<T> big = sizeof(T) == 4 ? T(8388608) : T(4503599627370496);
  const Vec<T> a = abs(x);
  return select(a < big, copysign((a + big) - big, x), x);
}

}  // namespace tapehead::kernels

#include "kernels/vec_lanes.hpp"
