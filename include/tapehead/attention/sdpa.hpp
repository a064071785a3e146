#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tapehead/attention/attention.hpp"
#include "tapehead/tensor/tensor.hpp"

// One call, several kernels: scaled_dot_product_attention chooses, says what it chose and why, can be pinned,
// and refuses where a pinned kernel cannot serve. Nothing falls back in silence.

namespace tapehead {

/// math: attention(), the weights stored, differentiable any number of times. flash: flash_attention(). flex:
/// flex_attention().
enum class Backend { math, flash, flex };
const char* backend_name(Backend backend);

/// The arguments of torch.nn.functional.scaled_dot_product_attention under their names. attn_mask is a bool
/// tensor (true = may attend) or a float one (added to the scaled scores), broadcasting to (…, Lq, Lk).
/// is_causal is aligned top left; together with a mask, both hold. dropout_p > 0 needs a generator or the
/// mask itself.
template <class T>
struct SdpaOptions {
  std::variant<std::monostate, Tensor<bool>, Tensor<T>> attn_mask = {};
  double dropout_p = 0;
  bool is_causal = false;
  std::optional<double> scale = {};
  bool enable_gqa = false;
  TorchRandom* generator = nullptr;
  std::optional<Tensor<bool>> keep_mask = {};
};

/// softmax(q kᵀ · scale) v by the first backend that can serve the call: flash, math, flex, unless
/// sdpa_kernel names others. Throws ValueError with each listed backend's reason when none can.
template <std::floating_point T>
Tensor<T> scaled_dot_product_attention(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                       const SdpaOptions<std::type_identity_t<T>>& options = {});

/// The same for the heads of one tensor, (…, Hq + 2 Hkv, L, d): by flash_attention_qkvpacked() where flash is
/// the choice.
template <std::floating_point T>
Tensor<T> scaled_dot_product_attention_qkvpacked(const Tensor<T>& qkv, std::int64_t heads,
                                                 const SdpaOptions<std::type_identity_t<T>>& options = {});

/// While it lives, on its thread: only these backends, in this order. Scopes nest, the innermost holds.
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
template <std::floating_point T>
std::string explain_sdpa(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                         const SdpaOptions<std::type_identity_t<T>>& options = {});

/// What the last call on this thread ran; nothing before the first.
std::optional<Backend> last_sdpa_backend();

}  // namespace tapehead
