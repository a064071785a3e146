#include "checker.hpp"
#include "tapehead/kernels/dual.hpp"

namespace exercise {

void score_mod(Checker& check, double (*softcap)(double, double), double (*slope)(double, double),
               double (*slope_by_cap)(double, double)) {
  // The value and both slopes as the fused kernel has them: by numbers that carry their derivatives.
  const auto dual = [](double s, double c) {
    kernels::Dual<double, 2> S(s), C(c);
    S.d[0] = 1, C.d[1] = 1;
    return C * tanh(S / C);
  };
  const auto t = [](double s, double c) { return std::tanh(s / c); };
  Question<double, double, double> v(check, "softcap", softcap, {"s", "c"});
  v.right([=](double s, double c) { return dual(s, c).v; });
  v.mistake("the c in front is missing", t);
  v.mistake("the division by c inside is missing", [](double s, double c) { return c * std::tanh(s); });
  v.mistake("multiplied by c inside, divided in front",
            [](double s, double c) { return std::tanh(s * c) / c; });
  v.mistake("cut off at ±c: that has a corner; tanh bends",
            [](double s, double c) { return std::clamp(s, -c, c); });

  Question<double, double, double> d(check, "softcap_slope", slope, {"s", "c"});
  d.right([=](double s, double c) { return dual(s, c).d[0]; });
  d.mistake("the inner derivative 1 / c is missing",
            [=](double s, double c) { return c * (1 - t(s, c) * t(s, c)); });
  d.mistake("the c in front is missing", [=](double s, double c) { return (1 - t(s, c) * t(s, c)) / c; });
  d.mistake("1 - tanh: the tanh has to be squared", [=](double s, double c) { return 1 - t(s, c); });
  d.mistake("1 - tanh² of s; inside it is s / c",
            [](double s, double) { return 1 - std::tanh(s) * std::tanh(s); });
  d.mistake("1 - softcap²: the square is that of the tanh, without the c in front",
            [=](double s, double c) { return 1 - c * c * t(s, c) * t(s, c); });

  Question<double, double, double> e(check, "softcap_slope_by_cap", slope_by_cap, {"s", "c"});
  e.right([=](double s, double c) { return dual(s, c).d[1]; });
  e.mistake("c is inside the tanh too: the product rule has a second term", t);
  e.mistake("only the second term of the product rule",
            [=](double s, double c) { return -s / c * (1 - t(s, c) * t(s, c)); });
  e.mistake("wrong sign of the second term: the derivative of s / c is -s / c²",
            [=](double s, double c) { return t(s, c) + s / c * (1 - t(s, c) * t(s, c)); });
  e.mistake("in the second term, c in front is missing: c · s / c² is s / c",
            [=](double s, double c) { return t(s, c) - s / (c * c) * (1 - t(s, c) * t(s, c)); });
  e.mistake("this is the slope in s", [=](double s, double c) { return dual(s, c).d[0]; });
  for (auto* q : {&v, &d, &e}) {
    for (const double s : {1.5, -0.75, 4.0, -12.0, 0.25})
      for (const double c : {2.0, 5.0, 0.5}) q->input(s, c);
    q->ask();
  }
}

}  // namespace exercise
