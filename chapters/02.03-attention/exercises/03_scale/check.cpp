#include "checker.hpp"

namespace exercise {

void scale(Checker& check, T (*raw_weights)(), T (*scaled_weights)(), T (*jacobian)(const T&),
           double (*times_larger)()) {
  const T raw{12, 6, 0};
  const auto at = [=](double scale) { return [=] { return softmax(raw / scale, -1); }; };
  const auto right_jacobian = [](const T& a) {
    const auto s = log(a);
    return tapehead::eye<double>(s.numel()) * a - matmul(unsqueeze(a, 1), unsqueeze(a, 0));
  };

  Question<T> r(check, "raw_weights", raw_weights);
  r.within(0.5e-4);
  r.right(at(1));
  r.mistake("the scale is in already; (a) asks for the raw scores", at(6));
  r.mistake("the scores are divided by their sum, without exp", [=] { return raw / sum(raw); });
  r.mistake("powers of 2 instead of powers of e", at(1 / std::log(2.0)));
  r.mistake("this is exp(score - largest score), not yet divided by the sum", [=] { return exp(raw - 12); });
  r.ask();

  Question<T> s(check, "scaled_weights", scaled_weights);
  s.within(0.5e-4);
  s.right(at(6));
  s.mistake("the scale is missing", at(1));
  s.mistake("divided by d_k = 36, not by its root", at(36));
  s.mistake("the weights are divided, not the scores: the scale comes before softmax",
            [=] { return softmax(raw, -1) / 6; });
  s.mistake("the scores are divided by their sum, without exp", [=] { return raw / sum(raw); });
  s.ask();

  Draw draw(3);
  Question<T, T> j(check, "softmax_jacobian", jacobian, {"a"});
  j.right(right_jacobian);
  j.mistake("a aᵀ is missing: one score moves every weight",
            [](auto& a) { return eye<double>(a.numel()) * a; });
  j.mistake("only the diagonal a_m (1 - a_m): one score moves every weight",
            [](auto& a) { return eye<double>(a.numel()) * (a * (1 - a)); });
  j.mistake("a_m (1 - a_l) everywhere; the 1 belongs on the diagonal alone",
            [](auto& a) { return unsqueeze(a, 1) * (1 - a); });
  j.mistake("diag(a) is missing", [](auto& a) { return -(unsqueeze(a, 1) * a); });
  j.mistake("the identity stands where diag(a) should",
            [](auto& a) { return eye<double>(a.numel()) - unsqueeze(a, 1) * a; });
  j.mistake("softmax is taken again: a are weights already",
            [=](auto& a) { return right_jacobian(softmax(a, -1)); });
  j.mistake("a number where a matrix should be: a_m a_l is a product of every weight with every weight",
            [](auto& a) { return a - a * a; });
  for (const std::int64_t n : {3, 2, 5}) j.input(draw.weights({n}));
  j.ask();

  const auto largest = [=](double scale) {
    return max(abs(right_jacobian(softmax(raw / scale, -1)))).item();
  };
  const double hot = softmax(raw, -1).at({0}), soft = softmax(raw / 6, -1).at({0});
  Question<double> t(check, "times_larger", times_larger);
  t.within(0.5);
  t.right([=] { return largest(6) / largest(1); });
  t.mistake("the wrong way round: scaled over raw", [=] { return largest(1) / largest(6); });
  t.mistake("1 - a alone is compared; the entry is a (1 - a)", [=] { return (1 - soft) / (1 - hot); });
  t.mistake("divided by d_k = 36, not by its root", [=] { return largest(36) / largest(1); });
  t.ask();
}

}  // namespace exercise
