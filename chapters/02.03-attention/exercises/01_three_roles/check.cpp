#include "checker.hpp"

namespace exercise {

void three_roles(Checker& check, T (*answer)(const T&, const T&, const T&), Symmetric (*predict)()) {
  Draw draw(1);
  Question<T, T, T, T> q(check, "scores", answer, {"x", "Wq", "Wk"});
  const auto raw = [](const T& x, const T& Wq, const T& Wk) {
    return matmul(matmul(x, Wq), matmul(x, Wk).T());
  };
  const auto width = [](const T& x) { return static_cast<double>(x.size(1)); };
  q.right([=](auto& x, auto& Wq, auto& Wk) { return raw(x, Wq, Wk) / std::sqrt(width(Wq)); });
  q.mistake("the scale is missing: divide by the root of d_k, the width of Wq", raw);
  q.mistake("divided by d_k, not by its root",
            [=](auto& x, auto& Wq, auto& Wk) { return raw(x, Wq, Wk) / width(Wq); });
  q.mistake("divided by the root of x's width d; d_k is the width of a query",
            [=](auto& x, auto& Wq, auto& Wk) { return raw(x, Wq, Wk) / std::sqrt(width(x)); });
  q.mistake("keys in the rows and queries in the columns: the result is transposed",
            [=](auto& x, auto& Wq, auto& Wk) { return raw(x, Wk, Wq) / std::sqrt(width(Wq)); });
  q.mistake("x itself is used in both roles, without Wq and Wk",
            [=](auto& x, auto&, auto&) { return matmul(x, x.T()) / std::sqrt(width(x)); });
  q.mistake("this is already the softmax; the scores come before it",
            [=](auto& x, auto& Wq, auto& Wk) { return softmax(raw(x, Wq, Wk) / std::sqrt(width(Wq)), -1); });
  for (const std::int64_t d_k : {2, 3, 1, 5}) q.input(draw({d_k + 1, 4}), draw({4, d_k}), draw({4, d_k}));
  q.ask();

  const auto x = draw({3, 2}), W1 = draw({2, 2}), W2 = draw({2, 2});
  const auto symmetric = [](const T& S) { return max(abs(S - S.T())).item() < 1e-9; };
  const T one = matmul(x, x.T()), two = raw(x, W1, W2), shared = raw(x, W1, W1), weights = softmax(one, -1);
  const Symmetric experiment{symmetric(one), symmetric(two), symmetric(shared), symmetric(weights)};
  const auto but = [&](bool Symmetric::*field) {
    return [=] {
      Symmetric s = experiment;
      s.*field = !(s.*field);
      return s;
    };
  };
  Question<Symmetric> p(check, "predict", predict);
  p.right([=] { return experiment; });
  p.mistake("x_i · x_j and x_j · x_i are one number", but(&Symmetric::scores_of_one_input));
  p.mistake("with two matrices, token i may look for j without j looking for i",
            but(&Symmetric::scores_of_two_matrices));
  p.mistake("(x W)(x W)ᵀ is its own transpose, whatever W is", but(&Symmetric::scores_of_shared_matrix));
  p.mistake("softmax divides each row by its own sum, and that ends the symmetry",
            but(&Symmetric::weights_of_one_input));
  p.note("The experiment, with x =\n" + describe("", parts(x)) + "  scores of one input\n" +
         describe("", parts(one)) + "  of two matrices\n" + describe("", parts(two)) +
         "  of one shared matrix\n" + describe("", parts(shared)) + "  weights of one input\n" +
         describe("", parts(weights)));
  p.ask();
}

}  // namespace exercise
