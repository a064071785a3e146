#include "attention/fused.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include "attention/attention_inputs.hpp"
#include "autograd/recorded.hpp"
#include "kernels/flash.hpp"
#include "kernels/flash_masks.hpp"
#include "kernels/require.hpp"
#include "kernels/vmath.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/views.hpp"
#include "tapehead/random/random.hpp"

namespace tapehead::detail {

namespace {

// Strides over (…, rows, elements): heads are the axis before, the batch the one before that.
template <class E> kernels::HeadsView<E> by_strides(E* data, const Strides& strides) {
  const int rank = strides.rank();
  return {data, rank > 3 ? strides[rank - 4] : 0, rank > 2 ? strides[rank - 3] : 0, strides[rank - 2],
          strides[rank - 1]};
}
// x, broadcast to `whole`, as the kernel reads it.
template <class E> kernels::HeadsView<const E> read(const Tensor<E>& x, const Shape& whole) {
  return by_strides<const E>(x.data(), broadcast_strides(x.shape(), x.strides(), whole));
}

// A result, and where the kernel writes it. Its layout is that of the input `like`: where the heads of that
// were cut from rows, (L, H, d) seen as (H, L, d), so are those of the result, and merging them costs no copy.
template <class T> class Output {
 public:
  Output(const char* op, const Shape& shape, const Tensor<T>& like)
      : memory_(shape, op), shape_(shape), strides_(row_major(shape)) {
    const int rows = shape.rank() - 2, heads = rows - 1, of_rows = like.rank() - 2;
    if (heads < 0 || of_rows < 1 || like.strides()[of_rows] <= like.strides()[of_rows - 1]) return;
    strides_[heads] = shape[rows + 1], strides_[rows] = shape[heads] * shape[rows + 1];
  }
  kernels::HeadsView<T> from_head(std::int64_t first) {
    kernels::HeadsView<T> heads = by_strides<T>(memory_.data(), strides_);
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
};

Shape front(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }
std::int64_t longest(const std::vector<std::int64_t>& starts) {
  std::int64_t most = 0;
  for (std::size_t n = 0; n + 1 < starts.size(); ++n) most = std::max(most, starts[n + 1] - starts[n]);
  return most;
}
// Sums in double as a tensor; `sums` moves on to those of the next one.
template <class T> Tensor<T> rounded(const double*& sums, const Shape& shape) {
  Buffer<T> gradient(shape);
  for (std::int64_t i = 0; i < gradient.numel(); ++i) gradient[i] = static_cast<T>(*sums++);
  return gradient;
}

// The edits of one run of the kernel in their order, and the totals to which a backward run adds their gradients.
template <class T> class Edits {
 public:
  Edits(const FlexFunctions<T>& functions, const AttentionOptions<T>& options, const Shape& scores) {
    if (functions.score) list.push_back(functions.score.get());
    if (options.bias) list.push_back(&bias_.emplace(read(*options.bias, scores)));
    if (functions.visible) list.push_back(functions.visible.get());
    if (options.mask) list.push_back(&mask_.emplace(read(*options.mask, scores)));
  }
  Edits(const Edits&) = delete;

  void collect_bound(std::int64_t elements) {
    bound.resize(static_cast<std::size_t>(elements));
    totals.push_back(bound.data());
  }
  void collect_bias(const Tensor<T>& bias, const kernels::FlashArgs<T>& a, const Shape& scores) {
    std::array<std::int64_t, 4> sizes{1, 1, 1, 1};
    std::copy_backward(bias.shape().begin(), bias.shape().end(), sizes.end());
    if (sizes == std::array{a.B, a.Hq, a.Lq, a.Lk}) {
      direct_.emplace(bias.shape());
      std::fill_n(direct_->data(), direct_->numel(), T{});
    } else {
      of_bias_.resize(static_cast<std::size_t>(bias.numel()));
    }
    bias_.emplace(read(bias, scores), sizes, a.Hkv > 0 ? a.Hq / a.Hkv : 1, direct_ ? direct_->data() : nullptr);
    totals.push_back(of_bias_.data());
  }
  Tensor<T> bias_gradient(const Shape& shape) {
    if (direct_) return std::move(*direct_);
    const double* sums = of_bias_.data();
    return rounded<T>(sums, shape);
  }

  std::vector<const kernels::ScoreEdit<T>*> list;
  std::vector<double*> totals;  // of the first edits; masks have none
  std::vector<double> bound;    // the total of the tensors that a score function reads

 private:
  std::optional<kernels::BiasEdit<T>> bias_;
  std::optional<kernels::MaskEdit<T>> mask_;
  std::optional<Buffer<T>> direct_;
  std::vector<double> of_bias_;
};

const Op fused_gradient_op{"fused_attention_gradient", "dQ, dK, dV by tiles, the weights recomputed from m and l",
                           "none: the results are values", "(…, Lq, d_v) → (…, Lq, d) (…, Lk, d) (…, Lk, d_v)"};

// One call of the kernel. It owns everything that its forward pass and its pullbacks read.
template <class T> class FusedRun {
 public:
  FusedRun(const Op& op, FusedInputs<T> inputs, const AttentionOptions<T>& options, FlexFunctions<T> functions,
           Documents documents)
      : op_(op.name),
        in_(std::move(inputs)),
        options_(options),
        functions_(std::move(functions)),
        documents_(std::move(documents)),
        packed_(!documents_.q_starts.empty()) {
    if (in_.qkv) options_.enable_gqa = true;
    Q_ = heads_first(in_.Q), K_ = heads_first(in_.K), V_ = heads_first(in_.V);
    set_shapes();
    set_options();
    for (const Tensor<T>& x : inputs_with_gradients()) wanted_.push_back(is_recorded(x));
  }

  // Q, K and V, or qkv; the bias; the sinks; the tensors that a score function reads.
  std::vector<Tensor<T>> inputs_with_gradients() const {
    std::vector<Tensor<T>> all = in_.qkv ? std::vector{*in_.qkv} : std::vector{in_.Q, in_.K, in_.V};
    if (options_.bias) all.push_back(*options_.bias);
    if (options_.sinks) all.push_back(*options_.sinks);
    all.insert(all.end(), functions_.bound.begin(), functions_.bound.end());
    return all;
  }

  void each_saved(const SavedVisitor& visit) const {
    for (const auto& x : inputs_with_gradients()) visit(x.header());
    for (const auto* x : {&out_, &max_, &sum_}) visit(x->header());
    for (const auto* x : {&options_.mask, &options_.keep_mask})
      if (*x) visit((*x)->header());
  }

  Flash<T> forward() {
    const Shape column = out_shape_.replaced(out_shape_.rank() - 1, 1);
    Output<T> out(op_, out_shape_, Q_);
    Buffer<T> max(column), sum(column), lse(column);
    const auto rows = [&](Buffer<T>& x) { return by_strides<T>(x.data(), row_major(column)); };
    const Edits<T> edits(functions_, options_, scores_shape_);
    const kernels::TileCount tiles = kernels::flash_forward(arguments(edits), out.from_head(0), {rows(max), rows(sum)});

    kernels::log_n(sum.numel(), sum.data(), lse.data());
    constexpr T inf = std::numeric_limits<T>::infinity();
    for (std::int64_t i = 0; i < lse.numel(); ++i) lse[i] = max[i] == inf ? inf : max[i] + lse[i];
    out_ = std::move(out).tensor(), max_ = std::move(max), sum_ = std::move(sum);
    return {rows_first(out_), rows_first(Tensor<T>(std::move(lse))).squeeze(-1), tiles.total, tiles.skipped};
  }

  // In the order of inputs_with_gradients(). Those that no tape knew in the forward pass are left empty.
  std::vector<Tensor<T>> gradients(const Tensor<T>& dO) const {
    Edits<T> edits(functions_, options_, scores_shape_);
    const bool bias_wanted = options_.bias && wanted_[in_.qkv ? 1 : 3];
    if (functions_.score) edits.collect_bound(functions_.score->sum_count);
    if (bias_wanted) edits.collect_bias(*options_.bias, args_, scores_shape_);
    kernels::FlashGradients<T> to;
    to.totals = edits.totals;
    std::optional<Output<T>> dQ, dK, dV, dqkv;
    if (in_.qkv) {
      dqkv.emplace(op_, in_.qkv->shape(), *in_.qkv);
      to.q = dqkv->from_head(0), to.k = dqkv->from_head(args_.Hq);
      to.v = dqkv->from_head(args_.Hq + args_.Hkv);
    } else {
      if (wanted_[0]) to.q = dQ.emplace(op_, q_shape_, Q_).from_head(0);
      if (wanted_[1]) to.k = dK.emplace(op_, k_shape_, K_).from_head(0);
      if (wanted_[2]) to.v = dV.emplace(op_, v_shape_, V_).from_head(0);
    }
    Buffer<T> dsinks(options_.sinks ? front(scores_shape_) : Shape{0});
    if (options_.sinks) to.sinks = {dsinks.data(), args_.Hq, 1, 0, 1};
    const Shape column = max_.shape();
    kernels::flash_backward(
        arguments(edits),
        {read(out_, out_shape_), {read(max_, column), read(sum_, column)}, read(heads_first(dO), out_shape_)}, to);

    const auto finished = [this](std::optional<Output<T>>& d, const Tensor<T>& x) {
      return d ? sum_to(rows_first(std::move(*d).tensor()), x.shape()) : Tensor<T>();
    };
    std::vector<Tensor<T>> all;
    if (in_.qkv)
      all = {finished(dqkv, *in_.qkv)};
    else
      all = {finished(dQ, in_.Q), finished(dK, in_.K), finished(dV, in_.V)};
    if (options_.bias) all.push_back(bias_wanted ? edits.bias_gradient(options_.bias->shape()) : Tensor<T>());
    if (options_.sinks) all.push_back(sum_to(Tensor<T>(std::move(dsinks)), options_.sinks->shape()));
    const double* sums = edits.bound.data();
    for (const Tensor<T>& x : functions_.bound) all.push_back(rounded<T>(sums, x.shape()));
    return as_values(all, dO);
  }

 private:
  // Packed tensors (total, H, d) as the kernel takes them, (H, total, d), and back.
  Tensor<T> heads_first(const Tensor<T>& x) const { return packed_ ? detach(x).transpose(0, 1) : x; }
  Tensor<T> rows_first(const Tensor<T>& x) const { return packed_ ? x.transpose(0, 1) : x; }

  void set_shapes() {
    check_attention(op_, Q_, K_, V_, options_.enable_gqa);
    Shape lead = front(Q_.shape()), kv_lead = broadcast_shapes(op_, front(K_.shape()), front(V_.shape()));
    if (options_.enable_gqa) {  // the batch axes broadcast; the head axes keep their own counts
      const int heads = lead.rank() - 1, kv_heads = kv_lead.rank() - 1;
      const Shape batch = broadcast_shapes(op_, lead.without(heads), kv_lead.without(kv_heads));
      lead = batch.with(batch.rank(), lead[heads]);
      kv_lead = batch.with(batch.rank(), kv_lead[kv_heads]);
    } else {
      lead = kv_lead = broadcast_shapes(op_, lead, kv_lead);
    }
    require<ShapeError>(lead.rank() <= 2,
                        "{}: Q {}, K {}, V {}: {} axes in front of (L, d); the fused kernel takes batch and heads, "
                        "attention() any number",
                        op_, Q_.shape(), K_.shape(), V_.shape(), lead.rank());
    args_.B = lead.rank() > 1 ? lead[0] : 1;
    args_.Hq = lead.rank() > 0 ? lead[lead.rank() - 1] : 1;
    args_.Hkv = kv_lead.rank() > 0 ? kv_lead[kv_lead.rank() - 1] : 1;
    args_.Lq = Q_.size(-2), args_.Lk = K_.size(-2), args_.d = Q_.size(-1), args_.dv = V_.size(-1);
    q_shape_ = extended(lead, args_.Lq, args_.d), k_shape_ = extended(kv_lead, args_.Lk, args_.d);
    v_shape_ = extended(kv_lead, args_.Lk, args_.dv), out_shape_ = extended(lead, args_.Lq, args_.dv);
    scores_shape_ = extended(lead, args_.Lq, args_.Lk);
    if (!packed_) return;
    args_.q_starts = documents_.q_starts.data(), args_.k_starts = documents_.k_starts.data();
    args_.B = static_cast<std::int64_t>(documents_.q_starts.size()) - 1;
    args_.Lq = longest(documents_.q_starts), args_.Lk = longest(documents_.k_starts);
    scores_shape_ = {args_.B, args_.Hq, args_.Lq, args_.Lk};
  }

  void set_options() {
    const AttentionOptions<T>& o = options_;
    require<ValueError>(
        o.empty_rows == EmptyRows::zero,
        "{}: EmptyRows::nan; the fused kernel gives 0 for a query with no key, attention() gives either", op_);
    if (o.bias) check_scores_operand(op_, "bias", o.bias->shape(), scores_shape_);
    if (o.mask) check_scores_operand(op_, "mask", o.mask->shape(), scores_shape_);
    if (o.sinks) sink_logits(op_, detach(*o.sinks), scores_shape_);
    args_.scale = static_cast<T>(o.scale_for(args_.d));
    if (o.causal) {
      const Align align = o.align.value_or(packed_ ? Align::bottom_right : Align::top_left);
      args_.band = {.right = 0, .bottom_right = align == Align::bottom_right};
    }
    check_dropout(op_, o.dropout_p, o.keep_mask, o.generator, scores_shape_);
    functions_.check(args_.B, args_.Hq, args_.Lq, args_.Lk);
    args_.dropout.p = o.dropout_p;
    if (o.dropout_p > 0 && !o.keep_mask) args_.dropout.seed = o.generator->next_uint64();
    options_.generator = nullptr;  // it is the caller's, and may not live as long as this run
  }

  kernels::FlashArgs<T> arguments(const Edits<T>& edits) const {
    kernels::FlashArgs<T> args = args_;
    args.q = read(Q_, q_shape_), args.k = read(K_, k_shape_), args.v = read(V_, v_shape_);
    args.edits = edits.list;
    if (options_.keep_mask && args.dropout.p > 0) args.dropout.keep = read(*options_.keep_mask, scores_shape_);
    if (options_.sinks)  // a view: the elements belong to options_
      args.sinks = read(sink_logits(op_, detach(*options_.sinks), scores_shape_), scores_shape_);
    return args;
  }

  std::vector<Tensor<T>> as_values(std::vector<Tensor<T>> gradients, const Tensor<T>& dO) const {
    std::vector<Tensor<T>> depends_on = inputs_with_gradients();
    depends_on.push_back(dO);
    for (std::size_t n = 0; n < gradients.size(); ++n) {
      if (!wanted_[n]) continue;
      gradients[n] = record_all(fused_gradient_op, gradients[n], depends_on, [&](std::size_t i) {
        return wrt(depends_on[i], [op = op_](const Tensor<T>&) -> Tensor<T> {
          raise<GradientError>(
              "{}: the fused kernel has no second derivative; use attention(), or "
              "scaled_dot_product_attention(), which chooses it when two tapes are live",
              op);
        });
      });
    }
    return gradients;
  }

  const char* op_;
  FusedInputs<T> in_;
  Tensor<T> Q_, K_, V_;  // of in_, heads first
  AttentionOptions<T> options_;
  FlexFunctions<T> functions_;
  Documents documents_;
  bool packed_;
  kernels::FlashArgs<T> args_;                                    // arguments() adds the inputs
  Shape q_shape_, k_shape_, v_shape_, scores_shape_, out_shape_;  // broadcast; scores: (…, Lq, Lk)
  std::vector<bool> wanted_;                                      // which inputs_with_gradients() a tape knew
  Tensor<T> out_, max_, sum_;                                     // of the forward pass; max and sum are (…, Lq, 1)
};

}  // namespace

template <class T> Flash<T> run_fused(const Op& op, FusedInputs<T> inputs, const AttentionOptions<T>& options,
                                      FlexFunctions<T> functions, Documents documents) {
  const auto run =
      std::make_shared<FusedRun<T>>(op, std::move(inputs), options, std::move(functions), std::move(documents));
  Flash<T> result = run->forward();
  const auto back = shared_run<T>([](const Tensor<T>& dO, const auto& r) { return r->gradients(dO); }, run);
  const std::vector<Tensor<T>> differentiable = run->inputs_with_gradients();
  result.out = record_all(op, std::move(result.out), differentiable, [&](std::size_t i) {
    return wrt(
        differentiable[i], [i](const auto& dO, const auto& shared) { return shared->result(i, dO); }, back);
  });
  return result;
}

#define TAPEHEAD_FUSED(T) \
  template Flash<T> run_fused(const Op&, FusedInputs<T>, const AttentionOptions<T>&, FlexFunctions<T>, Documents);
TAPEHEAD_REALS(TAPEHEAD_FUSED)

}  // namespace tapehead::detail
