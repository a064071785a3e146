#include "tapehead/attention/sdpa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "attention/attention_inputs.hpp"
#include "kernels/require.hpp"
#include "tapehead/attention/flash.hpp"
#include "tapehead/attention/flex.hpp"
#include "tapehead/autograd/tape.hpp"

namespace tapehead {

namespace {

thread_local std::vector<Backend> allowed = {Backend::flash, Backend::math, Backend::flex};
thread_local std::optional<Backend> last;

// How many live tapes would record this call: with two, its gradients are to be differentiated again.
template <class T>
int tapes_that_know(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, const AttentionOptions<T>& o) {
  int count = 0;
  for (const Tape<T>* tape = Tape<T>::innermost(); tape != nullptr; tape = tape->outer())
    count += !tape->suspended() && (tape->knows(q) || tape->knows(k) || tape->knows(v) ||
                                    (o.bias && tape->knows(*o.bias)) || (o.sinks && tape->knows(*o.sinks)));
  return count;
}

// Why a backend cannot serve this call; empty where it can.
template <class T> std::string reason_against(Backend backend, const Tensor<T>& q, const Tensor<T>& k,
                                              const Tensor<T>& v, const AttentionOptions<T>& options) {
  if (backend == Backend::math) return "";
  const int rank = std::max({q.rank(), k.rank(), v.rank()});
  if (rank > 4)
    return fmt::format("rank {}: the fused kernel takes (L, d) with at most batch and heads in front", rank);
  if (const int tapes = tapes_that_know(q, k, v, options); tapes > 1)
    return fmt::format("{} tapes know the inputs, and the fused kernel has no second derivative", tapes);
  if (options.empty_rows == EmptyRows::nan) return "EmptyRows::nan: the fused kernel gives 0 for a query with no key";
  if (backend == Backend::flex && options.dropout_p > 0) return "dropout: flex_attention has none";
  return "";
}

template <class T> std::optional<Backend> choose(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                                 const AttentionOptions<T>& options) {
  for (Backend backend : allowed)
    if (reason_against(backend, q, k, v, options).empty()) return backend;
  return {};
}

}  // namespace

const char* backend_name(Backend backend) {
  return backend == Backend::math ? "math" : backend == Backend::flash ? "flash" : "flex";
}

sdpa_kernel::sdpa_kernel(std::vector<Backend> backends) {
  require<ValueError>(!backends.empty(), "sdpa_kernel: an empty list; name at least one of math, flash, flex");
  before_ = std::exchange(allowed, std::move(backends));
}
sdpa_kernel::~sdpa_kernel() { allowed = std::move(before_); }

std::optional<Backend> last_sdpa_backend() { return last; }

template <Floating T> Tensor<T> dispatch_attention(const Tensor<T>& q, const Like<T>& k, const Like<T>& v,
                                                   const AttentionOptions<std::type_identity_t<T>>& options) {
  const std::optional<Backend> backend = choose(q, k, v, options);
  if (!backend) {
    std::string reasons;
    for (Backend b : allowed)
      reasons += fmt::format("\n  {}: {}", backend_name(b), reason_against(b, q, k, v, options));
    raise<ValueError>(
        "scaled_dot_product_attention: q {}, k {}, v {}: none of the backends that sdpa_kernel allows can serve this "
        "call:{}",
        q.shape(), k.shape(), v.shape(), reasons);
  }
  Tensor<T> out = *backend == Backend::math    ? attention(q, k, v, options).out
                  : *backend == Backend::flash ? flash_attention(q, k, v, options).out
                                               : flex_attention(q, k, v, NoScoreMod{}, NoMaskMod{}, options).out;
  last = backend;
  return out;
}

template <Floating T> Tensor<T> dispatch_attention_qkvpacked(const Tensor<T>& qkv, std::int64_t heads,
                                                             const AttentionOptions<std::type_identity_t<T>>& options) {
  if (choose(qkv, qkv, qkv, options) == Backend::flash) {
    Tensor<T> out = flash_attention_qkvpacked(qkv, heads, options).out;
    last = Backend::flash;
    return out;
  }
  const auto parts = detail::split_qkv("dispatch_attention_qkvpacked", qkv, heads);
  AttentionOptions<T> grouped = options;
  grouped.enable_gqa = true;
  return dispatch_attention(parts[0], parts[1], parts[2], grouped);
}

template <Floating T> std::string explain_sdpa(const Tensor<T>& q, const Like<T>& k, const Like<T>& v,
                                               const SdpaOptions<std::type_identity_t<T>>& given) {
  const AttentionOptions<T> options = given;
  const std::optional<Backend> chosen = choose(q, k, v, options);
  std::string table = fmt::format("scaled_dot_product_attention: q {}, k {}, v {}\n", q.shape().str(), k.shape().str(),
                                  v.shape().str());
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

#define TAPEHEAD_SDPA(T)                                                                                       \
  template Tensor<T> dispatch_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&,                  \
                                        const AttentionOptions<T>&);                                           \
  template Tensor<T> dispatch_attention_qkvpacked(const Tensor<T>&, std::int64_t, const AttentionOptions<T>&); \
  template std::string explain_sdpa(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, const SdpaOptions<T>&);
TAPEHEAD_REALS(TAPEHEAD_SDPA)

}  // namespace tapehead
