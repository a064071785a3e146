// 04  Minus infinity: make the NaN, prevent it                             (the book's exercise 4)
//
// (a) a_row_that_breaks: return scores as a mask may leave them, (n,) with n at least 2: each a
//     finite number or minus infinity (`-inf`), such that their softmax is NaN ("not a number").
// (b) masked_weights: given scores and a mask, both (L, n), where true means "may attend",
//     return the weights, (L, n). Each row is the softmax over its allowed keys; all other
//     weights are exactly 0, and a row without an allowed key is all 0. Write it with max, exp,
//     sum, where and masked_fill, without the library's softmax or attention. Scores can be
//     large, those of forbidden keys too.
#include "exercise.hpp"

Tensor<double> a_row_that_breaks() {
  todo();  // return {..., ...};
}

Tensor<double> masked_weights(const Tensor<double>& scores, const Tensor<bool>& allowed) {
  todo();  // write your code in place of this line
}
