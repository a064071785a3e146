#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  auto& q = check.question<T(const T&, const T&, const T&)>("scores", {"x", "Wq", "Wk"});
  q.right([](T x, T Wq, T Wk) { return raw(x, Wq, Wk) / std::sqrt(width(Wq)); });
  for (const std::int64_t d_k : {2, 3, 1, 5}) q.input(draw({d_k + 1, 4}), draw({4, d_k}), draw({4, d_k}));
  q.input(draw({3, 3}), draw({3, 3}), draw({3, 3}));
  wrong_scores(q);

  // The right prediction comes from an experiment.
  const T x = draw({3, 2}), W1 = draw({2, 2}), W2 = draw({2, 2});
  const T one = matmul(x, x.T()), two = raw(x, W1, W2), shared = raw(x, W1, W1), weights = softmax(one, -1);
  const auto symmetric = [](const T& S) { return max(abs(S - S.T())).item() < 1e-9; };
  const Symmetric experiment{symmetric(one), symmetric(two), symmetric(shared), symmetric(weights)};
  auto& p = check.question<Symmetric()>("predict");
  p.right([=] { return experiment; });
  p.note = "The experiment, with x =\n" + describe("", parts(x)) + "  Scores of one input:\n" +
           describe("", parts(one)) + "  Scores of two matrices:\n" + describe("", parts(two)) +
           "  Scores of one shared matrix:\n" + describe("", parts(shared)) + "  Weights of one input:\n" +
           describe("", parts(weights));
  wrong_prediction(p, experiment);
}
