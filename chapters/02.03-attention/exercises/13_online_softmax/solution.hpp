// The sum is relative to the largest score so far. If the largest score changes from m to m', every term
// exp(s - m) has to become exp(s - m'), and that is the same factor exp(m - m') for all terms: the old sum
// is multiplied once. If there was nothing but -inf so far, m - m' could be NaN; the sum is 0 in that case
// and stays 0. Adding one score is the same as merging with a part that has just this score: its largest
// score is the score itself, and its sum is exp(0) = 1. Because two parts can be merged in any order, a
// kernel can split a row into blocks, and distribute the blocks over processors.
#include "exercise.hpp"

Running merge(Running a, Running b) {
  const double m = std::max(a.max, b.max);
  if (m == -inf) return {.max = -inf, .sum = 0};
  return {.max = m, .sum = a.sum * std::exp(a.max - m) + b.sum * std::exp(b.max - m)};
}

Running add_score(Running r, double score) {
  return merge(r, {.max = score, .sum = score == -inf ? 0.0 : 1.0});
}
