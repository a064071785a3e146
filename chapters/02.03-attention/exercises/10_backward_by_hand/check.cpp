#include "checker.hpp"
#include "tapehead/autograd/tape.hpp"

namespace exercise {

void backward_by_hand(Checker& check, Backward (*answer)(const T&, const T&, const T&, const T&)) {
  // Any part of the formulas can be replaced, to have the mistakes.
  struct Formulas {
    std::function<T(const T& A, const T& dA)> dS = [](const T& A, const T& dA) {
      return A * (dA - sum(A * dA, -1, true));
    };
    double scale_S = 0.5, scale_dQ = 0.5, scale_dK = 0.5, scale_dV = 0;  // powers of 1 / d_k
    bool dK_transposed = true, dV_transposed = true, exchanged = false;
  };
  const auto by = [](const Formulas& f) {
    return [f](const T& Q, const T& K, const T& V, const T& dO) -> Backward {
      const auto power = [&](double p) { return std::pow(static_cast<double>(Q.size(-1)), -p); };
      const T A = softmax(matmul(Q, K.T()) * power(f.scale_S), -1), dA = matmul(dO, V.T()), dS = f.dS(A, dA);
      const T dV = matmul(f.dV_transposed ? A.T() : A, dO) * power(f.scale_dV);
      const T dQ = matmul(dS, f.exchanged ? Q : K) * power(f.scale_dQ);
      const T dK = matmul(f.dK_transposed ? dS.T() : dS, f.exchanged ? K : Q) * power(f.scale_dK);
      return {dV, dA, dS, dQ, dK};
    };
  };
  Question<Backward, T, T, T, T> q(check, "backward_by_hand", answer, {"Q", "K", "V", "dO"});
  q.right([](auto& Q, auto& K, auto& V, auto& dO) -> Backward {
    Tape<double> tape;
    tape.watch({Q, K, V});
    const T S = matmul(Q, K.T()) / std::sqrt(static_cast<double>(Q.size(-1))), A = softmax(S, -1);
    tape.watch({S, A});
    const auto grad = tape.backward(matmul(A, V), dO);
    return {grad[V], grad[A], grad[S], grad[Q], grad[K]};
  });
  q.mistake("forgot the D term: dS is A ⊙ (dA - D)", by({.dS = [](auto& A, auto& dA) { return A * dA; }}));
  q.mistake("D is the plain sum of dA; it is weighted, of A ⊙ dA",
            by({.dS = [](auto& A, auto& dA) { return A * (dA - sum(dA, -1, true)); }}));
  q.mistake("wrong sign before D",
            by({.dS = [](auto& A, auto& dA) { return A * (dA + sum(A * dA, -1, true)); }}));
  q.mistake("D is subtracted outside the product: A ⊙ dA - D",
            by({.dS = [](auto& A, auto& dA) { return A * dA - sum(A * dA, -1, true); }}));
  q.mistake("the factor A is missing in dS",
            by({.dS = [](auto& A, auto& dA) { return dA - sum(A * dA, -1, true); }}));
  q.mistake("one D for the whole matrix; each row has its own",
            by({.dS = [](auto& A, auto& dA) { return A * (dA - sum(A * dA)); }}));
  q.mistake("wrong axis: D sums along a row, the axis of the softmax",
            by({.dS = [](auto& A, auto& dA) { return A * (dA - sum(A * dA, 0, true)); }}));
  q.mistake("the scale is missing in dQ and dK", by({.scale_dQ = 0, .scale_dK = 0}));
  q.mistake("the scale is missing in dQ", by({.scale_dQ = 0}));
  q.mistake("the scale is missing in dK", by({.scale_dK = 0}));
  q.mistake("dQ and dK are divided by d_k: by its root, once", by({.scale_dQ = 1, .scale_dK = 1}));
  q.mistake("dV is scaled too; the scale is on the path of queries and keys alone", by({.scale_dV = 0.5}));
  q.mistake("the scale is missing in the forward pass", by({.scale_S = 0}));
  q.mistake("dS is not transposed in dK: key j gathers down column j", by({.dK_transposed = false}));
  q.mistake("A is not transposed in dV: value j gathers down column j", by({.dV_transposed = false}));
  q.mistake("Q and K are exchanged: dQ gathers keys, dK gathers queries", by({.exchanged = true}));
  for (const int axis_of_D : {0, -1})
    q.mistake("wrong axis: softmax runs along each row",
              [=](auto& Q, auto& K, auto& V, auto& dO) -> Backward {
                const double root = std::sqrt(static_cast<double>(Q.size(-1)));
                const T A = softmax(matmul(Q, K.T()) / root, 0), dA = matmul(dO, V.T()),
                        dS = A * (dA - sum(A * dA, axis_of_D, true));
                return {matmul(A.T(), dO), dA, dS, matmul(dS, K) / root, matmul(dS.T(), Q) / root};
              });
  Draw draw(10);
  q.input(draw({3, 2}), draw({3, 2}), draw({3, 2}), draw({3, 2}));
  q.input(draw({2, 3}), draw({4, 3}), draw({4, 2}), draw({2, 2}));
  q.input(draw({5, 7}), draw({3, 7}), draw({3, 1}), draw({5, 1}));
  q.ask();
}

}  // namespace exercise
