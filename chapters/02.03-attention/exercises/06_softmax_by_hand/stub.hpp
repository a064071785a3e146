// 06  Softmax from max, exp and sum                       (A From-Scratch Implementation in NumPy)
//
// The first step towards attention: x is (m, n), that is m rows of scores. Return the softmax of
// each row, (m, n), written with max, exp, sum and division, without the library's softmax. It
// has to work for large scores too, such as 1000.
#include "exercise.hpp"

Tensor<double> softmax_by_hand(const Tensor<double>& x) {
  todo();  // write your code in place of this line; sum(x, axis, true) keeps the axis, with size 1
}
