// Exercise 08: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

inline double root_of_width(const T& x) { return std::sqrt(static_cast<double>(x.size(1))); }

inline void wrong_values(Question<T(T, T)>& q) {
  q.mistake("A is not transposed: value j gathers down column j of A",
            [](T A, T dO) { return matmul(A, dO); });
  q.mistake("the product is in the wrong order, and therefore transposed: dOᵀ A",
            [](T A, T dO) { return matmul(dO.T(), A); });
  q.mistake("the result is divided by the number of queries, but gradients add up",
            [](T A, T dO) { return matmul(A.T(), dO) / A.size(0); });
  q.mistake("the result is divided by √d, but the scale is only on the path of queries and keys",
            [](T A, T dO) { return matmul(A.T(), dO) / root_of_width(dO); });
  q.mistake("the weights are not used: every value gets the sum of dO",
            [](T A, T dO) { return matmul(ones_like(A).T(), dO); });
  q.mistake("softmax is applied to A again, but A are weights already",
            [](T A, T dO) { return matmul(softmax(A, -1).T(), dO); });
  q.mistake("this is dO unchanged", [](T, T dO) { return dO; });
  q.mistake("softmax runs over the queries here; A are weights already",
            [](T A, T dO) { return matmul(softmax(A, 0).T(), dO); });
  q.wrong("Most likely: every number is 0", [](T A, T dO) { return zeros<double>({A.size(1), dO.size(1)}); });
  q.wrong("Most likely: the sign is wrong: every number is the negative of the right one",
          [](T A, T dO) { return -matmul(A.T(), dO); });
  q.wrong("", [](T A, T dO) { return A.T() * dO; });
}

inline void wrong_weights(Question<T(T, T)>& q) {
  q.mistake("V is not transposed: dA_ij is the product of row i of dO with row j of V",
            [](T dO, T V) { return matmul(dO, V); });
  q.mistake("the result is transposed: V dOᵀ", [](T dO, T V) { return matmul(V, dO.T()); });
  q.mistake("the result is divided by √d, but the scale comes later, at the scores",
            [](T dO, T V) { return matmul(dO, V.T()) / root_of_width(dO); });
  q.mistake("softmax is applied to dA, but dA is a gradient, not scores",
            [](T dO, T V) { return softmax(matmul(dO, V.T()), -1); });
  q.mistake("dO is transposed instead of V", [](T dO, T V) { return matmul(dO.T(), V); });
  q.mistake("this is dO unchanged", [](T dO, T) { return dO; });
  q.mistake("the average over the components is taken; they add up",
            [](T dO, T V) { return matmul(dO, V.T()) / V.size(1); });
  q.wrong("Most likely: every number is 0", [](T dO, T V) { return zeros<double>({dO.size(0), V.size(0)}); });
  q.wrong("Most likely: every number is 2 times the right one",
          [](T dO, T V) { return matmul(dO, V.T()) * 2; });
  q.wrong("", [](T dO, T V) { return dO * V; });
}

}  // namespace exercise
