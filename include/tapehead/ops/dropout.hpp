#pragma once
#include "tapehead/random/random.hpp"
#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

/// x / (1 - p) where `keep` is true and 0 elsewhere, so that the mean stays (Srivastava et al. 2014). keep
/// broadcasts to x's shape; what is dropped is not touched, be it NaN. With p = 1 everything is dropped.
/// Throws ValueError unless 0 <= p <= 1.
template <class T> Real<T> dropout(const Tensor<T>& x, double p, const Tensor<bool>& keep);
/// The same with the mask drawn: each element is kept with probability 1 - p. The draws are torch.dropout's.
/// p = 0 draws nothing and gives x itself.
template <class T> Real<T> dropout(const Tensor<T>& x, double p, TorchRandom& generator);

}  // namespace tapehead
