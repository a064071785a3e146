// 04  Minus infinity: make the NaN, prevent it                              (the book's exercise 4)
//
// (a) a_row_that_breaks: return scores as a mask may leave them, (n,) with n at least 2: every one
//     a finite number or minus infinity (`-inf`), so that softmax of them is NaN ("not a number").
// (b) masked_weights: scores and a mask, both (L, n); true = may attend. Return the weights, (L,
//     n): each row the softmax over its allowed keys, exactly 0 for all others, and nothing but 0
//     in a row that allows no key. Write it with max, exp, sum, where and masked_fill, not with the
//     library's softmax. Scores can be large.
#include "exercise.hpp"

Tensor<double> a_row_that_breaks() {
  todo();  // return {..., ...};
}

Tensor<double> masked_weights(const Tensor<double>& scores, const Tensor<bool>& allowed) {
  todo();  // your code here, instead of this line
}
