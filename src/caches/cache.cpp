#include "tapehead/caches/cache.hpp"

#include <algorithm>
#include <limits>

#include "attention/attention_inputs.hpp"
#include "caches/decoding.hpp"
#include "kernels/require.hpp"
#include "tapehead/ops/views.hpp"
#include "tensor/copy.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

namespace {

// The rows that a window needs, checked.
std::int64_t twice(std::int64_t window) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
  require<ValueError>(window >= 1 && window <= most,
                      "SlidingKVCache: window {}; it counts the current token, so it is 1 or more", window);
  return 2 * window;
}

}  // namespace

template <Floating T>
KVCache<T>::KVCache(const Shape& lead, std::int64_t capacity, std::int64_t key_width, std::int64_t value_width)
    : lead_(lead) {
  require<ShapeError>(lead.rank() <= max_rank - 2, "KVCache: leading axes {}; at most {} go before (length, width)",
                      lead, max_rank - 2);
  require<ShapeError>(capacity >= 0 && key_width >= 0 && value_width >= 0,
                      "KVCache: capacity {}, key width {}, value width {}; none may be negative", capacity, key_width,
                      value_width);
  make_rows(capacity, key_width, value_width > 0 ? value_width : key_width);
}

template <Floating T>
void KVCache<T>::make_rows(std::int64_t capacity, std::int64_t key_width, std::int64_t value_width) {
  Buffer<T> keys(detail::extended(lead_, capacity, key_width), "KVCache"),
      values(detail::extended(lead_, capacity, value_width), "KVCache");
  auto written = std::make_shared<std::atomic<std::int64_t>>(0);
  keys_ = std::move(keys), values_ = std::move(values), written_ = std::move(written);
}

template <Floating T> Tensor<T> KVCache<T>::seen(const Tensor<T>& rows) const {
  return rows.view(detail::extended(lead_, length_, rows.size(-1)), rows.strides(), rows.data());
}

// Makes the rows length … end - 1 this cache's alone. They are already if nothing was written behind `length`,
// because then no view shows them. Otherwise a copy of this cache wrote there, or this one did before it was
// truncated: views may show those rows, so all rows move.
template <Floating T> void KVCache<T>::claim(std::int64_t end) {
  std::int64_t expected = length_;
  if (written_->compare_exchange_strong(expected, end)) return;
  if (detail::unshared(keys_) && detail::unshared(values_)) return written_->store(end);
  const Tensor<T> keys = this->keys(), values = this->values();
  make_rows(capacity(), key_width(), value_width());
  detail::copy_to(const_cast<T*>(keys_.data()), keys_.strides(), keys);
  detail::copy_to(const_cast<T*>(values_.data()), values_.strides(), values);
  written_->store(end);
}

template <Floating T> void KVCache<T>::append(const Tensor<T>& k, const Tensor<T>& v) {
  const std::int64_t n = detail::new_rows("KVCache.append", k, v, lead_, key_width(), value_width());
  require<ValueError>(
      n <= capacity() - length_,
      "KVCache.append: {} more tokens behind {} exceed the capacity of {}; make the cache with a larger "
      "one, truncate() it, or use a SlidingKVCache",
      n, length_, capacity());
  claim(length_ + n);
  const auto write = [this](const Tensor<T>& rows, const Tensor<T>& x) {
    detail::copy_to(const_cast<T*>(rows.data()) + length_ * rows.size(-1), rows.strides(), x);
  };
  write(keys_, k), write(values_, v);
  length_ += n;
}

template <Floating T> void KVCache<T>::truncate(std::int64_t length) {
  require<ValueError>(length >= 0 && length <= length_, "KVCache.truncate: to {} tokens of {}; it must be 0 to {}",
                      length, length_, length_);
  length_ = length;
}

namespace {

// Attention to the `length` rows of a cache from first_row on, each query to the last `window` of them (0: all).
template <class T> Tensor<T> decode_run(const Tensor<T>& q, const KVCache<T>& cache, std::int64_t first_row,
                                        std::int64_t length, std::int64_t window, const AttentionOptions<T>& options) {
  return detail::decode(q, cache.lead(), length, window, options,
                        {.keys = cache.keys().data(),
                         .values = cache.values().data(),
                         .length = length,
                         .d = cache.key_width(),
                         .dv = cache.value_width(),
                         .head_rows = cache.capacity(),
                         .run_rows = std::max<std::int64_t>(cache.capacity(), 1),
                         .first_rows = {&first_row, 1}},
                        [&] {
                          const auto part = [&](const Tensor<T>& x) {
                            return slice(x, -2, first_row, first_row + length);
                          };
                          return std::pair(part(cache.keys()), part(cache.values()));
                        });
}

}  // namespace

template <Floating T>
Tensor<T> decode(const Like<T>& q, const KVCache<T>& cache, const AttentionOptions<std::type_identity_t<T>>& options) {
  return decode_run(q, cache, 0, cache.length(), 0, options);
}

template <Floating T> SlidingKVCache<T>::SlidingKVCache(const Shape& lead, std::int64_t window, std::int64_t key_width,
                                                        std::int64_t value_width)
    : window_(window), rows_(lead, twice(window), key_width, value_width) {}

template <Floating T> void SlidingKVCache<T>::append(const Tensor<T>& k, const Tensor<T>& v) {
  const std::int64_t n =
      detail::new_rows("SlidingKVCache.append", k, v, rows_.lead(), rows_.key_width(), rows_.value_width());
  if (n == 0) return;
  const std::int64_t before = std::min(window_ - 1, rows_.length());  // the first of the new tokens sees these
  if (rows_.length() + n > rows_.capacity()) {
    KVCache<T> moved(rows_.lead(), std::max(2 * window_, before + n), rows_.key_width(), rows_.value_width());
    const auto tail = [&](const Tensor<T>& x) { return slice(x, -2, rows_.length() - before, rows_.length()); };
    moved.append(tail(rows_.keys()), tail(rows_.values()));
    moved.append(k, v);
    rows_ = std::move(moved);
  } else {
    rows_.append(k, v);
  }
  length_ += n, kept_ = before + n;
}

template <Floating T> Tensor<T> SlidingKVCache<T>::last(const Tensor<T>& x) const {
  return slice(x, -2, x.size(-2) - kept_, x.size(-2));
}

template <Floating T> Tensor<T> decode(const Like<T>& q, const SlidingKVCache<T>& cache,
                                       const AttentionOptions<std::type_identity_t<T>>& options) {
  const std::int64_t n = q.rank() < 2 ? 0 : q.size(-2), window = cache.window(), kept = cache.kept();
  require<ValueError>(
      kept == cache.length() || n <= kept - (window - 1),
      "decode: {} queries in a window of {}, and {} keys kept of {}: the first of them should see more; "
      "decode each chunk before the next is appended",
      n, window, kept, cache.length());
  const KVCache<T> rows = cache.rows();
  return decode_run(q, rows, rows.length() - kept, kept, window, options);
}

#define TAPEHEAD_CACHE(T)                                                                     \
  template class KVCache<T>;                                                                  \
  template class SlidingKVCache<T>;                                                           \
  template Tensor<T> decode(const Tensor<T>&, const KVCache<T>&, const AttentionOptions<T>&); \
  template Tensor<T> decode(const Tensor<T>&, const SlidingKVCache<T>&, const AttentionOptions<T>&);
TAPEHEAD_REALS(TAPEHEAD_CACHE)

}  // namespace tapehead
