#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tapehead/attention/attention.hpp"
#include "tapehead/tensor/tensor.hpp"

// One call, several implementations. The dispatcher chooses one, says which it chose and why, can be pinned to
// one, and refuses a call that a pinned one cannot serve: it never falls back silently.

namespace tapehead {

/// math: attention(), which stores the weights and can be differentiated any number of times. flash:
/// flash_attention(). flex: flex_attention() without functions, the same kernel but for dropout.
enum class Backend { math, flash, flex };
const char* backend_name(Backend backend);

/// attention(q, k, v, options).out by the first backend that can serve the call: flash, math, flex, unless
/// sdpa_kernel names others. Throws ValueError with each listed backend's reason when none can.
template <Floating T> Tensor<T> dispatch_attention(const Tensor<T>& q, const Like<T>& k, const Like<T>& v,
                                                   const AttentionOptions<std::type_identity_t<T>>& options = {});

/// The same for the heads of one tensor, (…, Hq + 2 Hkv, L, d): by flash_attention_qkvpacked() where flash is
/// chosen.
template <Floating T>
Tensor<T> dispatch_attention_qkvpacked(const Tensor<T>& qkv, std::int64_t heads,
                                       const AttentionOptions<std::type_identity_t<T>>& options = {});

/// The arguments of torch.nn.functional.scaled_dot_product_attention under their names there, and the two that
/// draw its dropout. attn_mask is a bool tensor (true = may attend) or a float one (added to the scaled
/// scores), broadcasting to (…, Lq, Lk). is_causal is aligned top left; together with a mask, both hold.
template <class T> struct SdpaOptions {
  std::variant<std::monostate, Tensor<bool>, Tensor<T>> attn_mask = {};
  double dropout_p = 0;
  bool is_causal = false;
  std::optional<double> scale = {};
  bool enable_gqa = false;
  TorchRandom* generator = nullptr;
  std::optional<Tensor<bool>> keep_mask = {};

  operator AttentionOptions<T>() const {
    AttentionOptions<T> o{.causal = is_causal,
                          .scale = scale,
                          .enable_gqa = enable_gqa,
                          .dropout_p = dropout_p,
                          .generator = generator,
                          .keep_mask = keep_mask};
    if (const auto* mask = std::get_if<Tensor<bool>>(&attn_mask)) o.mask = *mask;
    if (const auto* bias = std::get_if<Tensor<T>>(&attn_mask)) o.bias = *bias;
    return o;
  }
};

/// softmax(q kᵀ · scale) v: dispatch_attention() with PyTorch's signature.
template <Floating T> Tensor<T> scaled_dot_product_attention(const Tensor<T>& q, const Like<T>& k, const Like<T>& v,
                                                             const SdpaOptions<std::type_identity_t<T>>& options = {}) {
  return dispatch_attention<T>(q, k, v, options);
}

/// While one lives, only these backends are used on its thread, in this order. Scopes nest; the innermost
/// counts.
class sdpa_kernel {
 public:
  sdpa_kernel(Backend backend) : sdpa_kernel(std::vector<Backend>{backend}) {}
  sdpa_kernel(std::initializer_list<Backend> backends) : sdpa_kernel(std::vector<Backend>(backends)) {}
  /// Throws ValueError for an empty list.
  explicit sdpa_kernel(std::vector<Backend> backends);
  ~sdpa_kernel();
  sdpa_kernel(const sdpa_kernel&) = delete;
  sdpa_kernel& operator=(const sdpa_kernel&) = delete;

 private:
  std::vector<Backend> before_;
};

/// The decision as a table: each backend, whether it can serve this call, why not, and which would run.
template <Floating T> std::string explain_sdpa(const Tensor<T>& q, const Like<T>& k, const Like<T>& v,
                                               const SdpaOptions<std::type_identity_t<T>>& options = {});

/// The backend that the last call on this thread ran; nothing before the first.
std::optional<Backend> last_sdpa_backend();

}  // namespace tapehead
