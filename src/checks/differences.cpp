#include "checks/differences.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tapehead::detail {

// A power of two, so that x + h is exact.
double Measured::step(std::size_t k, std::size_t i) const {
  const double h = options.step > 0 ? options.step : options.points == 4 ? 0x1p-10 : 0x1p-17;
  const double size = std::max(1.0, std::abs(x[k].to_vector()[i]));
  return std::exp2(std::round(std::log2(h)) + std::ceil(std::log2(size)));
}

Slope Measured::slope(std::size_t k, std::size_t i, const Tensor<double>& w) const {
  const double h = step(k, i);
  const Slope near = difference(k, i, h, w.to_vector());
  if (options.points == 2) return near;
  const Slope far = difference(k, i, 2 * h, w.to_vector());
  return {(4 * near.value - far.value) / 3, (4 * near.noise + far.noise) / 3};
}

// The slopes to the left and to the right differ by h f'' where f is smooth, so halving h halves the difference. A
// kink adds its change of slope to the difference at any h; half of that change is the error it causes.
bool Measured::kink(std::size_t k, std::size_t i, const Tensor<double>& weights, double error) const {
  const Values w = weights.to_vector();
  double odd = 0, h = step(k, i) * (options.points == 4 ? 2 : 1), wide = bend(k, i, h, w);
  for (int halving = 0; halving < 3; ++halving) {
    const double half = bend(k, i, h /= 2, w);
    odd = std::max(odd, std::abs(wide - 2 * half));
    wide = half;
  }
  return !(odd <= 0.5 * error);
}

// f where element i of argument k is moved by t.
Values Measured::at(std::size_t k, std::size_t i, double t) const {
  Inputs moved = x;
  Values values = x[k].to_vector();
  values[i] += t;
  moved[k] = from_vector(values, x[k].shape());
  return f(moved).to_vector();
}

Slope Measured::difference(std::size_t k, std::size_t i, double h, const Values& w) const {
  const Values right = at(k, i, h), left = at(k, i, -h);
  Slope s;
  for (std::size_t j = 0; j < right.size(); ++j) {
    if (right[j] == left[j]) continue;
    s.value += w[j] * (right[j] - left[j]);
    s.noise += std::abs(w[j]) * std::max(std::abs(right[j]), std::abs(left[j]));
  }
  return {s.value / (2 * h), s.noise * 4 * std::numeric_limits<double>::epsilon() / h};
}

// The slope to the right minus the slope to the left.
double Measured::bend(std::size_t k, std::size_t i, double h, const Values& w) const {
  const Values right = at(k, i, h), here = at(k, i, 0), left = at(k, i, -h);
  double sum = 0;
  for (std::size_t j = 0; j < w.size(); ++j) sum += w[j] * ((right[j] - here[j]) - (here[j] - left[j]));
  return sum / h;
}

}  // namespace tapehead::detail
