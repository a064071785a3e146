#pragma once
#include <cstdint>

#include "tapehead/attention/attention.hpp"
#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

template <class T> struct Flash {
  Tensor<T> out;  ///< (…, Lq, d_v)
  /// (…, Lq): log Σ exp of each row's scores, its sink included; -inf where there is none; carries no gradient
  Tensor<T> lse;
  std::int64_t tiles = 0;    ///< number of tiles of scores, about 96 x 64 each
  std::int64_t skipped = 0;  ///< how many of these were skipped because nothing in them may attend
};

/// attention() without ever storing the (Lq, Lk) weights: online softmax over tiles, forward and backward in
/// O(L d) memory. Equal to it within rounding, with the same options. Axes in front of (L, d) are (batch,
/// heads): rank 2, 3 (heads) or 4. Its gradients are values: differentiating them again throws GradientError
/// and names the operation. Throws ShapeError and ValueError as attention() does, and ValueError for
/// EmptyRows::nan. Dao, Fu, Ermon, Rudra, Ré, "FlashAttention" (2022); Milakov and Gimelshein (2018) for the
/// online softmax.
template <Floating T> Flash<T> flash_attention(const Tensor<T>& Q, const Like<T>& K, const Like<T>& V,
                                               const AttentionOptions<std::type_identity_t<T>>& options = {});

/// The same where one tensor (…, Hq + 2 Hkv, L, d) holds queries, keys and values as its heads, in this order;
/// the first `heads` are the queries'. The gradient is one tensor too, so that one matrix product makes Q, K
/// and V and one takes the gradients back. Throws ShapeError where the other heads are not an even number, or
/// Hkv does not divide Hq.
template <Floating T> Flash<T> flash_attention_qkvpacked(const Tensor<T>& qkv, std::int64_t heads,
                                                         const AttentionOptions<std::type_identity_t<T>>& options = {});

}  // namespace tapehead
