#pragma once
#include <optional>
#include <type_traits>

#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

/// What becomes of one loss a row (or element): each by itself, their sum, or their mean.
enum class Reduction { mean, sum, none };

struct CrossEntropyOptions {
  /// A row with this target counts for nothing, in the loss and in the gradient.
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;  ///< ε of the target's weight is spread evenly over all classes, 0 to 1
  Reduction reduction = Reduction::mean;
};
/// -log softmax(logits)[target] for each row. logits are (…, classes) and target (…): the classes stand last,
/// also where there are more than two axes. The mean runs over the rows that are not ignored: with none left
/// it is NaN (0 / 0), as in PyTorch, and the gradient 0. Throws ShapeError, and IndexError on a target that
/// is no class.
template <class T> Real<T> cross_entropy(const Tensor<T>& logits, const Tensor<std::int64_t>& target,
                                         const CrossEntropyOptions& options = {});

/// (x - target)². Throws ShapeError unless the shapes are equal: (n, 1) against (n,) would broadcast to n × n
/// pairs.
template <class T> Real<T> mse_loss(const Tensor<T>& x, const Like<T>& target, Reduction reduction = Reduction::mean);

template <class T> struct BinaryCrossEntropyOptions {
  std::optional<Tensor<T>> weight = {};      ///< of each loss; broadcasts to x's shape
  std::optional<Tensor<T>> pos_weight = {};  ///< of the target's part t softplus(-x); broadcasts to x's shape
  Reduction reduction = Reduction::mean;
};
/// -t log σ(x) - (1 - t) log(1 - σ(x)) = t softplus(-x) + (1 - t) softplus(x) for each logit x and target t, the
/// probability that it should have: exact where σ(x) would round to 0 or 1. Both have a gradient, and so have the
/// weights. Throws ShapeError unless x and target have one shape.
template <class T>
Real<T> binary_cross_entropy_with_logits(const Tensor<T>& x, const Tensor<T>& target,
                                         const BinaryCrossEntropyOptions<std::type_identity_t<T>>& options = {});

}  // namespace tapehead
