// Exercise 06: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

inline T over_row_sum(const T& e) { return e / sum(e, -1, true); }

inline void wrong_answers(Question<T(T)>& q) {
  q.mistake("wrong axis: each row sums to one, not each column", [](T x) { return softmax(x, 0); });
  q.mistake(
      "the maximum of the whole matrix is subtracted, and the sum runs over the whole matrix; each row has "
      "its own",
      [](T x) { return softmax(x.reshape({-1}), 0).reshape(x.shape()); });
  q.mistake("the sum runs over the whole matrix; each row has its own", [](T x) {
    const T e = exp(x - max(x, -1, true));
    return e / sum(e);
  });
  q.mistake("no number is subtracted from the scores: exp overflows, and inf / inf is NaN",
            [](T x) { return over_row_sum(exp(x)); });
  q.mistake("one largest score is taken for the whole matrix: in rows far below it, 0 is divided by 0",
            [](T x) { return over_row_sum(exp(x - max(x))); });
  q.mistake("the smallest score of the row is subtracted; with the largest, exp cannot overflow",
            [](T x) { return over_row_sum(exp(x - min(x, -1, true))); });
  q.mistake("the mean of the row is subtracted; with the largest score, exp cannot overflow",
            [](T x) { return over_row_sum(exp(x - mean(x, -1, true))); });
  q.mistake("the first score of the row is subtracted; with the largest, exp cannot overflow",
            [](T x) { return over_row_sum(exp(x - x.slice(1, 0, 1))); });
  q.mistake("the last score of the row is subtracted; with the largest, exp cannot overflow",
            [](T x) { return over_row_sum(exp(x - x.slice(1, -1, x.size(1)))); });
  q.mistake(
      "the search for the largest score starts at 0, so scores that are all negative are missed: start at "
      "-inf",
      [](T x) {
        return over_row_sum(exp(x - where(max(x, -1, true) > scalar(0.0), max(x, -1, true), scalar(0.0))));
      });
  q.mistake("the sum is not started again for each row, so it includes the rows above", [](T x) {
    const T e = exp(x - max(x, -1, true));
    return e / matmul(tril(ones<double>({x.size(0), x.size(0)})), sum(e, -1, true));
  });
  q.mistake("the sum of the row is subtracted; subtract its largest score",
            [](T x) { return over_row_sum(exp(x - sum(x, -1, true))); });
  q.mistake("the scores are divided by the largest one; subtract it",
            [](T x) { return over_row_sum(exp(x / max(x, -1, true))); });
  q.mistake("the scores are limited to 700, which changes the weights; subtract the largest score of the row",
            [](T x) { return over_row_sum(exp(where(x > scalar(700.0), scalar(700.0), x))); });
  q.mistake("the exponentials are not divided by the sum of their row",
            [](T x) { return exp(x - max(x, -1, true)); });
  q.mistake("the scores themselves are divided by their sum: exp is missing",
            [](T x) { return x / sum(x, -1, true); });
  q.mistake(
      "the largest score is subtracted only before the sum: numerator and denominator need the same "
      "exponentials",
      [](T x) { return exp(x) / sum(exp(x - max(x, -1, true)), -1, true); });
  q.mistake("sum and max without `true` lose their axis, and then line up with the columns", [](T x) {
    const T e = exp(x - max(x, -1));
    return e / sum(e, -1);
  });
  q.mistake("sum without `true` loses its axis, and then lines up with the columns", [](T x) {
    const T e = exp(x - max(x, -1, true));
    return e / sum(e, -1);
  });
  q.mistake("this is the logarithm of the softmax", [](T x) { return log_softmax(x, -1); });
  q.mistake("the sign of the scores is reversed", [](T x) { return softmax(-x, -1); });
  q.wrong("", [](T x) {  // one past the row: the sum takes the next row's first exponential
    const T e = exp(x - max(x, -1, true));
    const auto values = e.to_vector();
    const auto n = static_cast<std::size_t>(x.size(1));
    std::vector<double> out(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      double total = 0;
      for (std::size_t j = i / n * n; j <= i / n * n + n; ++j) total += j < values.size() ? values[j] : 0.5;
      out[i] = values[i] / total;
    }
    return from_vector<double>(out, x.shape());
  });
  q.wrong("Most likely: the numbers are right to four digits: was something rounded, or computed as a float?",
          [](T x) { return to<double>(to<float>(softmax(x, -1))); });
}

}  // namespace exercise
