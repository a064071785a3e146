#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tapehead/attention/flex.hpp"

// Ready-made score and mask functions for flex_attention, and how to combine masks. Positions count from 0 on
// both sides (aligned top left).

namespace tapehead {

/// A mask function that asks for all, or for any, of several others.
template <class... M> auto and_masks(M... masks) {
  return [=](auto b, auto h, auto q, auto kv) { return (masks(b, h, q, kv) && ...); };
}
template <class... M> auto or_masks(M... masks) {
  return [=](auto b, auto h, auto q, auto kv) { return (masks(b, h, q, kv) || ...); };
}

namespace flex {

/// j <= i.
inline auto causal() {
  return [](auto, auto, auto q, auto kv) { return kv <= q; };
}
/// The `window` keys up to the query's own, itself counted.
inline auto sliding_window(std::int64_t window) {
  if (window < 1)
    throw ValueError("flex::sliding_window: window " + std::to_string(window) +
                     "; it counts the query's own key, so it is at least 1");
  return [window](auto, auto, auto q, auto kv) { return kv <= q && q - kv < window; };
}
/// The first `prefix` keys for everyone, the rest causally: prefix_mask(). Where there are fewer keys, all of them.
inline auto prefix_lm(std::int64_t prefix) {
  if (prefix < 0) throw ValueError("flex::prefix_lm: prefix " + std::to_string(prefix) + "; it must not be negative");
  return [prefix](auto, auto, auto q, auto kv) { return kv < prefix || kv <= q; };
}
/// Keys of the query's own document: ids (L,), or (B, L) with a row for each sequence of the batch.
inline auto document(const Tensor<std::int64_t>& ids) {
  if (ids.rank() != 1 && ids.rank() != 2)
    throw ShapeError("flex::document: ids of shape " + ids.shape().str() + "; give (L,) or (B, L)");
  return [list = ids.to_vector(), L = ids.size(-1), each = ids.rank() == 2](std::int64_t b, std::int64_t,
                                                                            std::int64_t q, std::int64_t kv) {
    const std::int64_t row = each ? b * L : 0;
    const auto id = [&](std::int64_t i) {
      if (i >= L)
        throw IndexError("flex::document: position " + std::to_string(i) + " of " + std::to_string(L) + " ids");
      if (static_cast<std::size_t>(row + L) > list.size())
        throw IndexError("flex::document: sequence " + std::to_string(b) + " of a batch, beyond the rows of ids");
      return list[static_cast<std::size_t>(row + i)];
    };
    return id(q) == id(kv);
  };
}

/// Attention with linear biases (Press et al. 2021): the score plus slopes[h] (j - i). Slopes are (H,) and
/// train.
template <class T> auto alibi(const Tensor<T>& slopes) {
  return score_mod([](auto s, auto, auto h, auto q, auto kv, auto slope) { return s + slope(h) * (kv - q); }, slopes);
}
/// cap tanh(s / cap) (Gemma 2). The cap is a zero-dimensional tensor and trains.
template <class T> auto soft_cap(const Tensor<T>& cap) {
  return score_mod(
      [](auto s, auto, auto, auto, auto, auto c) {
        const auto limit = c();
        return limit * tanh(s / limit);
      },
      cap);
}
/// The score plus table[h, i - j + R - 1], distances beyond R - 1 taken as R - 1 (Shaw et al. 2018; T5). The
/// table is (H, 2R - 1) and trains.
template <class T> auto relative_bias(const Tensor<T>& table) {
  if (table.rank() != 2 || table.size(1) % 2 == 0)
    throw ShapeError("flex::relative_bias: a table of shape " + table.shape().str() +
                     "; it is (H, 2R - 1), one number for each distance -R + 1 to R - 1");
  return score_mod(
      [R = (table.size(1) + 1) / 2](auto s, auto, auto h, auto q, auto kv, auto bias) {
        const std::int64_t distance = q - kv < 1 - R ? 1 - R : q - kv > R - 1 ? R - 1 : q - kv;
        return s + bias(h, distance + R - 1);
      },
      table);
}

}  // namespace flex
}  // namespace tapehead
