#include "tapehead/flash.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "attention_inputs.hpp"
#include "fused.hpp"
#include "tapehead/error.hpp"
#include "tapehead/random.hpp"
#include "tapehead/reduce.hpp"
#include "tapehead/tape.hpp"
#include "tapehead/views.hpp"

namespace tapehead {

using detail::heads_of;

namespace {

// One call, kept for its backward pass: the inputs, what was drawn for it, and its results.
template <class T>
struct FlashCall {
  Tensor<T> Q, K, V;
  AttentionOptions<T> options;
  kernels::Dropout dropout;  // its keep mask, if any, is options.keep_mask
  Tensor<T> out, lse;        // lse with a last axis of size 1, as the kernel writes it

  detail::FusedCall<T> prepared() const {
    detail::FusedCall<T> call("flash_attention", Q, K, V, options.enable_gqa, options.scale);
    if (options.causal) call.args.band = {.right = 0, .bottom_right = options.align == Align::bottom_right};
    call.args.dropout = dropout;
    if (dropout.p > 0 && options.keep_mask) call.args.dropout.keep = heads_of(*options.keep_mask, call.scores);
    return call;
  }
};

// Mask and bias as the kernel's hooks. With a gradient buffer the bias also collects its gradient.
template <class T>
class Hooks {
 public:
  Hooks(const FlashCall<T>& flash, detail::FusedCall<T>& call, Buffer<T>* d_bias) {
    if (flash.options.bias) {
      bias_.emplace(heads_of(*flash.options.bias, call.scores), call.args.B, call.args.Hq, call.args.Hkv, call.args.Lq,
                    call.args.Lk, d_bias != nullptr ? heads_of(*d_bias, call.scores) : kernels::Heads<T>{});
      list_.push_back(bias_->hook());
    }
    if (flash.options.mask) {
      mask_ = heads_of(*flash.options.mask, call.scores);
      list_.push_back(kernels::mask_hook<T>(mask_));
    }
    call.args.hooks = list_;
  }
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;
  void finish() { if (bias_) bias_->finish(); }

 private:
  std::optional<kernels::Bias<T>> bias_;
  kernels::Heads<const bool> mask_;
  std::vector<kernels::ScoreHook<T>> list_;
};

const Op flash_backward_op{"flash_attention_backward", "dQ, dK, dV by tiles, A recomputed from lse", "none: its results are values"};

// A gradient from the fused kernel, put on the outer tapes as a value that cannot be differentiated again.
template <class T>
Tensor<T> value_only(const FlashCall<T>& call, Tensor<T> gradient, const Tensor<T>& dO) {
  const auto refuse = [](const Tensor<T>&) -> Tensor<T> {
    throw GradientError("flash_attention_backward: the fused kernel has no second derivative; use attention(), or "
                        "scaled_dot_product_attention(), which chooses it when two tapes are live");
  };
  const Tensor<T> bias = call.options.bias ? *call.options.bias : Tensor<T>();
  return record(flash_backward_op, std::move(gradient), wrt(call.Q, refuse), wrt(call.K, refuse), wrt(call.V, refuse),
                wrt(bias, refuse), wrt(dO, refuse));
}

// dQ, dK, dV and d(bias) from the saved log-sum-exp.
template <class T>
std::vector<Tensor<T>> flash_gradients(const FlashCall<T>& flash, const Tensor<T>& dO) {
  detail::FusedCall<T> call = flash.prepared();
  const auto& args = call.args;
  const auto whole = [](const Shape& lead, std::int64_t rows, std::int64_t columns) {
    return lead.with(lead.rank(), rows).with(lead.rank() + 1, columns);
  };
  const Shape q = whole(call.lead, args.Lq, args.d), k = whole(call.kv_lead, args.Lk, args.d), v = whole(call.kv_lead, args.Lk, args.dv);
  Buffer<T> dQ(q), dK(k), dV(v), d_bias(flash.options.bias ? flash.options.bias->shape() : Shape{0});
  Hooks<T> hooks(flash, call, flash.options.bias ? &d_bias : nullptr);
  const kernels::FlashSaved<T> saved{heads_of(flash.out, call.out), heads_of(flash.lse, flash.lse.shape()), heads_of(dO, call.out)};
  kernels::flash_backward(args, saved, heads_of(dQ, q), heads_of(dK, k), heads_of(dV, v));
  hooks.finish();
  return {value_only(flash, sum_to(Tensor<T>(std::move(dQ)), flash.Q.shape()), dO),
          value_only(flash, sum_to(Tensor<T>(std::move(dK)), flash.K.shape()), dO),
          value_only(flash, sum_to(Tensor<T>(std::move(dV)), flash.V.shape()), dO), 
          value_only(flash, Tensor<T>(std::move(d_bias)), dO)};
}

}  // namespace

const Op flash_attention_op{"flash_attention", "O = softmax(Q Kᵀ / √d_k) V, by tiles, with L = log Σ exp S kept",
                            "A = exp(S - L), D = rowsum(dO ⊙ O), then as attention_backward"};
template <std::floating_point T>
Flash<T> flash_attention(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V, const AttentionOptions<std::type_identity_t<T>>& options) {
  auto flash = std::make_shared<FlashCall<T>>(FlashCall<T>{Q, K, V, options, {}, {}, {}});
  const detail::FusedCall<T> shapes("flash_attention", Q, K, V, options.enable_gqa, options.scale);
  if (options.empty_rows == EmptyRows::nan)
    throw ValueError("flash_attention: EmptyRows::nan; the fused kernel gives 0 for a query with no key, attention() gives either");
  if (options.bias) detail::check_scores_operand("flash_attention", "bias", options.bias->shape(), shapes.scores);
  if (options.mask) detail::check_scores_operand("flash_attention", "mask", options.mask->shape(), shapes.scores);
  detail::check_dropout("flash_attention", options.dropout_p, options.keep_mask, options.generator, shapes.scores);
  flash->dropout.p = options.dropout_p;
  if (options.dropout_p > 0 && !options.keep_mask) flash->dropout.seed = options.generator->next_uint64();

  detail::FusedCall<T> call = flash->prepared();
  Hooks<T> hooks(*flash, call, nullptr);
  Buffer<T> out(call.out, "flash_attention"), lse(call.out.replaced(call.out.rank() - 1, 1));
  const kernels::TileCount tiles = kernels::flash_forward(call.args, heads_of(out, call.out), heads_of(lse, lse.shape()));
  flash->out = Tensor<T>(std::move(out)), flash->lse = Tensor<T>(std::move(lse));

  const auto joint = std::make_shared<detail::Joint<T>>([flash](const Tensor<T>& dO) { return flash_gradients(*flash, dO); });
  const auto part = [joint](std::size_t i) { return [joint, i](const Tensor<T>& dO) { return joint->part(i, dO); }; };
  const Tensor<T> bias = options.bias ? *options.bias : Tensor<T>();
  return {record(flash_attention_op, flash->out, wrt(Q, part(0)), wrt(K, part(1)), wrt(V, part(2)), wrt(bias, part(3))),
          flash->lse.squeeze(-1), tiles.total, tiles.skipped};
}

template Flash<float> flash_attention(const Tensor<float>&, const Tensor<float>&, const Tensor<float>&, const AttentionOptions<float>&);
template Flash<double> flash_attention(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&, const AttentionOptions<double>&);

}  // namespace tapehead
