// 01  One input in three roles                                             (the book's exercise 1)
//
// Why does a token need a query AND a key? Find out what is lost if both are the same vector.
//
// (a) scores: the tokens are the rows of x, (L, d). Their queries are x Wq and their keys are x
//     Wk; Wq and Wk are (d, d_k). Return the scaled scores, (L, L): row i has the score of query
//     i with each key.
// (b) predict: before you run anything, say for each of four matrices whether it equals its own
//     transpose for every x. If it does, then what token i asks of token j is exactly what j
//     asks of i.
#include "exercise.hpp"

Tensor<double> scores(const Tensor<double>& x, const Tensor<double>& Wq, const Tensor<double>& Wk) {
  todo();  // write your code in place of this line
}

Symmetric predict() {
  todo();  // return {.scores_of_one_input = ..., ...}: true or false for each; see exercise.hpp
}
