// tanh' = 1 - tanh². By the chain rule the slope in s is c (1 - tanh²(s / c)) times the inner derivative 1
// / c, and c cancels. The slope is 1 at s = 0 and goes to 0 for large scores: a score at its cap gets no
// gradient, just as in a saturated softmax. c appears twice, in front and inside, so its slope has two
// terms: tanh(s / c), and c (1 - tanh²) times the inner derivative -s / c². The library's flex_attention
// finds both derivatives by itself, with numbers that carry their derivatives (dual numbers).
#include "exercise.hpp"

double softcap(double s, double c) { return c * std::tanh(s / c); }

double softcap_slope(double s, double c) {
  const double t = std::tanh(s / c);
  return 1 - t * t;
}

double softcap_slope_by_cap(double s, double c) {
  const double t = std::tanh(s / c);
  return t - s / c * (1 - t * t);
}
