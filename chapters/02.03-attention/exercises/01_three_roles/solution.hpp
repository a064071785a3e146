// A query says what a token looks for, a key says what the token can be found by, and a value is what it
// passes on. If one vector serves as query and key, then the score of (i, j) is x_i · x_j, which is also
// the score of (j, i): "the verb looks for its subject" would force "the subject looks just as hard for
// its verb". One shared matrix W does not help, because (x W)(x W)ᵀ is still a matrix times its own
// transpose. Two matrices give x (Wq Wkᵀ) xᵀ, and Wq Wkᵀ can be any matrix of rank d_k or less. The
// weights are not symmetric even if the scores are, because softmax divides each row by its own sum.
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
