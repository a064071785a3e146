#include "checker.hpp"

namespace exercise {

void temperature(Checker& check,
                 Attention<double> (*answer)(const T&, const T&, const T&, const std::optional<Mask>&,
                                             double),
                 Limits (*predict)()) {
  using Result = Attention<double>;
  using Optional = std::optional<Mask>;
  const auto raw = [](const T& Q, const T& K) { return matmul(Q, K.T()); };
  const auto root = [](const T& Q) { return std::sqrt(static_cast<double>(Q.size(-1))); };
  const auto hide = [](const T& S, const Optional& mask) { return mask ? where(*mask, S, scalar(-inf)) : S; };
  const auto finish = [](const T& A, const T& V) { return Result{matmul(A, V), A}; };
  const auto refuse = [](double tau) {
    if (!(tau > 0)) throw ValueError("temperature " + std::to_string(tau) + "; it must be above 0");
  };
  const auto with_scale = [=](const auto& scale) {
    return [=](const T& Q, const T& K, const T& V, const Optional& mask, double tau) {
      refuse(tau);
      return finish(softmax(hide(raw(Q, K) / scale(Q, tau), mask), -1), V);
    };
  };

  Question<Result, T, T, T, Optional, double> q(check, "tempered_attention", answer,
                                                {"Q", "K", "V", "mask", "tau"});
  q.right(with_scale([=](const T& Q, double tau) { return root(Q) * tau; }));
  q.mistake("multiplied by tau, not divided by it",
            with_scale([=](const T& Q, double tau) { return root(Q) / tau; }));
  q.mistake("tau is not used", with_scale([=](const T& Q, double) { return root(Q); }));
  q.mistake("the scale is missing: tau comes beside √d_k, not instead of it",
            with_scale([=](const T&, double tau) { return tau; }));
  q.mistake("divided by d_k, not by its root",
            with_scale([=](const T& Q, double tau) { return root(Q) * root(Q) * tau; }));
  q.mistake("tau is inside the root: √(tau d_k)",
            with_scale([=](const T& Q, double tau) { return root(Q) * std::sqrt(tau); }));
  q.mistake("tau divides the weights: it has to divide the scores, before softmax",
            [=](auto& Q, auto& K, auto& V, auto& mask, double tau) {
              refuse(tau);
              return finish(softmax(hide(raw(Q, K) / root(Q), mask), -1) / tau, V);
            });
  q.mistake("wrong axis: softmax runs along the keys, the last axis",
            [=](auto& Q, auto& K, auto& V, auto& mask, double tau) {
              refuse(tau);
              return finish(softmax(hide(raw(Q, K) / (root(Q) * tau), mask), 0), V);
            });
  q.mistake("the mask is not used", [=](auto& Q, auto& K, auto& V, auto&, double tau) {
    refuse(tau);
    return finish(softmax(raw(Q, K) / (root(Q) * tau), -1), V);
  });
  q.mistake("the mask came after softmax: the rows that are left do not sum to one",
            [=](auto& Q, auto& K, auto& V, auto& mask, double tau) {
              refuse(tau);
              const T A = softmax(raw(Q, K) / (root(Q) * tau), -1);
              return finish(mask ? A * to<double>(*mask) : A, V);
            });
  q.mistake("forbidden scores are filled with 0: e^0 = 1 is a weight like any other; use -inf",
            [=](auto& Q, auto& K, auto& V, auto& mask, double tau) {
              refuse(tau);
              const T S = raw(Q, K) / (root(Q) * tau);
              return finish(softmax(mask ? where(*mask, S, scalar(0.0)) : S, -1), V);
            });
  q.mistake("true and false of the mask are exchanged: true = may attend", [=](auto& Q, auto& K, auto& V,
                                                                               auto& mask, double tau) {
    refuse(tau);
    return finish(softmax(hide(raw(Q, K) / (root(Q) * tau), mask ? Optional(~*mask) : mask), -1), V);
  });
  q.mistake("a tau that is not above 0 goes through: throw a ValueError",
            [=](auto& Q, auto& K, auto& V, auto& mask, double tau) {
              return finish(softmax(hide(raw(Q, K) / (root(Q) * tau), mask), -1), V);
            });
  Draw draw(5);
  q.input({{0.1, 3, 0.1, 0}}, {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}, {{10, 10}, {20, 20}, {30, 30}}, {},
          0.5);
  for (const double tau : {0.5, 1.0, 3.0, 10.0}) q.input(draw({2, 3}), draw({4, 3}), draw({4, 2}), {}, tau);
  q.input(draw({3, 5}), draw({3, 5}), draw({3, 1}), causal_mask(3), 2.0);
  q.input(draw({2, 7}), draw({3, 7}), draw({3, 4}), Mask{{true, false, true}, {false, true, true}}, 0.25);
  q.input(draw({1, 2}), draw({2, 2}), draw({2, 1}), {}, 0.0);
  q.input(draw({1, 2}), draw({2, 2}), draw({2, 1}), {}, -1.0);
  q.ask();

  const T Q{{0.1, 3, 0.1, 0}}, K{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
  const auto at = [=](double tau) { return softmax(matmul(Q, K.T()) / (2 * tau), -1); };
  const auto near = [](const T& A) {
    return allclose(A, T{{0, 1, 0}}, 0, 1e-3)                    ? Weights::one_hot
           : allclose(A, full<double>({1, 3}, 1.0 / 3), 0, 1e-3) ? Weights::even
                                                                 : Weights::unchanged;
  };
  const Limits experiment{near(at(1e-3)), near(at(1e6))};
  Question<Limits> p(check, "predict", predict);
  p.right([=] { return experiment; });
  p.mistake("the wrong way round: a small tau makes the differences between scores large", [=] {
    return Limits{experiment.tau_to_infinity, experiment.tau_to_zero};
  });
  p.note("The experiment, with the chapter's query and keys: tau = 0.001, 1, 1000\n" +
         describe("", parts(at(1e-3))) + describe("", parts(at(1))) + describe("", parts(at(1e3))));
  p.ask();
}

}  // namespace exercise
