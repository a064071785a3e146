#pragma once
#include <atomic>
#include <concepts>
#include <memory>
#include <type_traits>

#include "tapehead/attention/attention.hpp"
#include "tapehead/tensor/tensor.hpp"

// Keys and values of the tokens that have been read, kept so that each new token costs one row of attention
// and not all of them again. Caches are for inference: what they hold has no gradient, and a tensor that a
// tape knows is refused.
//
// Tensors are values, and a cache writes in place; both hold because it writes only rows that nobody has been
// shown. A copy of a cache shares the rows and goes its own way from there: whoever appends first writes
// behind them, the other gets rows of its own then.

namespace tapehead {

/// The keys and values of up to `capacity` tokens, for any leading axes: of shape `lead` = (B, Hkv), say, or
/// () for one head.
template <std::floating_point T>
class KVCache {
 public:
  /// Keys of key_width elements, values of value_width (0: as wide as the keys).
  /// Throws ShapeError where a size is negative or lead has more than four axes.
  KVCache(const Shape& lead, std::int64_t capacity, std::int64_t key_width, std::int64_t value_width = 0);

  /// Adds n tokens: k is (…, n, key_width), v (…, n, value_width). Throws ShapeError where these do not fit,
  /// ValueError where they pass the capacity, GradientError where a tape knows one of them; then nothing has
  /// changed.
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
  const Shape& lead() const { return lead_; }

 private:
  Tensor<T> seen(const Tensor<T>& rows) const;
  void claim(std::int64_t end);
  void make_rows(std::int64_t capacity, std::int64_t key_width, std::int64_t value_width);

  Shape lead_;
  std::int64_t length_ = 0;
  Tensor<T> keys_, values_;  // (…, capacity, width), shared with copies of this cache
  std::shared_ptr<std::atomic<std::int64_t>> written_;  // rows written in these, by whichever copy
};

/// Attention of the last n tokens, whose keys and values have been appended, to all that the cache holds up
/// to each of them: causal, the last query at the last key. q is (…, n, key_width), its head axis the cache's
/// or a multiple of it (grouped queries); the result is (…, n, value_width). Equal to those rows of attention
/// over the whole sequence. A mask or bias broadcasts to (…, n, length). Throws ShapeError where q does not
/// fit, ValueError where n is more than is held.
template <std::floating_point T>
Tensor<T> decode(const Tensor<T>& q, const KVCache<T>& cache,
                 const AttentionOptions<std::type_identity_t<T>>& options = {});

/// A cache for attention to the last `window` tokens, the current one counted: memory for at most twice the
/// window (or one chunk behind a window, if that is more), however many tokens go through it.
template <std::floating_point T>
class SlidingKVCache {
 public:
  SlidingKVCache(const Shape& lead, std::int64_t window, std::int64_t key_width,
                 std::int64_t value_width = 0);

  /// As KVCache's, without an end.
  void append(const Tensor<T>& k, const Tensor<T>& v);

  /// What the tokens of the last append may still attend to: the `kept()` last keys and values.
  Tensor<T> keys() const;
  Tensor<T> values() const;
  std::int64_t kept() const { return kept_; }
  std::int64_t window() const { return window_; }
  /// All tokens that were appended: the position of the next one.
  std::int64_t length() const { return length_; }
  const KVCache<T>& rows() const { return rows_; }

 private:
  std::int64_t window_, length_ = 0, kept_ = 0;
  KVCache<T> rows_;
};

/// The same for a window: q are the last n tokens, of one append. Equal to attention over the whole sequence
/// under sliding_window_mask(length, window). Throws ValueError where keys that q should see have been
/// dropped.
template <std::floating_point T>
Tensor<T> decode(const Tensor<T>& q, const SlidingKVCache<T>& cache,
                 const AttentionOptions<std::type_identity_t<T>>& options = {});

}  // namespace tapehead
