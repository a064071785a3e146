// Dividing by tau multiplies the differences between scores by 1 / tau. As tau goes to 0, the largest
// score wins by any margin: the weights become one-hot, and attention becomes a lookup. As tau goes to
// infinity, all differences vanish: the weights become even, and attention becomes a mean. At tau = 1 it
// is the chapter's attention. √d_k is itself a temperature, the one that keeps the variance of the scores
// at 1. Masked scores stay at -inf for every tau, because the mask comes after the division and before
// softmax.
#include "exercise.hpp"

Attention<double> tempered_attention(const Tensor<double>& Q, const Tensor<double>& K,
                                     const Tensor<double>& V, const std::optional<Tensor<bool>>& mask,
                                     double tau) {
  if (!(tau > 0)) throw ValueError("tempered_attention: tau has to be above 0");
  auto S = matmul(Q, K.T()) / (std::sqrt(static_cast<double>(Q.size(-1))) * tau);
  if (mask) S = where(*mask, S, scalar(-inf));
  const auto A = softmax(S, -1);
  return {.out = matmul(A, V), .weights = A};
}

Limits predict() { return {.tau_to_zero = Weights::one_hot, .tau_to_infinity = Weights::even}; }
