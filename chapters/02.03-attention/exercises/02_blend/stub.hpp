// 02  The blend, and what it can reach                                     (the book's exercise 2)
//
// (a) blend: given weights a, (n,), and values V, (n, d), one value in each row, return the
//     output of attention, (d,): the sum of the values, each multiplied by its weight.
// (b) reachable: given three values in the plane, the rows of V, (3, 2), and a point, (2,), say
//     whether any weights that are not negative and sum to one produce that point. (Softmax
//     weights are such weights. They are never exactly 0, but they can be as close to 0 as you
//     like.) The three values never lie on one line, and the point never lies on the border.
#include "exercise.hpp"

Tensor<double> blend(const Tensor<double>& a, const Tensor<double>& V) {
  todo();  // write your code in place of this line
}

bool reachable(const Tensor<double>& point, const Tensor<double>& V) {
  todo();  // write your code in place of this line; V.at({0, 1}) is the second coordinate of the first value
}
