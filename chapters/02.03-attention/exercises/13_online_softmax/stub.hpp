// 13  Softmax in one pass                                                (The quadratic bottleneck)
//
// Softmax needs the largest score m and Σ exp(score - m). That seems to take two passes: one for m,
// one for the sum. It can be done in one. Running (see exercise.hpp) holds m and the sum for the
// scores seen so far; before the first, max is -inf and sum 0.
//
// (a) add_score: what there is after one more score. The score may be -inf (a masked key), even the
//     very first. (b) merge: two parts of a row, each seen on its own; return what there is for
//     both together. Either may be empty.
#include "exercise.hpp"

Running add_score(Running r, double score) {
  todo();  // ... return {.max = ..., .sum = ...};
}

Running merge(Running a, Running b) {
  todo();  // ... return {.max = ..., .sum = ...};
}
