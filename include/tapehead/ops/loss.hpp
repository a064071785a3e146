#pragma once
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

}  // namespace tapehead
