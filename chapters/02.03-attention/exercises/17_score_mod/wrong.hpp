// Exercise 17: wrong answers, and what the check says about each.
#include <array>

#include "checker.hpp"

namespace exercise {

using Numbers = Question<double(double, double)>;
inline double t(double s, double c) { return std::tanh(s / c); }
inline double bell(double s, double c) { return 1 - t(s, c) * t(s, c); }  // the derivative of tanh, at s / c

inline void wrong_value(Numbers& q) {
  q.mistake("the c in front is missing", t);
  q.mistake("the division by c inside is missing", [](double s, double c) { return c * std::tanh(s); });
  q.mistake("c stands neither in front nor inside", [](double s, double) { return std::tanh(s); });
  q.mistake("s is multiplied by c inside, and the result divided by c; it is the other way round",
            [](double s, double c) { return std::tanh(s * c) / c; });
  q.mistake("s is multiplied by c inside; divide by it",
            [](double s, double c) { return c * std::tanh(s * c); });
  q.mistake("s is cut off at ±c, which has a corner; tanh approaches ±c smoothly",
            [](double s, double c) { return std::clamp(s, -c, c); });
  q.mistake("this is tan, not tanh", [](double s, double c) { return c * std::tan(s / c); });
  q.mistake("this is c / s instead of s / c", [](double s, double c) { return c * std::tanh(c / s); });
  q.mistake("this is s itself", [](double s, double) { return s; });
  q.wrong("", [](double s, double c) { return c * std::tanh(std::abs(s) / c); });
}

inline void wrong_slope(Numbers& q) {
  q.mistake("the inner derivative 1 / c is missing", [](double s, double c) { return c * bell(s, c); });
  q.mistake("the c in front is missing", [](double s, double c) { return bell(s, c) / c; });
  q.mistake("this is 1 - tanh: the tanh has to be squared", [](double s, double c) { return 1 - t(s, c); });
  q.mistake("this is 1 - tanh² of s, but s / c is inside",
            [](double s, double) { return 1 - std::tanh(s) * std::tanh(s); });
  q.mistake("this is 1 - softcap²: the square is that of the tanh, without the c in front",
            [](double s, double c) { return 1 - c * c * t(s, c) * t(s, c); });
  q.mistake("this is 1 - softcap² / c: the square is that of the tanh, without the c in front",
            [](double s, double c) { return 1 - c * t(s, c) * t(s, c); });
  q.mistake("this is 1 + tanh²: the derivative of tanh is 1 - tanh²",
            [](double s, double c) { return 2 - bell(s, c); });
  q.mistake("this is tanh², without the 1", [](double s, double c) { return 1 - bell(s, c); });
  q.mistake("this is the value, not its slope", [](double s, double c) { return c * t(s, c); });
  q.mistake("this is tanh(s / c), the value without c, not its slope", t);
  q.mistake("this is the slope of s cut off at ±c, which jumps",
            [](double s, double c) { return std::abs(s) < c ? 1.0 : 0.0; });
  q.mistake("this is a difference quotient: it has only some digits; use the formula",
            [](double s, double c) { return (c * t(s + 1e-6, c) - c * t(s, c)) / 1e-6; });
  q.wrong("", [](double s, double c) { return bell(s, c) * bell(s, c); });
}

inline void wrong_slope_by_cap(Numbers& q) {
  q.mistake("c is inside the tanh too: the product rule has a second term", t);
  q.mistake("only the second term of the product rule is there",
            [](double s, double c) { return -s / c * bell(s, c); });
  q.mistake("wrong sign of the second term: the derivative of s / c is -s / c²",
            [](double s, double c) { return t(s, c) + s / c * bell(s, c); });
  q.mistake("in the second term, the c in front is missing: c · s / c² is s / c",
            [](double s, double c) { return t(s, c) - s / (c * c) * bell(s, c); });
  q.mistake("in the second term, 1 / c is missing: c · s / c² is s / c",
            [](double s, double c) { return t(s, c) - s * bell(s, c); });
  q.mistake("the inner derivative is taken with respect to s; it should be with respect to c",
            [](double s, double c) { return t(s, c) + bell(s, c); });
  q.mistake("this is the slope in s", bell);
  q.mistake("this is the value, not its slope", [](double s, double c) { return c * t(s, c); });
  q.mistake("in the second term, the derivative of tanh is 1 - tanh², not 1 - tanh",
            [](double s, double c) { return t(s, c) - s / c * (1 - t(s, c)); });
  q.wrong("Most likely: every number is 0", [](double, double) { return 0.0; });
  q.wrong("", [](double s, double c) { return t(s, c) - s / c; });
}

}  // namespace exercise
