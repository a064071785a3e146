#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  auto& q =
      check.question<Attention<double>(const T&, const T&, const T&, const std::optional<Mask>&, double)>(
          "tempered_attention", {"Q", "K", "V", "mask", "tau"});
  q.right(tempered({}));
  q.input({{0.1, 3, 0.1, 0}}, {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}, {{10, 10}, {20, 20}, {30, 30}}, {},
          0.5);
  for (const double tau : {0.5, 1.0, 3.0, 10.0}) q.input(draw({2, 3}), draw({4, 3}), draw({4, 2}), {}, tau);
  q.input(draw({3, 5}), draw({3, 5}), draw({3, 1}), causal_mask(3), 2.0);
  q.input(draw({2, 7}), draw({3, 7}), draw({3, 4}), Mask{{true, false, true}, {false, true, true}}, 0.25);
  // All allowed scores are far below what is often used in place of -inf.
  q.input({{1e20, 1e20}}, {{-1e20, -1e20}, {1, 1}, {-1e20, -1e20}}, draw({3, 2}), Mask{{true, false, true}},
          1.5);
  q.input({{60, 80}}, {{-100, -100}, {1, 1}, {-100, -100}}, draw({3, 2}), Mask{{true, false, true}}, 0.5);
  for (const double tau : {0.0, -1.0, std::nan("")})
    q.input(draw({1, 2}), draw({2, 2}), draw({2, 1}), {}, tau);
  wrong_attention(q);

  const T Q{{0.1, 3, 0.1, 0}}, K{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
  const auto at = [=](double tau) { return softmax(matmul(Q, K.T()) / (2 * tau), -1); };
  const auto near = [](const T& A) {
    return allclose(A, T{{0, 1, 0}}, 0, 1e-3)                    ? Weights::one_hot
           : allclose(A, full<double>({1, 3}, 1.0 / 3), 0, 1e-3) ? Weights::even
                                                                 : Weights::unchanged;
  };
  const Limits experiment{near(at(1e-3)), near(at(1e6))};
  auto& p = check.question<Limits()>("predict");
  p.right([=] { return experiment; });
  p.note = "The experiment, with the chapter's query and keys, for tau = 0.001, 1 and 1000:\n" +
           describe("", parts(at(1e-3))) + describe("", parts(at(1))) + describe("", parts(at(1e3)));
  wrong_limits(p);
}
