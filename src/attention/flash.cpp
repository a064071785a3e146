#include "tapehead/attention/flash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "attention/attention_inputs.hpp"
#include "attention/fused.hpp"
#include "kernels/flash_masks.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/random/random.hpp"

namespace tapehead {

namespace {

// Bias and mask as the kernel's hooks. In a backward run the bias collects its gradient.
template <class T>
class MaskAndBias final : public detail::FusedHooks<T> {
 public:
  MaskAndBias(const detail::FusedProblem<T>& p, const AttentionOptions<T>& options, bool backward) {
    if (options.bias) {
      if (backward) {
        gradient_.emplace(options.bias->shape());
        std::fill_n(gradient_->data(), gradient_->numel(), T{});
      }
      bias_.emplace(detail::heads_of(*options.bias, p.scores), p.args.B, p.args.Hq, p.args.Hkv, p.args.Lq,
                    p.args.Lk, backward ? detail::heads_of(*gradient_, p.scores) : kernels::Heads<T>{});
      this->list.push_back(bias_->hook());
    }
    if (options.mask) {
      mask_ = detail::heads_of(*options.mask, p.scores);
      this->list.push_back(kernels::mask_hook<T>(mask_));
    }
  }
  std::vector<Tensor<T>> finish() override {
    if (!gradient_) return {};
    bias_->finish();
    return {Tensor<T>(std::move(*gradient_))};
  }

 private:
  std::optional<Buffer<T>> gradient_;
  std::optional<kernels::Bias<T>> bias_;
  kernels::Heads<const bool> mask_;
};

template <class T>
Flash<T> run(const Op& op, std::shared_ptr<detail::FusedProblem<T>> p, const AttentionOptions<T>& options) {
  if (options.empty_rows == EmptyRows::nan)
    throw ValueError(fmt::format(
        "{}: EmptyRows::nan; the fused kernel gives 0 for a query with no key, attention() gives either",
        op.name));
  if (options.bias) detail::check_scores_operand(op.name, "bias", options.bias->shape(), p->scores);
  if (options.mask) detail::check_scores_operand(op.name, "mask", options.mask->shape(), p->scores);
  detail::check_dropout(op.name, options.dropout_p, options.keep_mask, options.generator, p->scores);

  if (options.causal) p->args.band = {.right = 0, .bottom_right = options.align == Align::bottom_right};
  p->args.dropout.p = options.dropout_p;
  p->keep_mask = options.keep_mask;
  if (options.dropout_p > 0 && !options.keep_mask) p->args.dropout.seed = options.generator->next_uint64();
  if (options.bias) p->extra.push_back(*options.bias);
  // The hooks live in the problem and must not keep it alive in turn: it is the problem that runs them.
  p->hooks = [problem = p.get(), options](bool backward) {
    return std::make_unique<MaskAndBias<T>>(*problem, options, backward);
  };
  return detail::run_fused(op, p);
}

}  // namespace

const Op flash_attention_op{"flash_attention",
                            "O = softmax(Q Kᵀ / √d_k) V, by tiles, with L = log Σ exp S kept",
                            "A = exp(S - L), D = rowsum(dO ⊙ O), then as attention_backward"};
const Op qkvpacked_op{"flash_attention_qkvpacked", "flash_attention with Q, K and V the heads of one tensor",
                      "dQ, dK and dV as flash_attention, side by side"};

template <std::floating_point T>
Flash<T> flash_attention(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V,
                         const AttentionOptions<std::type_identity_t<T>>& options) {
  const Op& op = flash_attention_op;
  return run(op,
             std::make_shared<detail::FusedProblem<T>>(op.name, Q, K, V, options.enable_gqa, options.scale),
             options);
}
template <std::floating_point T>
Flash<T> flash_attention_qkvpacked(const Tensor<T>& qkv, std::int64_t heads,
                                   const AttentionOptions<std::type_identity_t<T>>& options) {
  const Op& op = qkvpacked_op;
  return run(op, std::make_shared<detail::FusedProblem<T>>(op.name, qkv, heads, options.scale), options);
}

#define TAPEHEAD_FLASH(T)                                                                 \
  template Flash<T> flash_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, \
                                    const AttentionOptions<T>&);                          \
  template Flash<T> flash_attention_qkvpacked(const Tensor<T>&, std::int64_t, const AttentionOptions<T>&);
TAPEHEAD_FLASH(float)
TAPEHEAD_FLASH(double)

}  // namespace tapehead
