#include "tapehead/models/attention.hpp"

#include "kernels/require.hpp"
#include "tapehead/attention/sdpa.hpp"
#include "tapehead/ops/rope.hpp"

namespace tapehead::nn {

Implementation implementation(const std::string& name) {
  if (name == "eager") return Implementation::eager;
  if (name == "sdpa") return Implementation::sdpa;
  if (name == "flash" || name == "flash_attention_2") return Implementation::flash;
  if (name == "flex" || name == "flex_attention") return Implementation::flex;
  raise<ValueError>("implementation: '{}'; there are 'eager', 'sdpa', 'flash' and 'flex'", name);
}

namespace {

// The dispatcher is asked for one backend, or may choose.
class Pinned {
 public:
  explicit Pinned(Implementation how) {
    if (how == Implementation::flash) kernel_.emplace(Backend::flash);
    if (how == Implementation::flex) kernel_.emplace(Backend::flex);
  }

 private:
  std::optional<sdpa_kernel> kernel_;
};

}  // namespace

template <Floating T> Attention<T> attend(Implementation how, const Tensor<T>& Q, const Like<T>& K, const Like<T>& V,
                                          const AttentionOptions<std::type_identity_t<T>>& options) {
  if (how == Implementation::eager) return attention(Q, K, V, options);
  const Pinned pinned(how);
  return {dispatch_attention(Q, K, V, options), {}};
}

template <Floating T> Tensor<T> attend_packed(Implementation how, const Tensor<T>& qkv, std::int64_t heads,
                                              const AttentionOptions<std::type_identity_t<T>>& options) {
  require<ValueError>(how != Implementation::eager, "attend_packed: eager takes queries, keys and values separately");
  const Pinned pinned(how);
  return dispatch_attention_qkvpacked(qkv, heads, options);
}

template <class T> Tensor<T> split_heads(const Tensor<T>& x, std::int64_t heads) {
  require<ShapeError>(
      x.rank() >= 2 && heads >= 1 && x.size(-1) % heads == 0,
      "attention: an input {} for {} heads; it must be (…, L, width), the width a multiple of the heads", x.shape(),
      heads);
  const Shape split = x.shape().replaced(x.rank() - 1, heads).with(x.rank(), x.size(-1) / heads);
  return x.reshape(split).transpose(-3, -2);
}
template <class T> Tensor<T> merge_heads(const Tensor<T>& x) {
  const Tensor<T> rows = x.transpose(-3, -2);
  const Shape& s = rows.shape();
  return rows.reshape(s.without(s.rank() - 1).replaced(s.rank() - 2, rows.size(-2) * rows.size(-1)));
}

template <class T> Tensor<T> rotated(const Tensor<T>& x, std::int64_t first_position, double theta) {
  return rope(x, arange<std::int64_t>(first_position, first_position + x.size(-2)), theta);
}

template <Floating T> Heads<T>::Heads(const char* op, std::int64_t full_width, const HeadOptions& o)
    : heads(o.heads), kv_heads(o.kv_heads != 0 ? o.kv_heads : o.heads), head_dim(heads > 0 ? full_width / heads : 0) {
  require<ShapeError>(
      heads >= 1 && kv_heads >= 1 && full_width % heads == 0 && heads % kv_heads == 0,
      "{}: width {}, {} heads on {} key and value heads; the heads must divide the width, and the key and "
      "value heads the heads",
      op, full_width, heads, kv_heads);
  require<ShapeError>(!o.rope || head_dim % 2 == 0,
                      "{}: heads of width {} / {} = {}; rope rotates pairs, so it must be even", op, full_width, heads,
                      head_dim);
  if (o.qk_norm) q_norm.emplace(head_dim), k_norm.emplace(head_dim);
  if (o.sinks) sinks = zeros<T>({heads});
}

#define TAPEHEAD_NN_ATTENTION(T)                                                                                \
  template Attention<T> attend(Implementation, const Tensor<T>&, const Tensor<T>&, const Tensor<T>&,            \
                               const AttentionOptions<T>&);                                                     \
  template Tensor<T> attend_packed(Implementation, const Tensor<T>&, std::int64_t, const AttentionOptions<T>&); \
  template Tensor<T> split_heads(const Tensor<T>&, std::int64_t);                                               \
  template Tensor<T> merge_heads(const Tensor<T>&);                                                             \
  template Tensor<T> rotated(const Tensor<T>&, std::int64_t, double);                                           \
  template struct Heads<T>;
TAPEHEAD_REALS(TAPEHEAD_NN_ATTENTION)

}  // namespace tapehead::nn
