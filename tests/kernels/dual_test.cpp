// Dual numbers: every function's slopes beside central differences, and the rules at ties and kinks.
#include "tapehead/kernels/dual.hpp"

#include <cmath>
#include <functional>

#include "testing.hpp"

using tapehead::kernels::Dual;

namespace {

using D2 = Dual<double, 2>;
D2 variable(double value, int which) {
  D2 x(value);
  x.d[which] = 1;
  return x;
}

}  // namespace

TEST_CASE("dual: values and slopes of every operation") {
  const std::function<D2(const D2&, const D2&)> all[] = {[](auto a, auto b) { return a + b; },
                                                         [](auto a, auto b) { return a - b; },
                                                         [](auto a, auto b) { return a * b; },
                                                         [](auto a, auto b) { return a / b; },
                                                         [](auto a, auto b) { return -a + 2 * b; },
                                                         [](auto a, auto b) { return exp(a) - 1 / b; },
                                                         [](auto a, auto b) { return log(a) * b; },
                                                         [](auto a, auto b) { return sqrt(a) + 3 - b; },
                                                         [](auto a, auto b) { return tanh(a * b); },
                                                         [](auto a, auto b) { return sin(a) * cos(b); },
                                                         [](auto a, auto b) { return abs(a - b); },
                                                         [](auto a, auto b) { return sigmoid(a) / b; },
                                                         [](auto a, auto b) { return pow(a, 2.5) - b; },
                                                         [](auto a, auto b) { return max(a, b) * min(a, b) + max(a, a * b); }};
  const double a = 0.7, b = 1.3, h = 1e-6;
  for (const auto& f : all) {
    const D2 y = f(variable(a, 0), variable(b, 1));
    CHECK(y.d[0] == doctest::Approx((f(a + h, b).v - f(a - h, b).v) / (2 * h)).epsilon(1e-8));
    CHECK(y.d[1] == doctest::Approx((f(a, b + h).v - f(a, b - h).v) / (2 * h)).epsilon(1e-8));
  }
  CHECK((variable(1, 0) < 2 && variable(3, 0) > 2 && variable(2, 0) <= 2 && variable(2, 0) >= 2));
}

TEST_CASE("dual: a tie shares the slope, and abs has slope 0 at 0") {
  const D2 x = variable(2, 0), y = variable(2, 1);
  CHECK((max(x, y).d[0] == 0.5 && max(x, y).d[1] == 0.5 && min(x, y).d[0] == 0.5));
  CHECK(abs(variable(0, 0)).d[0] == 0);
}
