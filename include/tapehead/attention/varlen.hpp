#pragma once
#include <cstdint>

#include "tapehead/attention/flash.hpp"
#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

/// Attention inside each document of a packed buffer: q (total_q, Hq, d), k (total_k, Hkv, d), v (total_k,
/// Hkv, d_v). Document n has query rows cu_seqlens_q[n] … cu_seqlens_q[n + 1] - 1, and its keys likewise: there
/// is no padding, and no document sees another. Gives out (total_q, Hq, d_v) and lse (total_q, Hq). Empty
/// documents are allowed. In the options, causal is aligned bottom_right unless `align` says otherwise (as in
/// flash-attention >= 2.1), and mask, bias, keep_mask and dropout see scores (documents, Hq, longest Lq,
/// longest Lk), where positions count from 0 in each document. Throws as flash_attention, and ShapeError or
/// ValueError where cu_seqlens does not start at 0, falls, does not end at the number of rows, or counts other
/// documents for keys than for queries. The layout of flash_attn_varlen_func (Dao et al.).
template <Floating T> Flash<T> flash_attention_varlen(const Tensor<T>& q, const Like<T>& k, const Like<T>& v,
                                                      const Tensor<std::int64_t>& cu_seqlens_q,
                                                      const Tensor<std::int64_t>& cu_seqlens_k,
                                                      const AttentionOptions<std::type_identity_t<T>>& options = {});

}  // namespace tapehead
