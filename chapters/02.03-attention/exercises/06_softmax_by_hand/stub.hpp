// 06  Softmax from max, exp and sum                        (A From-Scratch Implementation in NumPy)
//
// The first rung of the ladder. x is (m, n): m rows of scores. Return the softmax of each row, (m,
// n), written with max, exp, sum and division alone. It has to hold for scores such as 1000 as
// well.
#include "exercise.hpp"

Tensor<double> softmax_by_hand(const Tensor<double>& x) {
  todo();  // your code here, instead of this line; sum(x, axis, true) keeps the axis, with size 1
}
