#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& v = check.question<double(double, double)>("softcap", {"s", "c"});
  auto& d = check.question<double(double, double)>("softcap_slope", {"s", "c"});
  auto& e = check.question<double(double, double)>("softcap_slope_by_cap", {"s", "c"});
  // The derivatives are the tape's.
  const auto differentiated = [](double s, double c) {
    const T S = scalar(s), C = scalar(c);
    Tape<double> tape;
    tape.watch({S, C});
    const T y = C * tanh(S / C);
    const auto grad = tape.backward(y);
    return std::array{y.item(), grad[S].item(), grad[C].item()};
  };
  v.right([=](double s, double c) { return differentiated(s, c)[0]; });
  d.right([=](double s, double c) { return differentiated(s, c)[1]; });
  e.right([=](double s, double c) { return differentiated(s, c)[2]; });
  for (auto* q : {&v, &d, &e}) {
    for (const double s : {1.5, -0.75, 4.0, -12.0, 0.25})
      for (const double c : {2.0, 5.0, 0.5}) q->input(s, c);
    q->input(0, 3);
    for (int i = 0; i < 4; ++i) q->input(check.draw({}).item() * 3, 1 + std::abs(check.draw({}).item()));
  }
  wrong_value(v), wrong_slope(d), wrong_slope_by_cap(e);
}
