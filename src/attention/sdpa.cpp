#include "tapehead/attention/sdpa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "attention/attention_inputs.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/attention/flash.hpp"
#include "tapehead/attention/flex.hpp"
#include "tapehead/autograd/tape.hpp"

namespace tapehead {

namespace {

thread_local std::vector<Backend> allowed = {Backend::flash, Backend::math, Backend::flex};
thread_local std::optional<Backend> last;

template <class T>
AttentionOptions<T> eager_options(const SdpaOptions<T>& o) {
  AttentionOptions<T> options;
  if (const auto* mask = std::get_if<Tensor<bool>>(&o.attn_mask)) options.mask = *mask;
  if (const auto* bias = std::get_if<Tensor<T>>(&o.attn_mask)) options.bias = *bias;
  options.causal = o.is_causal, options.scale = o.scale, options.enable_gqa = o.enable_gqa;
  options.dropout_p = o.dropout_p, options.generator = o.generator, options.keep_mask = o.keep_mask;
  return options;
}

// How many live tapes would record this call: with two, its gradients are to be differentiated again.
template <class T>
int tapes_that_know(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                    const SdpaOptions<T>& options) {
  int count = 0;
  const auto* bias = std::get_if<Tensor<T>>(&options.attn_mask);
  for (const Tape<T>* tape = Tape<T>::innermost(); tape != nullptr; tape = tape->outer())
    count += !tape->suspended() &&
             (tape->knows(q) || tape->knows(k) || tape->knows(v) || (bias != nullptr && tape->knows(*bias)));
  return count;
}

// Why a backend cannot serve this call; empty where it can.
template <class T>
std::string reason_against(Backend backend, const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                           const SdpaOptions<T>& options) {
  if (backend == Backend::math) return "";
  const int rank = std::max(q.rank(), std::max(k.rank(), v.rank()));
  if (rank > 4)
    return fmt::format("rank {}: the fused kernel takes (L, d) with at most batch and heads in front", rank);
  if (const int tapes = tapes_that_know(q, k, v, options); tapes > 1)
    return fmt::format("{} tapes know the inputs, and the fused kernel has no second derivative", tapes);
  if (backend == Backend::flex && options.dropout_p > 0) return "dropout: flex_attention has none";
  return "";
}

template <class T>
std::optional<Backend> choose(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                              const SdpaOptions<T>& options) {
  for (Backend backend : allowed)
    if (reason_against(backend, q, k, v, options).empty()) return backend;
  return {};
}

}  // namespace

const char* backend_name(Backend backend) {
  return backend == Backend::math ? "math" : backend == Backend::flash ? "flash" : "flex";
}

sdpa_kernel::sdpa_kernel(std::vector<Backend> backends) {
  if (backends.empty())
    throw ValueError("sdpa_kernel: an empty list; name at least one of math, flash, flex");
  before_ = std::exchange(allowed, std::move(backends));
}
sdpa_kernel::~sdpa_kernel() { allowed = std::move(before_); }

std::optional<Backend> last_sdpa_backend() { return last; }

template <std::floating_point T>
Tensor<T> scaled_dot_product_attention(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                       const SdpaOptions<std::type_identity_t<T>>& options) {
  const std::optional<Backend> backend = choose(q, k, v, options);
  if (!backend) {
    std::string reasons;
    for (Backend b : allowed)
      reasons += fmt::format("\n  {}: {}", backend_name(b), reason_against(b, q, k, v, options));
    throw ValueError(
        fmt::format("scaled_dot_product_attention: q {}, k {}, v {}: none of the backends that sdpa_kernel "
                    "allows can serve "
                    "this call:{}",
                    q.shape().str(), k.shape().str(), v.shape().str(), reasons));
  }
  Tensor<T> out = *backend == Backend::math    ? attention(q, k, v, eager_options(options)).out
                  : *backend == Backend::flash ? flash_attention(q, k, v, eager_options(options)).out
                                               : detail::flex_sdpa(q, k, v, eager_options(options));
  last = backend;
  return out;
}

template <std::floating_point T>
Tensor<T> scaled_dot_product_attention_qkvpacked(const Tensor<T>& qkv, std::int64_t heads,
                                                 const SdpaOptions<std::type_identity_t<T>>& options) {
  if (choose(qkv, qkv, qkv, options) == Backend::flash) {
    Tensor<T> out = flash_attention_qkvpacked(qkv, heads, eager_options(options)).out;
    last = Backend::flash;
    return out;
  }
  const auto parts = detail::split_qkv("scaled_dot_product_attention_qkvpacked", qkv, heads);
  SdpaOptions<T> grouped = options;
  grouped.enable_gqa = true;
  return scaled_dot_product_attention(parts[0], parts[1], parts[2], grouped);
}

template <std::floating_point T>
std::string explain_sdpa(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                         const SdpaOptions<std::type_identity_t<T>>& options) {
  const std::optional<Backend> chosen = choose(q, k, v, options);
  std::string table = fmt::format("scaled_dot_product_attention: q {}, k {}, v {}\n", q.shape().str(),
                                  k.shape().str(), v.shape().str());
  for (Backend backend : allowed) {
    const std::string reason = reason_against(backend, q, k, v, options);
    table += fmt::format("  {:5}  {}\n", backend_name(backend),
                         !reason.empty()     ? "no: " + reason
                         : backend == chosen ? "runs"
                                             : "could");
  }
  for (Backend backend : {Backend::flash, Backend::math, Backend::flex})
    if (std::find(allowed.begin(), allowed.end(), backend) == allowed.end())
      table += fmt::format("  {:5}  not allowed here by sdpa_kernel\n", backend_name(backend));
  return table;
}

#define TAPEHEAD_SDPA(T)                                                                                \
  template Tensor<T> scaled_dot_product_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, \
                                                  const SdpaOptions<T>&);                               \
  template Tensor<T> scaled_dot_product_attention_qkvpacked(const Tensor<T>&, std::int64_t,             \
                                                            const SdpaOptions<T>&);                     \
  template std::string explain_sdpa(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&,               \
                                    const SdpaOptions<T>&);
TAPEHEAD_SDPA(float)
TAPEHEAD_SDPA(double)

}  // namespace tapehead
