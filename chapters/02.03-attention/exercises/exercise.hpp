#pragma once
// Every answer includes this file: it has the tensors and operations of the library, and the small types that
// some exercises return.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <tapehead/tapehead.hpp>

using namespace tapehead;

const double inf = std::numeric_limits<double>::infinity();

/// Stands in a stub until you replace it with your own code.
[[noreturn]] void todo();

/// 01: whether a matrix equals its own transpose.
struct Symmetric {
  bool scores_of_one_input;      ///< queries and keys are both x itself
  bool scores_of_two_matrices;   ///< queries x Wq, keys x Wk
  bool scores_of_shared_matrix;  ///< queries x W, keys x W, the same W
  bool weights_of_one_input;     ///< the softmax of the first
};

/// 05: what a row of attention weights approaches.
enum class Weights { one_hot, even, unchanged };
struct Limits {
  Weights tau_to_zero;
  Weights tau_to_infinity;
};

/// 10: the backward pass, in the chapter's letters.
struct Backward {
  Tensor<double> dV, dA, dS, dQ, dK;
};

/// 13: the state of a softmax that has seen some of the scores.
struct Running {
  double max = -inf;  ///< the largest score
  double sum = 0;     ///< Σ exp(score - max)
};

/// 14: some consecutive keys, (n, d_k), and their values, (n, d_v).
struct Block {
  Tensor<double> K, V;
};

/// 15: the keys, (n, d_k), and values, (n, d_v), of all tokens so far.
struct Cache {
  Tensor<double> K, V;
};

/// 18: what one query contributes to the gradients.
struct RowGradients {
  Tensor<double> dq, dK, dV;  ///< (d_k,), (n, d_k), (n, d_v)
};
