#pragma once
#include <vector>

#include "tapehead/attention/attention.hpp"

// The checks that every rung of attention makes before it computes, so that all of them refuse the same input
// in the same words.

namespace tapehead::detail {

/// The shape with two more axes behind those of `lead`.
inline Shape extended(const Shape& lead, std::int64_t rows, std::int64_t columns) {
  return lead.with(lead.rank(), rows).with(lead.rank() + 1, columns);
}

/// Throws ShapeError unless Q (…, Lq, d_k), K (…, Lk, d_k), V (…, Lk, d_v) fit together, and with grouped
/// heads Hq is a multiple of Hkv.
template <class T>
void check_attention(const char* op, const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V, bool enable_gqa);

/// Q, the first `heads` of qkv (…, Hq + 2 Hkv, L, d), then K and V, half of the others each. Throws
/// ShapeError where they do not come out.
template <class T> std::vector<Tensor<T>> split_qkv(const char* op, const Tensor<T>& qkv, std::int64_t heads);

/// Throws ShapeError unless a mask, bias or keep_mask (called `name` in the text) broadcasts to the scores'
/// shape.
void check_scores_operand(const char* op, const char* name, const Shape& shape, const Shape& scores);

/// Throws ValueError for a dropout_p outside 0 … 1, and where p > 0 has neither mask nor generator.
void check_dropout(const char* op, double dropout_p, const std::optional<Tensor<bool>>& keep_mask,
                   const TorchRandom* generator, const Shape& scores);

/// The sinks (…, H) as logits (…, H, 1, 1). Throws ShapeError unless these broadcast to the scores' shape.
template <class T> Tensor<T> sink_logits(const char* op, const Tensor<T>& sinks, const Shape& scores);

}  // namespace tapehead::detail
