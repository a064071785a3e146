#include "tapehead/attention/flex.hpp"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <vector>

#include "attention/attention_inputs.hpp"
#include "attention/fused.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/random/random.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace detail {

void throw_reads() {
  throw ValueError(fmt::format(
      "score_mod: more than {} reads of bound tensors in one call; combine them into fewer", most_reads));
}
void throw_read(const Shape& shape, const std::int64_t* index, int count) {
  throw IndexError(fmt::format("score_mod: a bound tensor of shape {} was read at {}", shape.str(),
                               Shape(index, index + std::min(count, max_rank)).str()));
}

template <class T>
NoCapturedReads<T>::NoCapturedReads() {
  read_watch<T> = [](const Tensor<T>& x) {
    if (is_recorded(x))
      throw GradientError(
          fmt::format("score_mod: the function captured a tensor of shape {} that a tape knows, and its "
                      "gradient would be lost; "
                      "bind it: score_mod(f, tensor), and read it by the reader that f then gets",
                      x.shape().str()));
  };
}
template <class T>
NoCapturedReads<T>::~NoCapturedReads() {
  read_watch<T> = nullptr;
}

namespace {

template <class T>
class FlexHooks final : public FusedHooks<T> {
 public:
  FlexHooks(const std::shared_ptr<const FlexScore<T>>& score, const std::shared_ptr<const FlexMask>& mask)
      : score_(score), mask_(mask) {
    if (score_) {
      for (const Tensor<T>& x : score_->bound)
        total_.resize(total_.size() + static_cast<std::size_t>(x.numel()));
      kernels::ScoreHook<T> hook;
      hook.context = this;
      hook.edit = [](const void* self, const kernels::Tile& tile, T* S) { me(self).score_->edit(tile, S); };
      hook.edit_gradient = [](const void* self, const kernels::Tile& tile, const T* S, T* dS, double* sums) {
        me(self).score_->edit_gradient(tile, S, dS, sums);
      };
      hook.reads_scores = true;
      hook.sum_count = static_cast<std::int64_t>(total_.size());
      hook.reduce = [](void* self, std::int64_t, std::int64_t, const double* sums) {
        for (double& total : static_cast<FlexHooks*>(self)->total_) total += *sums++;
      };
      this->list.push_back(hook);
    }
    if (mask_) {
      kernels::ScoreHook<T> hook;
      hook.context = this;
      hook.kind = [](const void* self, const kernels::Tile& tile) { return me(self).mask_->kind(tile); };
      hook.edit = [](const void* self, const kernels::Tile& tile, T* S) {
        const std::unique_ptr<bool[]> keep(new bool[static_cast<std::size_t>(tile.rows * tile.cols)]);
        me(self).mask_->keep(tile, keep.get());
        for (std::int64_t r = 0; r < tile.rows; ++r)
          for (std::int64_t c = 0; c < tile.cols; ++c)
            if (!keep[static_cast<std::size_t>(r * tile.cols + c)])
              S[r * tile.ld + c] = -std::numeric_limits<T>::infinity();
      };
      this->list.push_back(hook);
    }
  }
  std::vector<Tensor<T>> finish() override {
    std::vector<Tensor<T>> gradients;
    const double* sums = total_.data();
    if (score_)
      for (const Tensor<T>& x : score_->bound) {
        Buffer<T> gradient(x.shape());
        for (std::int64_t i = 0; i < gradient.numel(); ++i) gradient[i] = static_cast<T>(*sums++);
        gradients.push_back(std::move(gradient));
      }
    return gradients;
  }

 private:
  static const FlexHooks& me(const void* self) { return *static_cast<const FlexHooks*>(self); }
  std::shared_ptr<const FlexScore<T>> score_;
  std::shared_ptr<const FlexMask> mask_;
  std::vector<double> total_;
};

}  // namespace

const Op flex_attention_op{
    "flex_attention", "O = softmax(mask(score_mod(Q Kᵀ / √d_k))) V, by tiles",
    "as flash_attention, dS ∂score_mod/∂s in between; what score_mod reads gets Σ dS ∂score_mod/∂x"};
template <class T>
Flash<T> flex_run(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                  std::shared_ptr<const FlexScore<T>> score, std::shared_ptr<const FlexMask> mask,
                  const FlexOptions& options) {
  const auto p =
      std::make_shared<FusedProblem<T>>(flex_attention_op.name, q, k, v, options.enable_gqa, options.scale);
  if (mask) mask->check(p->args.B, p->args.Hq, p->args.Lq, p->args.Lk);
  if (score) p->extra = score->bound;
  if (score || mask) p->hooks = [score, mask](bool) { return std::make_unique<FlexHooks<T>>(score, mask); };
  return run_fused(flex_attention_op, p);
}

template <class T>
Tensor<T> flex_sdpa(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                    const AttentionOptions<T>& options) {
  const FlexOptions flex{options.scale, options.enable_gqa};
  const FusedProblem<T> shapes("flex_attention", q, k, v, options.enable_gqa, options.scale);
  const Shape whole{shapes.args.B, shapes.args.Hq, shapes.args.Lq, shapes.args.Lk};
  const auto causal = [on = options.causal,
                       shift = options.align == Align::bottom_right ? whole[3] - whole[2] : 0](
                          auto, auto, auto i, auto j) { return !on || j <= i + shift; };
  const auto run = [&](const auto& mask) {
    if (!options.bias) return flex_attention(q, k, v, NoScoreMod{}, mask, flex).out;
    check_scores_operand("flex_attention", "bias", options.bias->shape(), shapes.scores);
    const Tensor<T> bias = broadcast_to(*options.bias, shapes.scores);
    const auto add = [rank = bias.rank()](auto s, auto b, auto h, auto i, auto j, auto read) {
      return s + (rank == 2 ? read(i, j) : rank == 3 ? read(h, i, j) : read(b, h, i, j));
    };
    return flex_attention(q, k, v, score_mod(add, bias), mask, flex).out;
  };
  if (!options.mask) return run(causal);
  check_scores_operand("flex_attention", "mask", options.mask->shape(), shapes.scores);
  const kernels::Heads<const bool> keep = heads_of(*options.mask, shapes.scores);
  return run([causal, keep](auto b, auto h, auto i, auto j) {
    return causal(b, h, i, j) && keep.at(b, h, i)[j * keep.element];
  });
}

#define TAPEHEAD_FLEX(T)                                                                           \
  template class NoCapturedReads<T>;                                                               \
  template Flash<T> flex_run(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&,                 \
                             std::shared_ptr<const FlexScore<T>>, std::shared_ptr<const FlexMask>, \
                             const FlexOptions&);                                                  \
  template Tensor<T> flex_sdpa(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&,               \
                               const AttentionOptions<T>&);
TAPEHEAD_FLEX(float)
TAPEHEAD_FLEX(double)

}  // namespace detail

}  // namespace tapehead
