#pragma once
#include <cstdint>
#include <vector>

#include "tapehead/tensor/tensor.hpp"

// Masks say which query may attend to which key. A mask is a bool tensor, true = may attend, that broadcasts to (…, Lq,
// Lk); masks combine with &, | and ~. Padding should be finite numbers: a masked *score* is selected away and never
// becomes a weight, but 0 · NaN is NaN, so a NaN in a masked value still reaches the output, and one in a masked key
// the gradient of the query.

namespace tapehead {

/// Where query 0 stands when there are fewer or more keys than queries: at key 0 (PyTorch's is_causal), or so
/// that the last query stands at the last key (a chunk of new tokens behind a cache).
enum class Align { top_left, bottom_right };

/// (n, n): query i sees keys j <= i.
Tensor<bool> causal_mask(std::int64_t n);
/// (Lq, Lk): query i sees keys j <= i (top_left) or j <= i + Lk - Lq (bottom_right).
Tensor<bool> causal_mask(std::int64_t Lq, std::int64_t Lk, Align align);

/// (B, 1, 1, L): of sequence b the first lengths[b] keys, for every head and query. Throws ValueError on a
/// length outside 0 … L.
Tensor<bool> padding_mask(const std::vector<std::int64_t>& lengths, std::int64_t L);

/// Keys of the query's own document. Ids (L,) give (L, L); ids (B, L) give (B, 1, L, L).
Tensor<bool> document_mask(const Tensor<std::int64_t>& ids);

/// (L, L): query i sees the `window` keys i - window + 1 … i, itself included; with Lq and Lk it stands as
/// `align` says.
Tensor<bool> sliding_window_mask(std::int64_t L, std::int64_t window);
Tensor<bool> sliding_window_mask(std::int64_t Lq, std::int64_t Lk, std::int64_t window, Align align);

/// (L, L): the first `prefix` keys are seen by every query, the rest causally; with L or more all are seen by every
/// query, as by flex::prefix_lm. Throws ValueError where prefix is negative.
Tensor<bool> prefix_mask(std::int64_t L, std::int64_t prefix);

}  // namespace tapehead
