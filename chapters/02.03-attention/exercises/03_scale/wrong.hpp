// Exercise 03: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

inline const T raw{12, 6, 0};
inline T weights_at(double scale) { return softmax(raw / scale, -1); }
inline T jacobian_of(const T& a) {
  return eye<double>(a.numel()) * a - matmul(unsqueeze(a, 1), unsqueeze(a, 0));
}
inline double largest(double scale) { return max(abs(jacobian_of(weights_at(scale)))).item(); }

inline void wrong_raw(Question<T()>& q) {
  q.mistake("the scores are scaled already; (a) asks for the raw scores", [] { return weights_at(6); });
  q.mistake("the scores are divided by their sum, without exp", [] { return raw / sum(raw); });
  q.mistake("these are powers of 2 instead of powers of e", [] { return weights_at(1 / std::log(2.0)); });
  q.mistake("this is exp(score - largest score), not yet divided by the sum", [] { return exp(raw - 12); });
  q.mistake("this is one-hot, but softmax of finite scores never is: give four digits", [] {
    return T{1, 0, 0};
  });
  q.mistake("the weights are in the opposite order", [] { return flip(weights_at(1), 0); });
  q.mistake("these are the scores, not their softmax", [] { return raw; });
  q.wrong("", [] { return T{0.9975, 0.0024, 0.0001}; });
}

inline void wrong_scaled(Question<T()>& q) {
  q.mistake("the scale is missing", [] { return weights_at(1); });
  q.mistake("the scores are divided by d_k = 36; divide by its square root", [] { return weights_at(36); });
  q.mistake("the scores are divided by 3, the number of keys; divide by the square root of d_k",
            [] { return weights_at(3); });
  q.mistake("the weights are divided instead of the scores: the scale comes before softmax",
            [] { return weights_at(1) / 6; });
  q.mistake("the scores are divided by their sum, without exp", [] { return raw / sum(raw); });
  q.mistake("these are the scaled scores, not yet their softmax", [] { return raw / 6; });
  q.mistake("this is exp(score - largest score), not yet divided by the sum",
            [] { return exp(raw / 6 - 2); });
  q.mistake("these are two digits; the task asks for four", [] { return T{0.67, 0.24, 0.09}; });
  q.mistake("all weights are equal: were integers divided, as in 12 / 36?",
            [] { return full<double>({3}, 1.0 / 3); });
  q.wrong("", [] { return T{0.7, 0.2, 0.1}; });
}

inline void wrong_jacobian(Question<T(T)>& q) {
  q.mistake("a aᵀ is missing: a score changes the other weights too",
            [](T a) { return eye<double>(a.numel()) * a; });
  q.mistake("only the diagonal a_m (1 - a_m) is there: a score changes the other weights too",
            [](T a) { return eye<double>(a.numel()) * (a * (1 - a)); });
  q.mistake("this is a_m (1 - a_l) everywhere; the 1 belongs on the diagonal alone",
            [](T a) { return unsqueeze(a, 1) * (1 - a); });
  q.mistake("diag(a) is missing", [](T a) { return -(unsqueeze(a, 1) * a); });
  q.mistake("diag(a) and a aᵀ are added; a aᵀ is subtracted",
            [](T a) { return eye<double>(a.numel()) * a + unsqueeze(a, 1) * a; });
  q.mistake("the identity stands where diag(a) should",
            [](T a) { return eye<double>(a.numel()) - unsqueeze(a, 1) * a; });
  q.mistake("softmax is taken again, but a are weights already",
            [](T a) { return jacobian_of(softmax(a, -1)); });
  q.mistake("this is a vector; a_m a_l takes every weight times every weight, which is a matrix",
            [](T a) { return a - a * a; });
  q.mistake("a is subtracted from every row of diag(a), instead of a aᵀ",
            [](T a) { return eye<double>(a.numel()) * a - a; });
  q.mistake("a · a, a single number, stands where the matrix a aᵀ should",
            [](T a) { return eye<double>(a.numel()) * a - matmul(a, a); });
  q.wrong("Most likely: the sign is wrong: every number is the negative of the right one",
          [](T a) { return -jacobian_of(a); });
  q.wrong("Most likely: every number is 0", [](T a) { return zeros<double>({a.numel(), a.numel()}); });
  q.wrong("Most likely: the result does not depend on the input", [](T) {
    return jacobian_of(T{0.5, 0.3, 0.2});
  });
}

inline void wrong_times(Question<double()>& q) {
  q.mistake("this is the largest raw entry over the largest scaled one; it is the other way round",
            [] { return largest(1) / largest(6); });
  // In C++, 1 / 90 in integers.
  q.mistake("this is 0: were two integers divided?", [] { return 0.0; });
  q.mistake("1 - a alone is compared; the entry is a (1 - a)",
            [] { return (1 - weights_at(6).at({0})) / (1 - weights_at(1).at({0})); });
  q.mistake("the scores are divided by d_k = 36; divide by its square root",
            [] { return largest(36) / largest(1); });
  q.mistake("the weights are compared; compare the largest entries of the two Jacobians",
            [] { return weights_at(6).at({0}) / weights_at(1).at({0}); });
  q.mistake("this is the ratio of the scores, √36; compare the largest entries of the two Jacobians",
            [] { return 6.0; });
  q.wrong("", [] { return 88.0; });
  q.wrong("", [] { return std::nan(""); });
}

}  // namespace exercise
