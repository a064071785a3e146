// 05  Temperature and its two limits                                       (the book's exercise 5)
//
// (a) tempered_attention: attention with a temperature tau, which divides the scaled scores
//     before softmax: softmax(Q Kᵀ / (tau √d_k)) V. Q is (n_q, d_k), K (n_k, d_k), V (n_k, d_v).
//     The mask is optional: it is (n_q, n_k), where true means "may attend", and every row
//     allows at least one key. A forbidden key gets a weight of exactly 0, however low the other
//     scores are. Throw a ValueError unless tau is greater than 0.
// (b) predict: what do the weights of a row approach as tau goes to 0, and as it goes to
//     infinity? Weights::one_hot means all weight on the key with the largest score,
//     Weights::even the same weight on every key, Weights::unchanged that the weights do not
//     depend on tau.
#include "exercise.hpp"

Attention<double> tempered_attention(const Tensor<double>& Q, const Tensor<double>& K,
                                     const Tensor<double>& V, const std::optional<Tensor<bool>>& mask,
                                     double tau) {
  todo();  // ... return {.out = ..., .weights = ...};
}

Limits predict() {
  todo();  // return {.tau_to_zero = Weights::..., .tau_to_infinity = Weights::...};
}
