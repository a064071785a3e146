#pragma once
// Attention of a few new tokens to a long cache. Each key and value is read once, where it lies: nothing is
// packed, since nothing is used often enough to pay for it. Memory is what limits this, not arithmetic.
//
// The keys of a head are cut into chunks of decode_chunk. Each gives its largest score m, the sum
// l = Σ exp(s - m) and O = Σ exp(s - m) v, and these are joined in order, so the result does not depend on
// the number of threads.

#include <cstdint>
#include <span>

namespace tapehead::kernels {

inline constexpr std::int64_t decode_chunk = 512;

/// The keys and values of `heads` kv heads, all of `length` tokens. Token j of head h is row
/// first_rows[j / run_rows] + h * head_rows + j % run_rows of both arrays, whose rows lie without gaps.
template <class T> struct CachedRows {
  const T* keys = nullptr;    // rows of d elements
  const T* values = nullptr;  // rows of dv elements
  std::int64_t heads = 1, length = 0, d = 0, dv = 0;
  std::int64_t head_rows = 0, run_rows = 1;
  std::span<const std::int64_t> first_rows;
};

/// `queries` new tokens, the last at the last key, for `group` query heads on each kv head. q is (heads *
/// group, queries, d) without gaps, out (heads * group, queries, dv). Query i sees the keys up to its own
/// place, of these the last `window` (0: all). `sinks`, unless null, has one more logit for each query head,
/// with a value of zero. A query that sees only -inf gives zeros.
template <class T> void decode_rows(const CachedRows<T>& rows, std::int64_t group, std::int64_t queries, const T* q,
                                    T scale, std::int64_t window, T* out, const T* sinks = nullptr);

}  // namespace tapehead::kernels
