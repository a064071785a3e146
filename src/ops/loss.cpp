#include "tapehead/ops/loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernels/parallel.hpp"
#include "kernels/rows.hpp"
#include "autograd/recorded.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/indexing.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/ops/softmax.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace {

// Which rows count, and their targets; an ignored row's is 0, so that it can be looked up.
struct Targets {
  Targets(const Tensor<std::int64_t>& target, std::int64_t classes, std::int64_t ignore_index)
      : ignored(eq(target, scalar(ignore_index))), index(masked_fill(target, ignored, 0)) {
    std::int64_t row = 0;
    for (std::int64_t i : index.to_vector()) {
      if (i < 0 || i >= classes)
        throw IndexError(
            fmt::format("cross_entropy: target {} in row {}; it must be in 0 to {}, or the ignore_index {}",
                        i, row, classes - 1, ignore_index));
      ++row;
    }
    for (bool is : ignored.to_vector()) count += is ? 0 : 1;
  }
  Tensor<bool> ignored;
  Tensor<std::int64_t> index;
  std::int64_t count = 0;
};

// Σ_c -q_c log softmax(x)_c, the target's weight being 1 - ε + ε/C and all others ε/C. Where ε is 0 the
// others do not come in: they may be -inf.
template <class T>
double row_loss(std::int64_t n, const T* x, std::int64_t target, double smoothing) {
  const auto total = kernels::sum_exp_row(n, x);
  const double log_sum = static_cast<double>(total.max) + total.log;
  double loss = (1 - smoothing) * (log_sum - static_cast<double>(x[target]));
  if (smoothing > 0)
    for (std::int64_t c = 0; c < n; ++c)
      loss += smoothing / static_cast<double>(n) * (log_sum - static_cast<double>(x[c]));
  return loss;
}

// The gradient of the logits, row by row, unrecorded.
template <class T>
Tensor<T> pulled(const Tensor<T>& logits, const Targets& t, const CrossEntropyOptions& o,
                 const Tensor<T>& dy) {
  const Tensor<T> x = contiguous(detach(logits)), arriving = contiguous(detach(dy));
  const Tensor<std::int64_t> index = contiguous(t.index);
  const Tensor<bool> ignored = contiguous(t.ignored);
  const std::int64_t n = logits.size(-1);
  const bool each = o.reduction == Reduction::none;
  const T q = static_cast<T>(o.label_smoothing / static_cast<double>(n)),
          q_target = static_cast<T>(1 - o.label_smoothing);
  Buffer<T> dx(x.shape(), "cross_entropy");
  kernels::parallel_for(index.numel(), 8 * x.numel(), [&](std::int64_t r) {
    T* row = dx.data() + r * n;
    if (ignored.data()[r]) return void(std::fill_n(row, n, T{}));
    kernels::softmax_row(n, x.data() + r * n, row, false);
    const T dy_row = arriving.data()[each ? r : 0],
            scale = o.reduction == Reduction::mean ? dy_row / static_cast<T>(t.count) : dy_row;
    const std::int64_t target = index.data()[r];
    for (std::int64_t c = 0; c < n; ++c) row[c] = (row[c] - ((c == target ? q_target : T{}) + q)) * scale;
  });
  return dx;
}

// A gradient that arrives at a mean goes to each of n in equal parts.
template <class T>
Tensor<T> shared(const Tensor<T>& dy, Reduction reduction, std::int64_t n) {
  return reduction == Reduction::mean ? dy / n : dy;
}

}  // namespace

const Op cross_entropy_op{"cross_entropy", "y = -Σ q log softmax(x), q = (1 - ε) [target] + ε/C",
                          "dx = dy (softmax(x) - q), 0 where ignored"};
template <std::floating_point T>
Tensor<T> cross_entropy(const Tensor<T>& logits, const Tensor<std::int64_t>& target,
                        const CrossEntropyOptions& o) {
  if (logits.rank() == 0 || logits.shape().without(logits.rank() - 1) != target.shape())
    throw ShapeError(
        fmt::format("cross_entropy: logits {} and targets {}; the targets' shape must be the logits' without "
                    "its last axis, the classes",
                    logits.shape().str(), target.shape().str()));
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    throw ValueError(
        fmt::format("cross_entropy: label_smoothing {}; it is a share, 0 to 1", o.label_smoothing));
  const std::int64_t classes = logits.size(-1);
  const Targets t(target, classes, o.ignore_index);

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

  return record(
      cross_entropy_op, Tensor<T>(std::move(y)), wrt(logits, [logits, t, o, classes](const auto& dy) {
        if (detail::nobody_records(logits, dy)) return pulled(logits, t, o, dy);
        const auto q = one_hot<T>(t.index, classes) * (1 - o.label_smoothing) +
                       o.label_smoothing / static_cast<double>(classes);
        const auto each = shared(dy, o.reduction, t.count);
        const auto dx =
            (softmax(logits, -1) - q) * (o.reduction == Reduction::none ? unsqueeze(each, -1) : each);
        return masked_fill(dx, unsqueeze(t.ignored, -1), 0);
      }));
}

const Op mse_loss_op{"mse_loss", "y = mean (x - t)²", "dx = 2 dy (x - t) / n, dt = -dx"};
template <std::floating_point T>
Tensor<T> mse_loss(const Tensor<T>& x, const Tensor<T>& target, Reduction reduction) {
  if (x.shape() != target.shape())
    throw ShapeError(
        fmt::format("mse_loss: shapes {} and {}; they must be equal: reshape one of them (broadcasting would "
                    "compare each with each)",
                    x.shape().str(), target.shape().str()));
  const auto d = detach(x) - detach(target);
  auto y = reduction == Reduction::mean ? mean(d * d) : reduction == Reduction::sum ? sum(d * d) : d * d;
  const auto slope = [reduction, n = x.numel()](const auto& dy) { return shared(dy, reduction, n) * 2; };
  return record(mse_loss_op, std::move(y),
                wrt(x, [x, target, slope](const auto& dy) { return (x - target) * slope(dy); }),
                wrt(target, [x, target, slope](const auto& dy) { return (target - x) * slope(dy); }));
}

#define TAPEHEAD_LOSS(T)                                                          \
  template Tensor<T> cross_entropy(const Tensor<T>&, const Tensor<std::int64_t>&, \
                                   const CrossEntropyOptions&);                   \
  template Tensor<T> mse_loss(const Tensor<T>&, const Tensor<T>&, Reduction);
TAPEHEAD_LOSS(float)
TAPEHEAD_LOSS(double)

}  // namespace tapehead
