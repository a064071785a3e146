#include "attention/fused.hpp"

#include <fmt/format.h>

#include <cmath>

#include "attention/attention_inputs.hpp"
#include "autograd/recorded.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/views.hpp"

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

// A result, and where the kernel writes it. It is laid out as `like`, an input: where that is one of heads
// cut from rows, (L, H, d) seen as (H, L, d), the result is too, and merging its heads costs no copy.
template <class T>
class Output {
 public:
  Output(const char* op, const Shape& shape, const Tensor<T>& like, bool packed)
      : memory_(shape, op), shape_(shape), strides_(row_major(shape)), packed_(packed) {
    const int rows = shape.rank() - 2, heads = rows - 1, of_rows = like.rank() - 2;
    if (packed || heads < 0 || of_rows < 1 || like.strides()[of_rows] <= like.strides()[of_rows - 1]) return;
    strides_[heads] = shape[rows + 1], strides_[rows] = shape[heads] * shape[rows + 1];
  }
  kernels::Heads<T> from_head(std::int64_t first) {
    kernels::Heads<T> heads = by_strides<T>(memory_.data(), strides_, packed_);
    heads.data += first * heads.head;
    return heads;
  }
  Tensor<T> tensor() && {
    const Tensor<T> all(std::move(memory_));
    return all.view(shape_, strides_, all.data());
  }

 private:
  Buffer<T> memory_;
  Shape shape_;
  Strides strides_;
  bool packed_;
};

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

template <class T>
FusedProblem<T>::FusedProblem(const char* op, const Tensor<T>& whole, std::int64_t heads,
                              const std::optional<double>& scale)
    : FusedProblem([&] {
        const auto parts = split_qkv(op, detach(whole), heads);
        return FusedProblem(op, parts[0], parts[1], parts[2], true, scale);
      }()) {
  qkv = whole;
}

template <class T>
std::vector<Tensor<T>> FusedProblem<T>::inputs() const {
  std::vector<Tensor<T>> all = qkv ? std::vector{*qkv} : std::vector{Q, K, V};
  all.insert(all.end(), extra.begin(), extra.end());
  return all;
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

// The gradients of the inputs. Outer tapes get them as values that cannot be differentiated again.
template <class T>
std::vector<Tensor<T>> gradients(const char* name, const FusedProblem<T>& p, const Tensor<T>& dO) {
  const auto hooks = p.hooks ? p.hooks(true) : nullptr;
  const kernels::FlashSaved<T> saved{read(p.output, p.out, p.packed), read(p.lse, p.lse.shape(), p.packed),
                                     read(dO, p.out, p.packed)};
  const auto run = [&](kernels::Heads<T> dQ, kernels::Heads<T> dK, kernels::Heads<T> dV) {
    kernels::flash_backward(arguments(p, hooks.get()), saved, dQ, dK, dV);
  };
  std::vector<Tensor<T>> all;
  if (p.qkv) {
    Output<T> d(name, p.qkv->shape(), *p.qkv, p.packed);
    run(d.from_head(0), d.from_head(p.args.Hq), d.from_head(p.args.Hq + p.args.Hkv));
    all = {std::move(d).tensor()};
  } else {
    Output<T> dQ(name, p.q, p.Q, p.packed), dK(name, p.k, p.K, p.packed), dV(name, p.v, p.V, p.packed);
    run(dQ.from_head(0), dK.from_head(0), dV.from_head(0));
    all = {sum_to(std::move(dQ).tensor(), p.Q.shape()), sum_to(std::move(dK).tensor(), p.K.shape()),
           sum_to(std::move(dV).tensor(), p.V.shape())};
  }
  if (hooks)
    for (const Tensor<T>& gradient : hooks->finish()) all.push_back(gradient);
  std::vector<Tensor<T>> inputs = p.inputs();
  inputs.push_back(dO);
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
using Shared = std::shared_ptr<SharedRun<T, RunBack<T>>>;

// The pullback of one input.
template <class T>
struct Fetch {
  Tensor<T> operator()(const Tensor<T>& dO) const { return back->result(i, dO); }
  void each_saved(const SavedVisitor& visit) const {
    for (const Tensor<T>& input : problem->inputs()) visit(input.header());
    visit(problem->output.header());
    visit(problem->lse.header());
    if (problem->keep_mask) visit(problem->keep_mask->header());
  }
  Shared<T> back;
  std::shared_ptr<const FusedProblem<T>> problem;
  std::size_t i;
};

}  // namespace

template <class T>
Flash<T> run_fused(const Op& op, std::shared_ptr<FusedProblem<T>> p) {
  const Shape column = p->out.replaced(p->out.rank() - 1, 1);
  Output<T> out(op.name, p->out, p->Q, p->packed);
  Buffer<T> lse(column);
  const auto hooks = p->hooks ? p->hooks(false) : nullptr;
  const kernels::TileCount tiles = kernels::flash_forward(
      arguments(*p, hooks.get()), out.from_head(0), by_strides<T>(lse.data(), row_major(column), p->packed));
  p->output = std::move(out).tensor(), p->lse = Tensor<T>(std::move(lse));

  const Shared<T> back = shared_run<T>(RunBack<T>{op.name, p});
  Tensor<T> recorded =
      record_all(op, p->output, p->inputs(), [&](std::size_t i) { return Fetch<T>{back, p, i}; });
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
