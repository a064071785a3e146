#pragma once
#include <concepts>
#include <cstdint>
#include <optional>

#include "tapehead/attention/flash.hpp"
#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

struct VarlenOptions {
  bool causal = false;
  Align align = Align::bottom_right;  ///< where causal places the queries of a document with more keys
                                      ///< (flash-attention >= 2.1)
  std::optional<double> scale = {};   ///< default 1/√d_k
  bool enable_gqa = false;
  double dropout_p = 0;  ///< needs the generator; drops by (seed, document, h, i, j)
  TorchRandom* generator = nullptr;
};

/// Attention inside each document of a packed buffer: q (total_q, Hq, d), k (total_k, Hkv, d), v (total_k,
/// Hkv, d_v). Document n has query rows cu_seqlens_q[n] … cu_seqlens_q[n + 1] - 1, and keys likewise: no
/// mask, no padding, no document sees another. Gives out (total_q, Hq, d_v) and lse (total_q, Hq). Empty
/// documents are fine. Throws ShapeError or ValueError where cu_seqlens does not start at 0, falls, does not
/// end at the number of rows, or counts other documents for keys than for queries. The layout of
/// flash_attn_varlen_func (Dao et al.).
template <std::floating_point T>
Flash<T> flash_attention_varlen(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                const Tensor<std::int64_t>& cu_seqlens_q,
                                const Tensor<std::int64_t>& cu_seqlens_k, const VarlenOptions& options = {});

}  // namespace tapehead
