#pragma once
#include <cmath>
#include <utility>

#include "kernels/decode.hpp"
#include "kernels/require.hpp"
#include "tapehead/attention/attention.hpp"
#include "tapehead/attention/flash.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/views.hpp"
#include "tensor/copy.hpp"

// Shared by the caches: checks of appended rows, and the choice of a kernel for attention to the cached ones.

namespace tapehead::detail {

/// The number of tokens in k (…, n, key_width) and v (…, n, value_width), checked.
template <class T> std::int64_t new_rows(const char* op, const Tensor<T>& k, const Tensor<T>& v, const Shape& lead,
                                         std::int64_t key_width, std::int64_t value_width) {
  const auto fits = [&](const Tensor<T>& x, std::int64_t width) {
    return x.rank() == lead.rank() + 2 && Shape(x.shape().begin(), x.shape().end() - 2) == lead && x.size(-1) == width;
  };
  require<ShapeError>(fits(k, key_width) && fits(v, value_width) && k.size(-2) == v.size(-2),
                      "{}: k {} and v {}; this cache takes k (…, n, {}) and v (…, n, {}) with leading axes {}", op,
                      k.shape(), v.shape(), key_width, value_width, lead);
  require<GradientError>(
      !is_recorded(k) && !is_recorded(v),
      "{}: a tape knows {}, and what goes through a cache has no gradient; append detach(x) to say that "
      "none is wanted, or decode outside the tape's scope",
      op, is_recorded(k) ? "k" : "v");
  return k.size(-2);
}

/// Attention of q (…, n, d) to `length` keys, causal and bottom-right, each query to the last `window` keys (0:
/// all). A few queries go to the kernel that reads the cache in place, more of them to the fused kernel over what
/// `keys_and_values()` gives, and queries that a tape knows to attention().
template <class T, class F> Tensor<T> decode(const Tensor<T>& q, const Shape& lead, std::int64_t length,
                                             std::int64_t window, AttentionOptions<T> options,
                                             kernels::CachedRows<T> rows, const F& keys_and_values) {
  bool fits = q.rank() == lead.rank() + 2 && q.size(-1) == rows.d;
  std::int64_t group = 1;
  if (fits && lead.rank() > 0) {
    const int heads_axis = lead.rank() - 1;
    const std::int64_t kv_heads = lead[heads_axis], heads = q.size(-3);
    if (kv_heads > 0) group = heads / kv_heads;
    fits =
        group * kv_heads == heads && Shape(q.shape().begin(), q.shape().end() - 2) == lead.replaced(heads_axis, heads);
  }
  require<ShapeError>(
      fits,
      "decode: q {} on a cache of {} with keys of width {}; q is (…, n, width), its last leading axis (the "
      "heads) the cache's or a multiple of it",
      q.shape(), lead, rows.d);
  const std::int64_t n = q.size(-2);
  require<ValueError>(
      n <= length, "decode: {} queries and {} tokens in the cache; append the keys and values of the new tokens first",
      n, length);

  const bool plain = !options.mask && !options.bias && options.dropout_p == 0 && options.empty_rows == EmptyRows::zero;
  const bool recorded = is_recorded(q) || (options.sinks && is_recorded(*options.sinks));
  if (plain && (n == 1 || group * n <= 8) && !recorded) {  // more rows are worth packing the keys for
    rows.heads = lead.numel();
    Tensor<T> sinks;
    if (options.sinks) sinks = copied(broadcast_to(*options.sinks, Shape(q.shape().begin(), q.shape().end() - 2)));
    Buffer<T> out(q.shape().replaced(q.rank() - 1, rows.dv), "decode");
    kernels::decode_rows(rows, group, n, dense(q).data(), static_cast<T>(options.scale_for(rows.d)), window, out.data(),
                         options.sinks ? sinks.data() : nullptr);
    return out;
  }
  if (window > 0) {
    const Tensor<bool> near = sliding_window_mask(n, length, window, Align::bottom_right);
    options.mask = options.mask ? *options.mask & near : near;
  }
  options.causal = true, options.align = Align::bottom_right, options.enable_gqa = group > 1;
  const auto [k, v] = keys_and_values();
  if (q.rank() <= 4 && options.empty_rows == EmptyRows::zero && !is_recorded(q))
    return flash_attention(q, k, v, options).out;
  return attention(q, k, v, options).out;
}

}  // namespace tapehead::detail
