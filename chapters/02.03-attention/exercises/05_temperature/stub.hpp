// 05  Temperature and its two limits                                        (the book's exercise 5)
//
// (a) tempered_attention: attention with one thing more, a temperature tau that divides the scaled
//     scores before softmax: softmax(Q Kᵀ / (tau √d_k)) V. Q is (n_q, d_k), K (n_k, d_k), V (n_k,
//     d_v). A mask, where there is one, is (n_q, n_k) with true = may attend; every row allows at
//     least one key. Throw a ValueError unless tau is greater than 0.
// (b) predict: what do the weights of a row come close to as tau goes to 0, and as it goes to
//     infinity? Weights::one_hot: all on the key with the largest score. even: the same on every
//     key. unchanged.
#include "exercise.hpp"

Attention<double> tempered_attention(const Tensor<double>& Q, const Tensor<double>& K,
                                     const Tensor<double>& V, const std::optional<Tensor<bool>>& mask,
                                     double tau) {
  todo();  // ... return {.out = ..., .weights = ...};
}

Limits predict() {
  todo();  // return {.tau_to_zero = Weights::..., .tau_to_infinity = Weights::...};
}
