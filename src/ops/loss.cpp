#include "tapehead/ops/loss.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/parallel.hpp"
#include "kernels/require.hpp"
#include "kernels/rows.hpp"
#include "tapehead/autograd/record.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/indexing.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/ops/softmax.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace {

struct Targets {
  Tensor<bool> ignored;        // (…)
  Tensor<std::int64_t> index;  // (…), 0 where ignored, so that it can be looked up
  std::int64_t count;          // of the rows that are not ignored
};
Targets looked_up(const Tensor<std::int64_t>& target, std::int64_t classes, std::int64_t ignore_index) {
  const Tensor<bool> ignored = eq(target, scalar(ignore_index));
  const Targets t{ignored, masked_fill(target, ignored, 0), sum(to<std::int64_t>(~ignored)).item()};
  std::int64_t row = 0;
  for (std::int64_t i : t.index.to_vector()) {
    require<IndexError>(i >= 0 && i < classes,
                        "cross_entropy: target {} in row {}; it must be in 0 to {}, or the ignore_index {}", i, row,
                        classes - 1, ignore_index);
    ++row;
  }
  return t;
}

// Σ_c -q_c log softmax(x)_c, where the target's weight is 1 - ε + ε/C and all others' ε/C. Each logarithm is
// (max - x_c) + log Σ, in this order: max + log Σ would round the logarithm away where the scores are large. With ε = 0
// the other classes do not count: they may be -inf.
template <class T> double row_loss(std::int64_t n, const T* x, std::int64_t target, double smoothing) {
  const auto total = kernels::sum_exp_row(n, x);
  const auto minus_log = [&](std::int64_t c) {
    return (static_cast<double>(total.max) - static_cast<double>(x[c])) + total.log;
  };
  double loss = (1 - smoothing) * minus_log(target);
  for (std::int64_t c = 0; smoothing > 0 && c < n; ++c) loss += smoothing / static_cast<double>(n) * minus_log(c);
  return loss;
}

// The target distribution q, (…, classes).
template <class T> Tensor<T> target_weights(const Targets& t, std::int64_t classes, double smoothing) {
  return one_hot<T>(t.index, classes) * (1 - smoothing) + smoothing / static_cast<double>(classes);
}

// What arrives at each row's loss: a mean hands each of its n terms an equal part.
template <class T> Tensor<T> row_gradient(const Tensor<T>& dy, Reduction reduction, std::int64_t n) {
  return reduction == Reduction::none ? unsqueeze(dy, -1) : reduction == Reduction::mean ? dy / n : dy;
}

template <class T> Tensor<T> reduced(const Tensor<T>& losses, Reduction reduction) {
  return reduction == Reduction::mean ? mean(losses) : reduction == Reduction::sum ? sum(losses) : losses;
}

void check_pairs(const char* op, const Shape& x, const Shape& target) {
  require<ShapeError>(x == target,
                      "{}: shapes {} and {}; they must be equal: reshape one of them (broadcasting would compare every "
                      "element with every other)",
                      op, x, target);
}

}  // namespace

const Op cross_entropy_backward_op{
    "cross_entropy_backward", "dx = dy (softmax(x) - q), 0 where ignored",
    "for u arriving: dx = softmax_backward(softmax(x), u dy), d(dy) = Σ u (softmax(x) - q)",
    "x (…, C), dy () or (…) → (…, C)"};
template <class T> Tensor<T> cross_entropy_backward(const Tensor<T>& logits, const Tensor<T>& dy, const Targets& t,
                                                    const CrossEntropyOptions& o) {
  const Tensor<T> x = contiguous(detach(logits)), arriving = contiguous(detach(dy));
  const Tensor<std::int64_t> index = contiguous(t.index);
  const Tensor<bool> ignored = contiguous(t.ignored);
  const std::int64_t n = logits.size(-1);
  const T q = static_cast<T>(o.label_smoothing / static_cast<double>(n)),
          q_target = static_cast<T>(1 - o.label_smoothing);
  Buffer<T> dx(x.shape(), "cross_entropy_backward");
  kernels::parallel_for(index.numel(), 8 * x.numel(), [&](std::int64_t r) {
    T* row = dx.data() + r * n;
    if (ignored.data()[r]) return void(std::fill_n(row, n, T{}));
    kernels::softmax_row(n, x.data() + r * n, row, false);
    const T dy_row = arriving.data()[o.reduction == Reduction::none ? r : 0],
            scale = o.reduction == Reduction::mean ? dy_row / static_cast<T>(t.count) : dy_row;
    const std::int64_t target = index.data()[r];
    for (std::int64_t c = 0; c < n; ++c) row[c] = (row[c] - ((c == target ? q_target : T{}) + q)) * scale;
  });
  const auto into_logits = [o, count = t.count](const auto& u, const auto& at, const auto& arrived,
                                                const auto& left_out) {
    const auto dp = u * row_gradient(arrived, o.reduction, count);
    return masked_fill(softmax_backward(softmax(at, -1), dp, -1), unsqueeze(left_out, -1), 0);
  };
  const auto into_dy = [o, count = t.count](const auto& u, const auto& at, const auto& targets, const auto& left_out) {
    const auto slope = softmax(at, -1) - target_weights<T>({left_out, targets, count}, at.size(-1), o.label_smoothing);
    const auto rows = sum(masked_fill(u * slope, unsqueeze(left_out, -1), 0), -1);
    return o.reduction == Reduction::none ? rows : row_gradient(sum(rows), o.reduction, count);
  };
  return record(cross_entropy_backward_op, Tensor<T>(std::move(dx)), wrt(logits, into_logits, logits, dy, t.ignored),
                wrt(dy, into_dy, logits, t.index, t.ignored));
}

const Op cross_entropy_op{"cross_entropy", "y = -Σ q log softmax(x), q = (1 - ε) [target] + ε/C",
                          "dx = dy (softmax(x) - q), 0 where ignored", "x (…, C), target (…) → () or (…)"};
template <class T>
Real<T> cross_entropy(const Tensor<T>& logits, const Tensor<std::int64_t>& target, const CrossEntropyOptions& o) {
  require<ShapeError>(logits.rank() > 0 && logits.shape().without(std::max(0, logits.rank() - 1)) == target.shape(),
                      "cross_entropy: logits {} and targets {}; the targets' shape must be the logits' without its "
                      "last axis, the classes",
                      logits.shape(), target.shape());
  require<ValueError>(o.label_smoothing >= 0 && o.label_smoothing <= 1,
                      "cross_entropy: label_smoothing {}; it is a probability, so it must be in [0, 1]",
                      o.label_smoothing);
  const std::int64_t classes = logits.size(-1);
  const Targets t = looked_up(target, classes, o.ignore_index);

  const Tensor<T> x = contiguous(detach(logits));
  const std::vector<std::int64_t> index = t.index.to_vector();
  const std::vector<bool> ignored = t.ignored.to_vector();
  std::vector<double> losses(index.size());
  kernels::parallel_for(target.numel(), 8 * logits.numel(), [&](std::int64_t row) {
    const auto r = static_cast<std::size_t>(row);
    if (!ignored[r]) losses[r] = row_loss(classes, x.data() + row * classes, index[r], o.label_smoothing);
  });
  Buffer<T> y(o.reduction == Reduction::none ? target.shape() : Shape{}, "cross_entropy");
  const double total = std::accumulate(losses.begin(), losses.end(), 0.0);
  if (o.reduction == Reduction::none)
    std::transform(losses.begin(), losses.end(), y.data(), [](double loss) { return static_cast<T>(loss); });
  else
    y[0] = static_cast<T>(o.reduction == Reduction::mean ? total / static_cast<double>(t.count) : total);
  const auto into_logits = [o, count = t.count](const auto& dy, const auto& at, const auto& targets,
                                                const auto& left_out) {
    return cross_entropy_backward(at, dy, {left_out, targets, count}, o);
  };
  return record(cross_entropy_op, Tensor<T>(std::move(y)), wrt(logits, into_logits, logits, t.index, t.ignored));
}

const Op mse_loss_op{"mse_loss", "y = mean (x - t)²", "dx = 2 dy (x - t) / n, dt = -dx",
                     "x (…), t the same → () or (…)"};
template <class T> Real<T> mse_loss(const Tensor<T>& x, const Like<T>& target, Reduction reduction) {
  check_pairs("mse_loss", x.shape(), target.shape());
  const auto d = detach(x) - detach(target);
  auto y = reduced(d * d, reduction);
  const auto pullback = [reduction, n = x.numel()](const auto& dy, const auto& at, const auto& other) {
    return (at - other) * ((reduction == Reduction::mean ? dy / n : dy) * 2);
  };
  return record(mse_loss_op, std::move(y), wrt(x, pullback, x, target), wrt(target, pullback, target, x));
}

template <class T>
Real<T> binary_cross_entropy_with_logits(const Tensor<T>& x, const Tensor<T>& target,
                                         const BinaryCrossEntropyOptions<std::type_identity_t<T>>& o) {
  check_pairs("binary_cross_entropy_with_logits", x.shape(), target.shape());
  const auto weighted = [&](const Tensor<T>& losses, const auto& weight) {
    return weight ? losses * broadcast_to(*weight, x.shape()) : losses;
  };
  constexpr double none = std::numeric_limits<double>::infinity();  // no threshold: exact everywhere
  const auto hits = weighted(target * softplus(-x, 1, none), o.pos_weight),
             misses = (1 - target) * softplus(x, 1, none);
  return reduced(weighted(hits + misses, o.weight), o.reduction);
}

#define TAPEHEAD_LOSS(T)                                                                                       \
  template Tensor<T> cross_entropy(const Tensor<T>&, const Tensor<std::int64_t>&, const CrossEntropyOptions&); \
  template Tensor<T> binary_cross_entropy_with_logits<T>(const Tensor<T>&, const Tensor<T>&,                   \
                                                         const BinaryCrossEntropyOptions<T>&);                 \
  template Tensor<T> mse_loss(const Tensor<T>&, const Tensor<T>&, Reduction);
TAPEHEAD_REALS(TAPEHEAD_LOSS)

}  // namespace tapehead
