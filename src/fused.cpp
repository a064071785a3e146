#include "fused.hpp"

#include <fmt/format.h>

#include <cmath>

#include "attention_inputs.hpp"
#include "tapehead/error.hpp"

namespace tapehead::detail {

namespace {

// Strides over lead + (rows, elements), lead having 0 to 2 axes: heads are the last of them, the batch the one before.
template <class E>
kernels::Heads<E> by_strides(E* data, const Strides& strides) {
  const int rank = strides.rank();
  return {data, rank > 3 ? strides[rank - 4] : 0, rank > 2 ? strides[rank - 3] : 0, strides[rank - 2], strides[rank - 1]};
}

Shape front(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }

}  // namespace

template <class E>
kernels::Heads<const E> heads_of(const Tensor<E>& x, const Shape& whole) {
  // A mask may have fewer than two axes: seen through the whole shape, what it lacks has stride 0.
  return by_strides<const E>(x.data(), broadcast_strides(x.shape(), x.strides(), whole));
}
template <class E>
kernels::Heads<E> heads_of(Buffer<E>& x, const Shape& whole) {
  return by_strides<E>(x.data(), broadcast_strides(x.shape(), row_major(x.shape()), whole));
}

template <class T>
FusedCall<T>::FusedCall(const char* op, const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V, bool enable_gqa,
                        const std::optional<double>& scale) {
  check_attention(op, Q, K, V, enable_gqa);
  kv_lead = broadcast_shapes(op, front(K.shape()), front(V.shape()));
  if (enable_gqa) {  // the batch axes broadcast; the head axes keep their own counts
    const Shape q = front(Q.shape());
    const int heads = q.rank() - 1, kv_heads = kv_lead.rank() - 1;
    const Shape batch = broadcast_shapes(op, q.without(heads), kv_lead.without(kv_heads));
    lead = batch.with(batch.rank(), q[heads]);
    kv_lead = batch.with(batch.rank(), kv_lead[kv_heads]);
  } else {
    lead = kv_lead = broadcast_shapes(op, front(Q.shape()), kv_lead);
  }
  if (lead.rank() > 2)
    throw ShapeError(fmt::format("{}: Q {}, K {}, V {}: {} axes in front of (L, d); the fused kernel takes batch and heads, "
                                 "attention() any number",
                                 op, Q.shape().str(), K.shape().str(), V.shape().str(), lead.rank()));
  args.B = lead.rank() > 1 ? lead[0] : 1;
  args.Hq = lead.rank() > 0 ? lead[lead.rank() - 1] : 1;
  args.Hkv = kv_lead.rank() > 0 ? kv_lead[kv_lead.rank() - 1] : 1;
  args.Lq = Q.size(-2), args.Lk = K.size(-2), args.d = Q.size(-1), args.dv = V.size(-1);
  scores = lead.with(lead.rank(), args.Lq).with(lead.rank() + 1, args.Lk);
  out = lead.with(lead.rank(), args.Lq).with(lead.rank() + 1, args.dv);
  const auto whole = [](const Shape& axes, const Tensor<T>& x) {
    return axes.with(axes.rank(), x.size(-2)).with(axes.rank() + 1, x.size(-1));
  };
  args.q = heads_of(Q, whole(lead, Q));
  args.k = heads_of(K, whole(kv_lead, K));
  args.v = heads_of(V, whole(kv_lead, V));
  args.scale = static_cast<T>(scale ? *scale : 1 / std::sqrt(static_cast<double>(args.d)));
}

#define TAPEHEAD_HEADS(E)                                                    \
  template kernels::Heads<const E> heads_of(const Tensor<E>&, const Shape&); \
  template kernels::Heads<E> heads_of(Buffer<E>&, const Shape&);
TAPEHEAD_HEADS(float)
TAPEHEAD_HEADS(double)
TAPEHEAD_HEADS(bool)
template struct FusedCall<float>;
template struct FusedCall<double>;

}  // namespace tapehead::detail
