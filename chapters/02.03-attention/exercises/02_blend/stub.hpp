// 02  The blend, and what it can reach                                      (the book's exercise 2)
//
// (a) blend: weights a, (n,), and values V, (n, d), one in each row. Return what attention hands
//     over, (d,): each value as much as its weight says.
// (b) reachable: three values in the plane, the rows of V, (3, 2), and a point, (2,). Can any
//     weights that are not negative and sum to one give that point? (Softmax weights are such
//     weights. They never are exactly 0, but as close to it as you like.) The three values never
//     lie on one line, and the point is never on the border.
#include "exercise.hpp"

Tensor<double> blend(const Tensor<double>& a, const Tensor<double>& V) {
  todo();  // your code here, instead of this line
}

bool reachable(const Tensor<double>& point, const Tensor<double>& V) {
  todo();  // your code here, instead of this line; V.at({0, 1}) is the second coordinate of the first value
}
