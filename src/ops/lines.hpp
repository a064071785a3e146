#pragma once
#include <array>
#include <cstdint>

#include "tapehead/tensor/shape.hpp"

namespace tapehead::detail {

/// Calls f(offsets) for every line along an axis that has elements: for each position on the other axes of
/// `shape`, in row-major order, where the line begins in each of n arrays with these strides.
template <std::size_t n, class F>
void for_each_line(const Shape& shape, int axis, const std::array<Strides, n>& strides, const F& f) {
  std::array<std::int64_t, n> offsets{};
  std::int64_t index[max_rank] = {};
  if (shape.numel() == 0) return;
  for (;;) {
    f(offsets);
    int at = shape.rank() - 1;
    for (; at >= 0; --at) {
      if (at == axis) continue;
      const bool wraps = ++index[at] == shape[at];
      for (std::size_t i = 0; i < n; ++i) offsets[i] += (wraps ? 1 - shape[at] : 1) * strides[i][at];
      if (!wraps) break;
      index[at] = 0;
    }
    if (at < 0) return;
  }
}

}  // namespace tapehead::detail
