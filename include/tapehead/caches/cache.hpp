#pragma once
#include <atomic>
#include <memory>
#include <type_traits>

#include "tapehead/attention/attention.hpp"
#include "tapehead/tensor/tensor.hpp"

// Keys and values of the tokens that have been read, kept so that each new token costs one row of attention
// instead of the whole sequence again. Caches are for inference: their contents have no gradient, and append()
// refuses a tensor that a tape knows.
//
// A cache writes in place although tensors are values: it writes only rows that no tensor shows yet. A copy of a
// cache shares the rows. The copy that appends first writes behind them; the other one then moves to rows of its
// own.

namespace tapehead {

/// The keys and values of up to `capacity` tokens, for any leading axes: of shape `lead` = (B, Hkv), say, or
/// () for one head.
template <Floating T> class KVCache {
 public:
  /// Keys of key_width elements, values of value_width (0: as wide as the keys).
  /// Throws ShapeError where a size is negative or lead has more than four axes.
  KVCache(const Shape& lead, std::int64_t capacity, std::int64_t key_width, std::int64_t value_width = 0);

  /// Adds n tokens: k is (…, n, key_width), v (…, n, value_width). Throws, before any change, ShapeError where
  /// these do not fit, ValueError where they exceed the capacity, GradientError where a tape knows one of them.
  void append(const Tensor<T>& k, const Tensor<T>& v);
  /// Forgets all but the first `length` tokens. Throws ValueError outside 0 … length().
  void truncate(std::int64_t length);

  /// Views of what is held: (…, length, key_width) and (…, length, value_width). Later appends do not change
  /// them.
  Tensor<T> keys() const { return seen(keys_); }
  Tensor<T> values() const { return seen(values_); }

  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return keys_.size(-2); }
  std::int64_t key_width() const { return keys_.size(-1); }
  std::int64_t value_width() const { return values_.size(-1); }
  Shape lead() const { return lead_; }

 private:
  Tensor<T> seen(const Tensor<T>& rows) const;
  void claim(std::int64_t end);
  void make_rows(std::int64_t capacity, std::int64_t key_width, std::int64_t value_width);

  Shape lead_;
  std::int64_t length_ = 0;
  Tensor<T> keys_, values_;                             // (…, capacity, width), shared with copies of this cache
  std::shared_ptr<std::atomic<std::int64_t>> written_;  // rows written in these, by whichever copy
};

/// Attention of the last n tokens, whose keys and values have been appended, to all that the cache holds up
/// to each of them: causal, the last query at the last key. q is (…, n, key_width), its head axis the cache's
/// or a multiple of it (grouped queries); the result is (…, n, value_width). Equal to those rows of attention
/// over the whole sequence. A mask or bias broadcasts to (…, n, length). Throws ShapeError where q does not
/// fit, ValueError where n is more than is held.
template <Floating T> Tensor<T> decode(const Like<T>& q, const KVCache<T>& cache,
                                       const AttentionOptions<std::type_identity_t<T>>& options = {});

/// A cache for attention to the last `window` tokens, the current one counted: memory for at most twice the
/// window (or one chunk behind a window, if that is more), however many tokens go through it.
template <Floating T> class SlidingKVCache {
 public:
  /// Throws ValueError unless the window is 1 or more and small enough to count twice of it.
  SlidingKVCache(const Shape& lead, std::int64_t window, std::int64_t key_width, std::int64_t value_width = 0);

  /// As KVCache::append(), without a capacity.
  void append(const Tensor<T>& k, const Tensor<T>& v);

  /// The keys and values that the tokens of the last append may attend to: the last kept() ones.
  Tensor<T> keys() const { return last(rows_.keys()); }
  Tensor<T> values() const { return last(rows_.values()); }
  std::int64_t kept() const { return kept_; }
  std::int64_t window() const { return window_; }
  /// The number of all tokens that were appended: the position of the next one.
  std::int64_t length() const { return length_; }
  /// The cache behind it, a copy that shares the rows.
  KVCache<T> rows() const { return rows_; }

 private:
  Tensor<T> last(const Tensor<T>& x) const;
  std::int64_t window_, length_ = 0, kept_ = 0;
  KVCache<T> rows_;
};

/// The same for a window: q are the last n tokens, of one append. Equal to attention over the whole sequence
/// under sliding_window_mask(length, window). Throws ValueError where keys that q should see have been
/// dropped.
template <Floating T> Tensor<T> decode(const Like<T>& q, const SlidingKVCache<T>& cache,
                                       const AttentionOptions<std::type_identity_t<T>>& options = {});

}  // namespace tapehead
