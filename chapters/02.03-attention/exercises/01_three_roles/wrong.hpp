// Exercise 01: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

inline T raw(const T& x, const T& Wq, const T& Wk) { return matmul(matmul(x, Wq), matmul(x, Wk).T()); }
inline double width(const T& x) { return static_cast<double>(x.size(1)); }

inline void wrong_scores(Question<T(T, T, T)>& q) {
  q.mistake("the scale is missing: divide by the square root of d_k, the width of Wq",
            [](T x, T Wq, T Wk) { return raw(x, Wq, Wk); });
  q.mistake("the scores are divided by d_k; divide by its square root",
            [](T x, T Wq, T Wk) { return raw(x, Wq, Wk) / width(Wq); });
  q.mistake("the scores are multiplied by the square root of d_k; divide by it",
            [](T x, T Wq, T Wk) { return raw(x, Wq, Wk) * std::sqrt(width(Wq)); });
  q.mistake("the scale is the square root of d, the width of x; d_k is the width of a query",
            [](T x, T Wq, T Wk) { return raw(x, Wq, Wk) / std::sqrt(width(x)); });
  q.mistake("the scale is the square root of L, the number of tokens; d_k is the width of a query",
            [](T x, T Wq, T Wk) { return raw(x, Wq, Wk) / std::sqrt(static_cast<double>(x.size(0))); });
  q.mistake("keys stand in the rows and queries in the columns: the result is transposed",
            [](T x, T Wq, T Wk) { return raw(x, Wk, Wq) / std::sqrt(width(Wq)); });
  q.mistake("the queries are used for both roles: Wk is not used",
            [](T x, T Wq, T) { return raw(x, Wq, Wq) / std::sqrt(width(Wq)); });
  q.mistake("the keys are used for both roles: Wq is not used",
            [](T x, T, T Wk) { return raw(x, Wk, Wk) / std::sqrt(width(Wk)); });
  q.mistake("x itself is used in both roles, without Wq and Wk",
            [](T x, T, T) { return matmul(x, x.T()) / std::sqrt(width(x)); });
  q.mistake("this is already the softmax; the scores come before it",
            [](T x, T Wq, T Wk) { return softmax(raw(x, Wq, Wk) / std::sqrt(width(Wq)), -1); });
  q.wrong("Most likely: every number is 0", [](T x, T, T) { return zeros<double>({x.size(0), x.size(0)}); });
  q.wrong("Most likely: the sign is wrong: every number is the negative of the right one",
          [](T x, T Wq, T Wk) { return -raw(x, Wq, Wk) / std::sqrt(width(Wq)); });
  q.wrong("", [](T x, T Wq, T Wk) { return raw(x, Wq, Wk) / 2; });  // right for d_k = 4 alone
  q.wrong("", [](T x, T Wq, T Wk) { return matmul(matmul(x, Wq).T(), matmul(x, Wk)); });
  q.wrong("", [](T x, T Wq, T Wk) {  // each projection is divided by √d_k
    return raw(x, Wq / std::sqrt(width(Wq)), Wk / std::sqrt(width(Wk))) - 1e-3;
  });
}

inline void wrong_prediction(Question<Symmetric()>& q, const Symmetric& right) {
  const auto but = [&](bool Symmetric::*field) {
    Symmetric s = right;
    s.*field = !(s.*field);
    return [s] { return s; };
  };
  q.mistake("x_i · x_j and x_j · x_i are the same number", but(&Symmetric::scores_of_one_input));
  q.mistake("with two matrices, token i may look for j without j looking for i",
            but(&Symmetric::scores_of_two_matrices));
  q.mistake("(x W)(x W)ᵀ is its own transpose, whatever W is", but(&Symmetric::scores_of_shared_matrix));
  q.mistake("softmax divides each row by its own sum, so the weights are not symmetric",
            but(&Symmetric::weights_of_one_input));
  q.wrong("", [] { return Symmetric{true, true, true, true}; });
  q.wrong("", [] { return Symmetric{false, false, false, false}; });
  q.wrong("", [] { return Symmetric{false, true, false, true}; });
}

}  // namespace exercise
