// The sum is kept relative to the largest score so far. When the largest changes from m to m', every term
// exp(s - m) has to become exp(s - m'), which is the same factor exp(m - m') for all: the old sum is
// multiplied once. With nothing but -inf seen, m - m' would be NaN; the sum is 0 then, and stays so. Adding
// one score is merging with a part that has just that score: its largest is itself, and its sum exp(0) = 1.
// That two parts can be merged in any order is what lets a kernel split a row among blocks, and blocks among
// processors.
#include "exercise.hpp"

Running merge(Running a, Running b) {
  const double m = std::max(a.max, b.max);
  if (m == -inf) return {.max = -inf, .sum = 0};
  return {.max = m, .sum = a.sum * std::exp(a.max - m) + b.sum * std::exp(b.max - m)};
}

Running add_score(Running r, double score) {
  return merge(r, {.max = score, .sum = score == -inf ? 0.0 : 1.0});
}
