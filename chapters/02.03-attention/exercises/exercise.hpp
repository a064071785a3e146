#pragma once
// What every answer includes: the tensors and operations of the library, and the small types that some of the
// exercises give back.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/attention/attention.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/join.hpp"
#include "tapehead/attention/masks.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/matmul.hpp"
#include "tapehead/tensor/print.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/ops/softmax.hpp"
#include "tapehead/tensor/tensor.hpp"
#include "tapehead/ops/views.hpp"

using namespace tapehead;

const double inf = std::numeric_limits<double>::infinity();

/// Stands in a stub where the reader's code will be.
[[noreturn]] void todo();

/// 01: which matrices equal their own transpose?
struct Symmetric {
  bool scores_of_one_input;      ///< queries and keys are both x itself
  bool scores_of_two_matrices;   ///< queries x Wq, keys x Wk
  bool scores_of_shared_matrix;  ///< queries x W, keys x W, the same W
  bool weights_of_one_input;     ///< the softmax of the first
};

/// 05: what a row of attention weights comes close to.
enum class Weights { one_hot, even, unchanged };
struct Limits {
  Weights tau_to_zero;
  Weights tau_to_infinity;
};

/// 10: the backward pass, in the chapter's letters.
struct Backward {
  Tensor<double> dV, dA, dS, dQ, dK;
};

/// 13: what has to be remembered of the scores seen so far.
struct Running {
  double max = -inf;  ///< the largest
  double sum = 0;     ///< Σ exp(score - max)
};

/// 14: some consecutive keys and values, (n, d_k) and (n, d_v).
struct Block {
  Tensor<double> K, V;
};

/// 15: the keys and values of all tokens so far, (n, d_k) and (n, d_v).
struct Cache {
  Tensor<double> K, V;
};

/// 18: what one query contributes to the gradients.
struct RowGradients {
  Tensor<double> dq, dK, dV;  ///< (d_k,), (n, d_k), (n, d_v)
};
