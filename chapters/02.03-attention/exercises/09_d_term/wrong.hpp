// Exercise 09: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

inline void wrong_answers(Question<T(T, T)>& q) {
  q.mistake("the axis is gone: D is (n_q, 1), and sum(..., -1, true) keeps it",
            [](T x, T y) { return sum(x * y, -1); });
  q.mistake("this is one number, the sum over everything; every query has its own D",
            [](T x, T y) { return sum(x * y); });
  q.mistake("all rows have the same number, the sum over everything; every query has its own D",
            [](T x, T y) {
              return full<double>({x.size(0), 1}, sum(x * y).item());
            });
  q.mistake("wrong axis: D sums along each row", [](T x, T y) { return sum(x * y, 0, true); });
  q.mistake("wrong axis: D sums along each row", [](T x, T y) { return mT(sum(x * y, 0, true)); });
  q.mistake("this is the mean; D is the sum", [](T x, T y) { return mean(x * y, -1, true); });
  q.mistake("this is a product of matrices; D needs only its diagonal",
            [](T x, T y) { return matmul(x, y.T()); });
  q.mistake("the products are not summed along the row", [](T x, T y) { return x * y; });
  q.mistake("this is the largest product of the row; D is their sum",
            [](T x, T y) { return max(x * y, -1, true); });
  q.wrong("Most likely: every number is 0", [](T x, T) { return zeros<double>({x.size(0), 1}); });
  q.wrong("Most likely: the sign is wrong: every number is the negative of the right one",
          [](T x, T y) { return -sum(x * y, -1, true); });
}
inline void wrong_from_weights(Question<T(T, T)>& q) {
  q.mistake("A is not used: D is the sum of A ⊙ dA", [](T, T dA) { return sum(dA, -1, true); });
  q.mistake("dA is not used: D is the sum of A ⊙ dA", [](T A, T) { return sum(A, -1, true); });
  q.mistake("A is used squared", [](T A, T dA) { return sum(A * A * dA, -1, true); });
}
inline void wrong_from_output(Question<T(T, T)>& q) {
  q.mistake("dO is not used: D is the sum of dO ⊙ O", [](T, T O) { return sum(O, -1, true); });
  q.mistake("O is not used: D is the sum of dO ⊙ O", [](T dO, T) { return sum(dO, -1, true); });
  q.mistake("this is the sum of dO², without O", [](T dO, T) { return sum(dO * dO, -1, true); });
}

}  // namespace exercise
