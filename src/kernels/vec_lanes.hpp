#pragma once
// Operations between the lanes of one register (sum, maximum, any, all) and between several registers (the
// transpose of a square). They use shuffles, not memory: log2(lanes) steps, in each of which a lane is
// combined with the one half as far away as in the step before.

#include "kernels/vec.hpp"

namespace tapehead::kernels {

namespace detail {
/// Lane i of the result is lane At[i] of a and b laid end to end.
template <class T, int... At> TAPEHEAD_INLINE Vec<T> shuffle(Vec<T> a, Vec<T> b, std::integer_sequence<int, At...>) {
#if defined(__clang__) || __GNUC__ >= 12
  return Vec<T>(__builtin_shufflevector(a.v, b.v, At...));
#else
  return Vec<T>(__builtin_shuffle(a.v, b.v, IntVec<T>{At...}));
#endif
}

/// Lane i receives lane i ^ Step.
template <class T, int Step, int... I> TAPEHEAD_INLINE Vec<T> exchange(Vec<T> x, std::integer_sequence<int, I...>) {
  return shuffle(x, x, std::integer_sequence<int, (I ^ Step)...>{});
}

/// The two by two blocks of size Step in rows a and b, transposed: a keeps its even blocks and takes b's, …
template <class T, int Step, int... I>
TAPEHEAD_INLINE void exchange_blocks(Vec<T>& a, Vec<T>& b, std::integer_sequence<int, I...>) {
  constexpr int n = lanes<T>;
  const Vec<T> even = shuffle(a, b, std::integer_sequence<int, (I & Step ? n + I - Step : I)...>{});
  b = shuffle(a, b, std::integer_sequence<int, (I & Step ? n + I : I + Step)...>{});
  a = even;
}

template <int Step, class T> TAPEHEAD_INLINE void transpose_blocks(Vec<T>* rows) {
  if constexpr (Step > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i)
      if ((i & Step) == 0)
        exchange_blocks<T, Step>(rows[i], rows[i + Step], std::make_integer_sequence<int, lanes<T>>{});
    transpose_blocks<Step / 2>(rows);
  }
}

/// Combines all lanes pairwise in log2(lanes) steps, halves first; every lane ends with the result.
template <int Step, class T, class F> TAPEHEAD_INLINE Vec<T> reduce(Vec<T> x, F f) {
  if constexpr (Step == 0) {
    return x;
  } else {
    const auto other = exchange<T, Step>(x, std::make_integer_sequence<int, lanes<T>>{});
    return reduce<Step / 2>(f(x, other), f);
  }
}
}  // namespace detail

/// Transposes the square whose rows are rows[0] … rows[lanes - 1]: first its halves, then the halves of
/// those.
template <class T> TAPEHEAD_INLINE void transpose(Vec<T> (&rows)[lanes<T>]) {
  detail::transpose_blocks<lanes<T> / 2>(rows);
}

/// The sum of all lanes, in every lane (the order of the additions depends on the width).
template <class T> TAPEHEAD_INLINE Vec<T> sum_all(Vec<T> x) {
  return detail::reduce<lanes<T> / 2>(x, [](Vec<T> a, Vec<T> b) { return a + b; });
}
/// The largest lane, in every lane; a NaN may or may not be lost.
template <class T> TAPEHEAD_INLINE Vec<T> max_all(Vec<T> x) {
  return detail::reduce<lanes<T> / 2>(x, [](Vec<T> a, Vec<T> b) { return max(a, b); });
}
template <class T> TAPEHEAD_INLINE T horizontal_sum(Vec<T> x) { return sum_all(x)[0]; }
template <class T> TAPEHEAD_INLINE T horizontal_max(Vec<T> x) { return max_all(x)[0]; }

template <class T> TAPEHEAD_INLINE bool any(Mask<T> m) {
#if defined(TAPEHEAD_AVX512)
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(m.v), reinterpret_cast<__m512i>(m.v)) != 0;
#elif defined(TAPEHEAD_AVX2)
  return _mm256_movemask_epi8(reinterpret_cast<__m256i>(m.v)) != 0;
#else
  typedef std::int64_t Words __attribute__((vector_size(vector_bytes)));
  const auto w = reinterpret_cast<Words>(m.v);
  return (w[0] | w[1]) != 0;
#endif
}

template <class T> TAPEHEAD_INLINE bool all(Mask<T> m) { return !any(!m); }

}  // namespace tapehead::kernels
