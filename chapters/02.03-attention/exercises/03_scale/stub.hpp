// 03  What the scale does to the gradient                                  (the book's exercise 3)
//
// One query, three keys, d_k = 36. The raw scores q · k are 12, 6 and 0.
//
// (a) raw_weights: the softmax of the raw scores, (3,), to four digits after the point.
// (b) scaled_weights: the softmax of the scores after they are divided by √d_k, to four digits.
// (c) softmax_jacobian: for any weights a = softmax(s), (n,), the matrix J, (n, n), with J_ml =
//     ∂a_m/∂s_l.
// (d) times_larger: the largest entry of J for the scaled weights, divided by the largest entry
//     of J for the raw weights, to the nearest whole number. It says how much more gradient
//     reaches the scores.
// You may work the numbers out on paper or let the program compute them.
#include "exercise.hpp"

Tensor<double> raw_weights() {
  todo();  // return {..., ..., ...};
}

Tensor<double> scaled_weights() {
  todo();  // write your code in place of this line
}

Tensor<double> softmax_jacobian(const Tensor<double>& a) {
  todo();  // write your code in place of this line
}

double times_larger() {
  todo();  // write your code in place of this line
}
