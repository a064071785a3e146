#include "tapehead/attention/masks.hpp"

#include "kernels/require.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace {

// (Lq, Lk): true where the key's position minus the query's lies in nearest … furthest.
Tensor<bool> band(const char* op, std::int64_t Lq, std::int64_t Lk, Align align, std::int64_t first,
                  std::int64_t last) {
  Buffer<bool> mask({Lq, Lk}, op);
  const std::int64_t offset = align == Align::bottom_right ? Lk - Lq : 0;
  for (std::int64_t n = 0; n < mask.numel(); ++n) {  // by element: a side may be 2^62 long where the other is 0
    const std::int64_t distance = n % Lk - n / Lk - offset;
    mask[n] = distance >= first && distance <= last;
  }
  return mask;
}

constexpr std::int64_t unbounded = std::int64_t{1} << 62;

}  // namespace

Tensor<bool> causal_mask(std::int64_t n) { return causal_mask(n, n, Align::top_left); }
Tensor<bool> causal_mask(std::int64_t Lq, std::int64_t Lk, Align align) {
  return band("causal_mask", Lq, Lk, align, -unbounded, 0);
}

Tensor<bool> padding_mask(const std::vector<std::int64_t>& lengths, std::int64_t L) {
  const auto B = static_cast<std::int64_t>(lengths.size());
  Buffer<bool> mask({B, 1, 1, L}, "padding_mask");
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int64_t length = lengths[static_cast<std::size_t>(b)];
    require<ValueError>(length >= 0 && length <= L, "padding_mask: length {} of sequence {}; it must be in 0 to {}",
                        length, b, L);
    for (std::int64_t j = 0; j < L; ++j) mask[b * L + j] = j < length;
  }
  return mask;
}

Tensor<bool> document_mask(const Tensor<std::int64_t>& ids) {
  require<ShapeError>(ids.rank() == 1 || ids.rank() == 2,
                      "document_mask: ids of shape {}; give (L,) for one sequence or (B, L) for a batch", ids.shape());
  const Tensor<bool> same = eq(unsqueeze(ids, -1), unsqueeze(ids, -2));
  return ids.rank() == 1 ? same : unsqueeze(same, 1);
}

Tensor<bool> sliding_window_mask(std::int64_t L, std::int64_t window) {
  return sliding_window_mask(L, L, window, Align::top_left);
}
Tensor<bool> sliding_window_mask(std::int64_t Lq, std::int64_t Lk, std::int64_t window, Align align) {
  require<ValueError>(window >= 1, "sliding_window_mask: window {}; it counts the query's own key, so it is at least 1",
                      window);
  return band("sliding_window_mask", Lq, Lk, align, 1 - window, 0);
}

Tensor<bool> prefix_mask(std::int64_t L, std::int64_t prefix) {
  require<ValueError>(prefix >= 0, "prefix_mask: prefix {}; it must not be negative", prefix);
  const Tensor<bool> in_prefix = lt(arange<std::int64_t>(L), scalar(prefix));
  return causal_mask(L) | in_prefix;
}

}  // namespace tapehead
