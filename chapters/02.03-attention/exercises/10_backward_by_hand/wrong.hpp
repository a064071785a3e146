// Exercise 10: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

// The formulas of the backward pass, each of which can be replaced by a wrong one.
struct Formulas {
  std::function<T(const T& A, const T& dA)> dS = [](const T& A, const T& dA) {
    return A * (dA - sum(A * dA, -1, true));
  };
  double scale_S = 0.5, scale_dS = 0, scale_dQ = 0.5, scale_dK = 0.5, scale_dV = 0,
         scale_dA = 0;  // powers of 1 / d_k
  bool dK_transposed = true, dV_transposed = true, wrong_factors = false, exchanged = false;
  int axis = -1;  // of the forward pass's softmax
};
inline std::function<Backward(T, T, T, T)> by(const Formulas& f) {
  return [f](T Q, T K, T V, T dO) -> Backward {
    const auto scale = [&](double power) { return std::pow(static_cast<double>(Q.size(-1)), -power); };
    const T A = softmax(matmul(Q, K.T()) * scale(f.scale_S), f.axis);
    const T dA = matmul(dO, V.T()) * scale(f.scale_dA), dS = f.dS(A, dA) * scale(f.scale_dS);
    const T dV = matmul(f.dV_transposed ? A.T() : A, dO) * scale(f.scale_dV);
    const T dQ = matmul(dS, f.wrong_factors ? Q : K) * scale(f.scale_dQ);
    const T dK = matmul(f.dK_transposed ? dS.T() : dS, f.wrong_factors ? K : Q) * scale(f.scale_dK);
    return {dV, dA, dS, f.exchanged ? dK : dQ, f.exchanged ? dQ : dK};
  };
}

inline void wrong_answers(Question<Backward(T, T, T, T)>& q) {
  q.mistake("forgot the D term: dS is A ⊙ (dA - D)", by({.dS = [](auto& A, auto& dA) { return A * dA; }}));
  q.mistake("D is the plain sum of dA; it is weighted, the sum of A ⊙ dA",
            by({.dS = [](auto& A, auto& dA) { return A * (dA - sum(dA, -1, true)); }}));
  q.mistake("D is a mean; it is the sum of A ⊙ dA",
            by({.dS = [](auto& A, auto& dA) { return A * (dA - mean(A * dA, -1, true)); }}));
  q.mistake("wrong sign before D",
            by({.dS = [](auto& A, auto& dA) { return A * (dA + sum(A * dA, -1, true)); }}));
  q.mistake("the sign of dS is wrong: it is A ⊙ (dA - D), not A ⊙ (D - dA)",
            by({.dS = [](auto& A, auto& dA) { return A * (sum(A * dA, -1, true) - dA); }}));
  q.mistake("D is subtracted outside the product: this is A ⊙ dA - D",
            by({.dS = [](auto& A, auto& dA) { return A * dA - sum(A * dA, -1, true); }}));
  q.mistake("the factor A is missing in dS",
            by({.dS = [](auto& A, auto& dA) { return dA - sum(A * dA, -1, true); }}));
  q.mistake("there is one D for the whole matrix; each row has its own",
            by({.dS = [](auto& A, auto& dA) { return A * (dA - sum(A * dA)); }}));
  q.mistake("wrong axis: D sums along a row, the axis of the softmax",
            by({.dS = [](auto& A, auto& dA) { return A * (dA - sum(A * dA, 0, true)); }}));
  q.mistake("D without `true` loses its axis, and then lines up with the columns",
            by({.dS = [](auto& A, auto& dA) { return A * (dA - sum(A * dA, -1)); }}));
  q.mistake("only the diagonal of softmax's Jacobian is used: dS is A ⊙ (dA - D)",
            by({.dS = [](auto& A, auto& dA) { return A * (1 - A) * dA; }}));
  q.mistake("this dS is dA: softmax's gradient is missing", by({.dS = [](auto&, auto& dA) { return dA; }}));
  q.mistake("the scale is missing in dQ and dK", by({.scale_dQ = 0, .scale_dK = 0}));
  q.mistake("the scale is missing in dQ", by({.scale_dQ = 0}));
  q.mistake("the scale is missing in dK", by({.scale_dK = 0}));
  q.mistake("the scale is missing everywhere: in the forward pass, in dQ and in dK",
            by({.scale_S = 0, .scale_dQ = 0, .scale_dK = 0}));
  q.mistake("the scale is missing in the forward pass", by({.scale_S = 0}));
  q.mistake("the scale is put into dS; dS is the gradient of the scaled scores, and dQ and dK have the scale",
            by({.scale_dS = 0.5, .scale_dQ = 0, .scale_dK = 0}));
  q.mistake("the scale is put into dS as well; only dQ and dK have it", by({.scale_dS = 0.5}));
  q.mistake("dQ and dK are divided by d_k; divide them by its square root, once",
            by({.scale_dQ = 1, .scale_dK = 1}));
  q.mistake("dQ and dK are multiplied by √d_k; divide by it", by({.scale_dQ = -0.5, .scale_dK = -0.5}));
  q.mistake("dV is scaled too, but the scale is only on the path of queries and keys", by({.scale_dV = 0.5}));
  q.mistake("dA is scaled, but the scale is only between the scores and Q and K", by({.scale_dA = 0.5}));
  q.mistake("dS is not transposed in dK: key j gathers down column j", by({.dK_transposed = false}));
  q.mistake("A is not transposed in dV: value j gathers down column j", by({.dV_transposed = false}));
  q.mistake("the factors Q and K are exchanged: dQ gathers keys, dK gathers queries",
            by({.wrong_factors = true}));
  q.mistake("dQ and dK are exchanged", by({.exchanged = true}));
  q.mistake("wrong axis: softmax runs along each row", by({.axis = 0}));
  q.mistake("wrong axis: softmax and D run along each row",
            by({.dS = [](auto& A, auto& dA) { return A * (dA - sum(A * dA, 0, true)); }, .axis = 0}));
  q.wrong("Most likely: dV, dA, dS, dQ, dK: every number is 0", [](T Q, T K, T V, T) -> Backward {
    const T S = zeros<double>({Q.size(0), K.size(0)});
    return {zeros_like(V), S, S, zeros_like(Q), zeros_like(K)};
  });
  q.wrong("Most likely: dV: the sign is wrong: every number is the negative of the right one",
          [](T Q, T K, T V, T dO) -> Backward {
            Backward b = by({})(Q, K, V, dO);
            b.dV = -b.dV;
            return b;
          });
  q.wrong("", [](T Q, T K, T V, T dO) { return by({})(Q, K, V * 1.5 + 0.5, dO); });
}

}  // namespace exercise
