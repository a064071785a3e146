#include "checker.hpp"
#include "tapehead/autograd/tape.hpp"

namespace exercise {

void flash_backward_row(Checker& check,
                        RowGradients (*answer)(const T&, const T&, const T&, const T&, double, double)) {
  using Weights = std::function<T(const T& s, double lse)>;
  using Score = std::function<T(const T& a, const T& dA, double D)>;
  struct Formulas {
    Weights weights = [](const T& s, double lse) { return exp(s - lse); };
    Score dS = [](const T& a, const T& dA, double D) { return a * (dA - D); };
    bool scaled_scores = true, scale_dq = true, scale_dK = true, scale_dV = false;
  };
  const auto by = [](const Formulas& f) {
    return [f](const T& q, const T& K, const T& V, const T& dO, double lse, double D) -> RowGradients {
      const double root = std::sqrt(static_cast<double>(q.size(0)));
      const T a = f.weights(matmul(K, q) / (f.scaled_scores ? root : 1), lse), dS = f.dS(a, matmul(V, dO), D);
      return {matmul(dS, K) / (f.scale_dq ? root : 1), unsqueeze(dS, 1) * q / (f.scale_dK ? root : 1),
              unsqueeze(a, 1) * dO / (f.scale_dV ? root : 1)};
    };
  };
  Question<RowGradients, T, T, T, T, double, double> p(check, "flash_backward_row", answer,
                                                       {"q", "K", "V", "dO", "lse", "D"});
  p.right([](auto& q, auto& K, auto& V, auto& dO, double, double) -> RowGradients {
    Tape<double> tape;
    tape.watch({q, K, V});
    const T s = matmul(K, q) / std::sqrt(static_cast<double>(q.size(0)));
    const auto grad = tape.backward(matmul(softmax(s, -1), V), dO);
    return {grad[q], grad[K], grad[V]};
  });
  p.mistake("forgot the D term", by({.dS = [](auto& a, auto& dA, double) { return a * dA; }}));
  p.mistake("wrong sign before D", by({.dS = [](auto& a, auto& dA, double D) { return a * (dA + D); }}));
  p.mistake("D is subtracted outside the product",
            by({.dS = [](auto& a, auto& dA, double D) { return a * dA - D; }}));
  p.mistake("the factor a is missing in dS", by({.dS = [](auto&, auto& dA, double D) { return dA - D; }}));
  p.mistake("the scale is missing in dq and dK", by({.scale_dq = false, .scale_dK = false}));
  p.mistake("the scale is missing in dq", by({.scale_dq = false}));
  p.mistake("the scale is missing in dK", by({.scale_dK = false}));
  p.mistake("dV is scaled too; the scale is on the path of queries and keys alone", by({.scale_dV = true}));
  p.mistake("the scale is missing in the scores", by({.scaled_scores = false}));
  p.mistake("divided by lse: it is a logarithm, so subtract it inside the exp",
            by({.weights = [](auto& s, double lse) { return exp(s) / lse; }}));
  p.mistake("lse is not used: exp(s) are not yet weights",
            by({.weights = [](auto& s, double) { return exp(s); }}));
  Draw draw(18);
  const auto give = [&](std::int64_t n, std::int64_t d_k, std::int64_t d_v, double times) {
    const T q = draw({d_k}) * times, K = draw({n, d_k}), V = draw({n, d_v}), dO = draw({d_v});
    const T s = matmul(K, q) / std::sqrt(static_cast<double>(d_k));
    p.input(q, K, V, dO, logsumexp(s, 0).item(), sum(dO * matmul(softmax(s, -1), V)).item());
  };
  give(3, 2, 2, 1);
  give(2, 5, 1, 1);
  give(5, 3, 4, 1);
  give(4, 2, 3, 800);
  p.ask();
}

}  // namespace exercise
