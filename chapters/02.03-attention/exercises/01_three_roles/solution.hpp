// A query says what a token looks for, a key says what it can be found by, and a value what it hands over.
// With one vector in the first two roles the score of (i, j) is x_i · x_j, and that is the score of (j, i):
// "the verb looks for its subject" would force "the subject looks just as hard for its verb". One shared
// matrix W does not help: (x W)(x W)ᵀ is still a matrix times its own transpose. Two matrices give x (Wq Wkᵀ)
// xᵀ, and Wq Wkᵀ may be any matrix of rank d_k. The weights are not symmetric even where the scores are,
// because softmax divides each row by that row's own sum.
#include "exercise.hpp"

Tensor<double> scores(const Tensor<double>& x, const Tensor<double>& Wq, const Tensor<double>& Wk) {
  const auto Q = matmul(x, Wq), K = matmul(x, Wk);
  return matmul(Q, K.T()) / std::sqrt(static_cast<double>(Wq.size(1)));
}

Symmetric predict() {
  return {.scores_of_one_input = true,
          .scores_of_two_matrices = false,
          .scores_of_shared_matrix = true,
          .weights_of_one_input = false};
}
