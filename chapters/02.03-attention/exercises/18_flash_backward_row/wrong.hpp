// Exercise 18: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

// The formulas of the backward pass for one query, each of which can be replaced by a wrong one.
struct Formulas {
  std::function<T(const T& s, double lse)> weights = [](const T& s, double lse) { return exp(s - lse); };
  std::function<T(const T& a, const T& dA, double D)> dS = [](const T& a, const T& dA, double D) {
    return a * (dA - D);
  };
  bool scaled_scores = true, scale_dq = true, scale_dK = true, scale_dV = false, twice = false,
       dS_in_dV = false;
};
using FlashBackward = std::function<RowGradients(T, T, T, T, double, double)>;
inline FlashBackward by(const Formulas& f) {
  return [f](T q, T K, T V, T dO, double lse, double D) -> RowGradients {
    const double root = std::sqrt(static_cast<double>(q.size(0))), back = f.twice ? root * root : root;
    const T a = f.weights(matmul(K, q) / (f.scaled_scores ? root : 1), lse), dS = f.dS(a, matmul(V, dO), D);
    return {matmul(dS, K) / (f.scale_dq ? back : 1), unsqueeze(dS, 1) * q / (f.scale_dK ? back : 1),
            unsqueeze(f.dS_in_dV ? dS : a, 1) * dO / (f.scale_dV ? root : 1)};
  };
}

inline void wrong_answers(Question<RowGradients(T, T, T, T, double, double)>& p) {
  p.mistake("forgot the D term: dS is a ⊙ (dA - D)",
            by({.dS = [](auto& a, auto& dA, double) { return a * dA; }}));
  p.mistake("wrong sign before D", by({.dS = [](auto& a, auto& dA, double D) { return a * (dA + D); }}));
  p.mistake("D is subtracted outside the product",
            by({.dS = [](auto& a, auto& dA, double D) { return a * dA - D; }}));
  p.mistake("the factor a is missing in dS", by({.dS = [](auto&, auto& dA, double D) { return dA - D; }}));
  p.mistake(
      "D is computed again, from the keys of this block alone; the D that is given is that of all blocks",
      by({.dS = [](auto& a, auto& dA, double) { return a * (dA - sum(a * dA)); }}));
  p.mistake("the weights are a new softmax over these keys; lse is that of the keys of all blocks",
            by({.weights = [](auto& s, double) { return softmax(s, -1); }}));
  p.mistake(
      "weights and D are computed again, from these keys alone; lse and D are those of the keys of all "
      "blocks",
      by({.weights = [](auto& s, double) { return softmax(s, -1); },
          .dS = [](auto& a, auto& dA, double) { return a * (dA - sum(a * dA)); }}));
  p.mistake("the scale is missing in dq and dK", by({.scale_dq = false, .scale_dK = false}));
  p.mistake("the scale is missing in dq", by({.scale_dq = false}));
  p.mistake("the scale is missing in dK", by({.scale_dK = false}));
  p.mistake("dq and dK are divided by d_k; divide them by its square root, once", by({.twice = true}));
  p.mistake("dV is scaled too, but the scale is only on the path of queries and keys",
            by({.scale_dV = true}));
  p.mistake("the scale is missing in the scores", by({.scaled_scores = false}));
  p.mistake("the scale is missing everywhere",
            by({.scaled_scores = false, .scale_dq = false, .scale_dK = false}));
  p.mistake("the weights are divided by lse, but it is a logarithm: subtract it inside the exp",
            by({.weights = [](auto& s, double lse) { return exp(s) / lse; }}));
  p.mistake("lse is not used: exp(s) are not yet weights",
            by({.weights = [](auto& s, double) { return exp(s); }}));
  p.mistake("exp(s) is divided by exp(lse): both overflow; subtract lse inside the exp",
            by({.weights = [](auto& s, double lse) { return exp(s) / std::exp(lse); }}));
  p.mistake("dV uses dS; value j gathers dO with the weight a_j", by({.dS_in_dV = true}));
  p.mistake("dq and dK are computed from dA; softmax's gradient is missing",
            by({.dS = [](auto&, auto& dA, double) { return dA; }}));
  p.wrong("Most likely: dq, dK, dV: every number is 0", [](T q, T K, T V, T, double, double) -> RowGradients {
    return {zeros_like(q), zeros_like(K), zeros_like(V)};
  });
  p.wrong("Most likely: dq: every number is 2 times the right one",
          [](T q, T K, T V, T dO, double lse, double D) {
            RowGradients r = by({})(q, K, V, dO, lse, D);
            r.dq = r.dq * 2;
            return r;
          });
}

}  // namespace exercise
