#pragma once
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "kernels/decode.hpp"
#include "tapehead/attention/attention.hpp"
#include "tapehead/attention/flash.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/views.hpp"

// What the caches share: checking what is appended, and choosing how to attend to what is held.

namespace tapehead::detail {

/// The number of tokens in k (…, n, key_width) and v (…, n, value_width), checked.
template <class T>
std::int64_t new_rows(const char* op, const Tensor<T>& k, const Tensor<T>& v, const Shape& lead,
                      std::int64_t key_width, std::int64_t value_width) {
  const auto fits = [&](const Tensor<T>& x, std::int64_t width) {
    return x.rank() == lead.rank() + 2 && Shape(x.shape().begin(), x.shape().end() - 2) == lead &&
           x.size(-1) == width;
  };
  if (!fits(k, key_width) || !fits(v, value_width) || k.size(-2) != v.size(-2)) {
    const auto wanted = [&](std::int64_t width) {
      std::string text = "(";
      for (std::int64_t size : lead) text += fmt::format("{}, ", size);
      return text + fmt::format("n, {})", width);
    };
    throw ShapeError(fmt::format("{}: k {} and v {}; this cache takes k {} and v {}", op, k.shape().str(),
                                 v.shape().str(), wanted(key_width), wanted(value_width)));
  }
  if (is_recorded(k) || is_recorded(v))
    throw GradientError(fmt::format(
        "{}: a tape knows {}, and what goes through a cache has no gradient; append detach(x) to say that "
        "none is wanted, or decode outside the tape's scope",
        op, is_recorded(k) ? "k" : "v"));
  return k.size(-2);
}

/// Attention of q (…, n, d) to `length` keys, causal and bottom-right, each query to the last `window` (0:
/// all). A few queries go to the kernel that reads the cache where it lies, more of them to the fused one
/// over what `keys_and_values()` gives, and what a tape records to attention().
template <class T, class F>
Tensor<T> decode(const char* op, const Tensor<T>& q, const Shape& lead, std::int64_t length,
                 std::int64_t window, AttentionOptions<T> options, kernels::CachedRows<T> rows,
                 const F& keys_and_values) {
  const int heads_axis = lead.rank() - 1;
  const bool fits = q.rank() == lead.rank() + 2 && q.size(-1) == rows.d;
  std::int64_t group = 1;
  bool same_lead = fits;
  for (int axis = 0; same_lead && axis <= heads_axis; ++axis) {
    const std::int64_t have = lead[axis], asked = q.shape()[axis];
    same_lead = axis < heads_axis ? asked == have : have > 0 ? asked % have == 0 : asked == 0;
    if (axis == heads_axis && have > 0) group = asked / have;
  }
  if (!same_lead)
    throw ShapeError(
        fmt::format("{}: q {} on a cache of {} with keys of width {}; q is (…, n, width), its last leading "
                    "axis (the heads) "
                    "the cache's or a multiple of it",
                    op, q.shape().str(), lead.str(), rows.d));
  const std::int64_t n = q.size(-2);
  if (n > length)
    throw ValueError(fmt::format(
        "{}: {} queries and {} tokens in the cache; append the keys and values of the new tokens first", op,
        n, length));

  const bool plain =
      !options.mask && !options.bias && options.dropout_p == 0 && options.empty_rows == EmptyRows::zero;
  if (plain && (n == 1 || group * n <= 8) && !is_recorded(q)) {  // more rows are worth packing the keys for
    rows.heads = lead.numel();
    const double scale = options.scale ? *options.scale : 1 / std::sqrt(static_cast<double>(rows.d));
    Buffer<T> out(q.shape().replaced(q.rank() - 1, rows.dv), op);
    kernels::decode_rows(rows, group, n, contiguous(q).data(), static_cast<T>(scale), window, out.data());
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
