#include "fused.hpp"

#include <fmt/format.h>

#include <cmath>

#include "attention_inputs.hpp"
#include "recorded.hpp"
#include "tapehead/error.hpp"
#include "tapehead/reduce.hpp"
#include "tapehead/views.hpp"

namespace tapehead::detail {

namespace {

// Strides over (…, rows, elements): heads are the axis before, the batch the one before that. A packed array
// is (rows, heads, elements).
template <class E>
kernels::Heads<E> by_strides(E* data, const Strides& strides, bool packed) {
  const int rank = strides.rank();
  if (packed) return {data, 0, strides[1], strides[0], strides[2]};
  return {data, rank > 3 ? strides[rank - 4] : 0, rank > 2 ? strides[rank - 3] : 0, strides[rank - 2],
          strides[rank - 1]};
}
template <class E>
kernels::Heads<const E> read(const Tensor<E>& x, const Shape& whole, bool packed) {
  return by_strides<const E>(x.data(), broadcast_strides(x.shape(), x.strides(), whole), packed);
}
template <class E>
kernels::Heads<E> written(Buffer<E>& x, bool packed) {
  return by_strides<E>(x.data(), row_major(x.shape()), packed);
}

Shape front(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }
Shape extended(const Shape& lead, std::int64_t rows, std::int64_t columns) {
  return lead.with(lead.rank(), rows).with(lead.rank() + 1, columns);
}

}  // namespace

template <class E>
kernels::Heads<const E> heads_of(const Tensor<E>& x, const Shape& whole) {
  return read(x, whole, false);
}
template <class E>
kernels::Heads<E> heads_of(Buffer<E>& x, const Shape& whole) {
  return by_strides<E>(x.data(), broadcast_strides(x.shape(), row_major(x.shape()), whole), false);
}

template <class T>
FusedProblem<T>::FusedProblem(const char* op, const Tensor<T>& queries, const Tensor<T>& keys,
                              const Tensor<T>& values, bool enable_gqa, const std::optional<double>& scale)
    : Q(queries), K(keys), V(values) {
  check_attention(op, Q, K, V, enable_gqa);
  Shape lead = front(Q.shape()), kv_lead = broadcast_shapes(op, front(K.shape()), front(V.shape()));
  if (enable_gqa) {  // the batch axes broadcast; the head axes keep their own counts
    const int heads = lead.rank() - 1, kv_heads = kv_lead.rank() - 1;
    const Shape batch = broadcast_shapes(op, lead.without(heads), kv_lead.without(kv_heads));
    lead = batch.with(batch.rank(), lead[heads]);
    kv_lead = batch.with(batch.rank(), kv_lead[kv_heads]);
  } else {
    lead = kv_lead = broadcast_shapes(op, lead, kv_lead);
  }
  if (lead.rank() > 2)
    throw ShapeError(fmt::format(
        "{}: Q {}, K {}, V {}: {} axes in front of (L, d); the fused kernel takes batch and heads, "
        "attention() any number",
        op, Q.shape().str(), K.shape().str(), V.shape().str(), lead.rank()));
  args.B = lead.rank() > 1 ? lead[0] : 1;
  args.Hq = lead.rank() > 0 ? lead[lead.rank() - 1] : 1;
  args.Hkv = kv_lead.rank() > 0 ? kv_lead[kv_lead.rank() - 1] : 1;
  args.Lq = Q.size(-2), args.Lk = K.size(-2), args.d = Q.size(-1), args.dv = V.size(-1);
  args.scale = static_cast<T>(scale ? *scale : 1 / std::sqrt(static_cast<double>(args.d)));
  q = extended(lead, args.Lq, args.d), k = extended(kv_lead, args.Lk, args.d),
  v = extended(kv_lead, args.Lk, args.dv);
  scores = extended(lead, args.Lq, args.Lk), out = extended(lead, args.Lq, args.dv);
}

namespace {

const Op fused_gradient_op{"fused_attention_gradient", "dQ, dK, dV by tiles, the weights recomputed from lse",
                           "none: the results are values"};

template <class T>
kernels::FlashArgs<T> arguments(const FusedProblem<T>& p, const FusedHooks<T>* hooks) {
  kernels::FlashArgs<T> args = p.args;
  args.q = read(p.Q, p.q, p.packed), args.k = read(p.K, p.k, p.packed), args.v = read(p.V, p.v, p.packed);
  if (p.keep_mask && args.dropout.p > 0) args.dropout.keep = read(*p.keep_mask, p.scores, false);
  if (hooks != nullptr) args.hooks = hooks->list;
  if (p.packed) args.q_starts = p.q_starts.data(), args.k_starts = p.k_starts.data();
  return args;
}

// The gradients of Q, K, V and the extra inputs. Outer tapes get them as values that cannot be differentiated
// again.
template <class T>
std::vector<Tensor<T>> gradients(const char* name, const FusedProblem<T>& p, const Tensor<T>& dO) {
  Buffer<T> dQ(p.q), dK(p.k), dV(p.v);
  const auto hooks = p.hooks ? p.hooks(true) : nullptr;
  const kernels::FlashSaved<T> saved{read(p.output, p.out, p.packed), read(p.lse, p.lse.shape(), p.packed),
                                     read(dO, p.out, p.packed)};
  kernels::flash_backward(arguments(p, hooks.get()), saved, written(dQ, p.packed), written(dK, p.packed),
                          written(dV, p.packed));

  std::vector<Tensor<T>> all{sum_to(Tensor<T>(std::move(dQ)), p.Q.shape()),
                             sum_to(Tensor<T>(std::move(dK)), p.K.shape()),
                             sum_to(Tensor<T>(std::move(dV)), p.V.shape())};
  if (hooks)
    for (const Tensor<T>& gradient : hooks->finish()) all.push_back(gradient);
  std::vector<Tensor<T>> inputs{p.Q, p.K, p.V, dO};
  inputs.insert(inputs.end(), p.extra.begin(), p.extra.end());
  for (Tensor<T>& gradient : all)
    gradient = record_all(fused_gradient_op, gradient, inputs, [name](std::size_t) {
      return [name](const Tensor<T>&) -> Tensor<T> {
        throw GradientError(
            fmt::format("{}: the fused kernel has no second derivative; use attention(), or "
                        "scaled_dot_product_attention(), "
                        "which chooses it when two tapes are live",
                        name));
      };
    });
  return all;
}

template <class T>
struct RunBack {
  const char* name;
  std::shared_ptr<const FusedProblem<T>> problem;
  std::vector<Tensor<T>> operator()(const Tensor<T>& dO) const { return gradients(name, *problem, dO); }
};
template <class T>
using Shared = std::shared_ptr<Joint<T, RunBack<T>>>;

// The pullback of one input. A tape's print copies pullbacks to see what they hold: here it is the problem's
// tensors.
template <class T>
struct Fetch {
  Fetch(Shared<T> from, std::size_t which) : back(std::move(from)), i(which) {}
  Fetch(const Fetch& other) : back(other.back), i(other.i) {
    if (copy_watch != nullptr) [[maybe_unused]]
      const FusedProblem<T> copy(*back->run().problem);
  }
  Tensor<T> operator()(const Tensor<T>& dO) const { return back->part(i, dO); }

  Shared<T> back;
  std::size_t i;
};

}  // namespace

template <class T>
Flash<T> run_fused(const Op& op, std::shared_ptr<FusedProblem<T>> p) {
  Buffer<T> out(p->out, op.name), lse(p->out.replaced(p->out.rank() - 1, 1));
  const auto hooks = p->hooks ? p->hooks(false) : nullptr;
  const kernels::TileCount tiles =
      kernels::flash_forward(arguments(*p, hooks.get()), written(out, p->packed), written(lse, p->packed));
  p->output = Tensor<T>(std::move(out)), p->lse = Tensor<T>(std::move(lse));

  const Shared<T> back = joint<T>(RunBack<T>{op.name, p});
  std::vector<Tensor<T>> inputs{p->Q, p->K, p->V};
  inputs.insert(inputs.end(), p->extra.begin(), p->extra.end());
  Tensor<T> recorded = record_all(op, p->output, inputs, [&](std::size_t i) { return Fetch<T>(back, i); });
  return {std::move(recorded), p->lse.squeeze(-1), tiles.total, tiles.skipped};
}

#define TAPEHEAD_HEADS(E)                                                    \
  template kernels::Heads<const E> heads_of(const Tensor<E>&, const Shape&); \
  template kernels::Heads<E> heads_of(Buffer<E>&, const Shape&);
TAPEHEAD_HEADS(float)
TAPEHEAD_HEADS(double)
TAPEHEAD_HEADS(bool)
template struct FusedProblem<float>;
template struct FusedProblem<double>;
template Flash<float> run_fused(const Op&, std::shared_ptr<FusedProblem<float>>);
template Flash<double> run_fused(const Op&, std::shared_ptr<FusedProblem<double>>);

}  // namespace tapehead::detail
