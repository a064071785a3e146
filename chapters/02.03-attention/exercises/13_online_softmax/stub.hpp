// 13  Softmax in one pass                                               (The quadratic bottleneck)
//
// Softmax needs the largest score m and the sum Σ exp(score - m). That seems to take two passes
// over the scores, one for m and one for the sum, but one pass is enough. Running (see
// exercise.hpp) holds m and the sum for the scores seen so far; before the first score, max is
// -inf and sum is 0.
//
// (a) add_score: return the state after one more score. The score may be -inf (a masked key),
//     even the first one.
// (b) merge: given the states of two parts of a row, return the state for both parts together.
//     Either part may be empty.
#include "exercise.hpp"

Running add_score(Running r, double score) {
  todo();  // ... return {.max = ..., .sum = ...};
}

Running merge(Running a, Running b) {
  todo();  // ... return {.max = ..., .sum = ...};
}
