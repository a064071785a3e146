#pragma once
// Passes over rows of float or double that compute in double. A pass is written once, as a function of `at`,
// which stands for lanes<double> elements from some place on or, at the end of the row, for one element.
//
//     sums<1>(n, [=](auto at) { return std::array{at(x) * at(y)}; })             Σ x y
//     for_each_place(n, [=](auto at) { at.put(y, at(x) * 2.0); })                y = 2 x

#include <array>
#include <cstdint>

#include "kernels/vec.hpp"
#include "kernels/vec_lanes.hpp"

namespace tapehead::kernels {

/// lanes<double> floats as doubles, and back.
TAPEHEAD_INLINE Vec<double> widened(const float* p) {
#if defined(TAPEHEAD_AVX512)
  return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(p));  // g++ 12 warns of the plain one
#elif defined(TAPEHEAD_AVX2)
  return _mm256_cvtps_pd(_mm_loadu_ps(p));
#else
  Vec<double>::Native v;
  for (int i = 0; i < lanes<double>; ++i) v[i] = static_cast<double>(p[i]);
  return v;
#endif
}
TAPEHEAD_INLINE void store_narrowed(float* p, Vec<double> x) {
#if defined(TAPEHEAD_AVX512)
  _mm256_storeu_ps(p, _mm512_maskz_cvtpd_ps(0xff, x.v));
#elif defined(TAPEHEAD_AVX2)
  _mm_storeu_ps(p, _mm256_cvtpd_ps(x.v));
#else
  for (int i = 0; i < lanes<double>; ++i) p[i] = static_cast<float>(x[i]);
#endif
}

/// The elements at i … i + lanes<double> - 1.
struct AtVector {
  std::int64_t i;

  TAPEHEAD_INLINE Vec<double> operator()(const double* p) const { return load(p + i); }
  TAPEHEAD_INLINE Vec<double> operator()(const float* p) const { return widened(p + i); }
  TAPEHEAD_INLINE void put(double* p, Vec<double> x) const { store(p + i, x); }
  TAPEHEAD_INLINE void put(float* p, Vec<double> x) const { store_narrowed(p + i, x); }
};

/// The element at i.
struct AtOne {
  std::int64_t i;
  template <class T> TAPEHEAD_INLINE double operator()(const T* p) const { return static_cast<double>(p[i]); }
  template <class T> TAPEHEAD_INLINE void put(T* p, double x) const { p[i] = static_cast<T>(x); }
};

template <class F> void for_each_place(std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + lanes<double> <= n; i += lanes<double>) f(AtVector{i});
  for (; i < n; ++i) f(AtOne{i});
}

/// N sums at once over a row of n elements. Each has 16 interleaved partial sums: their additions do not wait
/// for each other, and their order is the same on every processor.
template <int N, class F> std::array<double, N> sums(std::int64_t n, const F& f) {
  constexpr int ways = 16, L = lanes<double>, registers = ways / L;
  Vec<double> part[N][registers];
  std::int64_t i = 0;
  for (; i + ways <= n; i += ways)
#pragma GCC unroll 8
    for (int r = 0; r < registers; ++r) {
      const auto x = f(AtVector{i + r * L});
#pragma GCC unroll 4
      for (int k = 0; k < N; ++k) part[k][r] += x[static_cast<std::size_t>(k)];
    }
  if (i < n) {  // the elements left over, each in the place it would have among 16
    double one[N][ways] = {};
    for (int w = 0; i < n; ++i, ++w) {
      const auto x = f(AtOne{i});
      for (int k = 0; k < N; ++k) one[k][w] = x[static_cast<std::size_t>(k)];
    }
    for (int k = 0; k < N; ++k)
      for (int r = 0; r < registers; ++r) part[k][r] += load(one[k] + r * L);
  }
  std::array<double, N> total;
#pragma GCC unroll 4
  for (int k = 0; k < N; ++k) {
#pragma GCC unroll 4
    for (int half = registers / 2; half > 0; half /= 2)
      for (int r = 0; r < half; ++r) part[k][r] += part[k][r + half];
    total[static_cast<std::size_t>(k)] = horizontal_sum(part[k][0]);
  }
  return total;
}

}  // namespace tapehead::kernels
