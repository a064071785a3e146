#include "tapehead/attention/flash.hpp"

#include "attention/attention_inputs.hpp"
#include "attention/fused.hpp"
#include "kernels/require.hpp"

namespace tapehead {

const Op flash_attention_op{"flash_attention",
                            "O = softmax(Q Kᵀ / √d_k) V, by tiles; m = max S and l = Σ exp(S - m) are kept",
                            "A = exp(S - m) / l, D = rowsum(dO ⊙ O), then as attention_backward",
                            "(…, Lq, d) (…, Lk, d) (…, Lk, d_v) → (…, Lq, d_v)"};
const Op qkvpacked_op{"flash_attention_qkvpacked", "flash_attention with Q, K and V the heads of one tensor",
                      "dQ, dK and dV as flash_attention, side by side", "(…, Hq + 2 Hkv, L, d) → (…, Hq, L, d)"};

template <Floating T> Flash<T> flash_attention(const Tensor<T>& Q, const Like<T>& K, const Like<T>& V,
                                               const AttentionOptions<std::type_identity_t<T>>& options) {
  return detail::run_fused<T>(flash_attention_op, {Q, K, V}, options);
}
template <Floating T> Flash<T> flash_attention_qkvpacked(const Tensor<T>& qkv, std::int64_t heads,
                                                         const AttentionOptions<std::type_identity_t<T>>& options) {
  const auto parts = detail::split_qkv(qkvpacked_op.name, detach(qkv), heads);
  return detail::run_fused<T>(qkvpacked_op, {parts[0], parts[1], parts[2], qkv}, options);
}

#define TAPEHEAD_FLASH(T)                                                                                              \
  template Flash<T> flash_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, const AttentionOptions<T>&); \
  template Flash<T> flash_attention_qkvpacked(const Tensor<T>&, std::int64_t, const AttentionOptions<T>&);
TAPEHEAD_REALS(TAPEHEAD_FLASH)

}  // namespace tapehead
