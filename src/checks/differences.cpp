#include "checks/differences.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tapehead::detail {

Measured::Measured(const CheckedFunction& f, Inputs x, Tensor<double> dy, const GradcheckOptions& o)
    : f_(f), x_(std::move(x)), dy_(std::move(dy)), points_(o.points) {
  const double h = o.step > 0 ? o.step : points_ == 4 ? 0x1p-10 : 0x1p-17;
  h_ = std::exp2(std::round(std::log2(h)));  // a power of two: h * unit is exact
}

Slope Measured::slope(std::size_t k, const Values& v, const Tensor<double>& weights) const {
  const Slope near = difference(k, v, h_, weights);
  if (points_ == 2) return near;
  const Slope far = difference(k, v, 2 * h_, weights);
  return {(4 * near.value - far.value) / 3, (4 * near.noise + far.noise) / 3};
}

// The slopes to the left and to the right differ by h f'' where f is smooth: halving h halves it. An error of
// the slope that a kink caused shows up here in full, at one of the scales.
bool Measured::kink(std::size_t k, const Values& v, double error) const {
  double odd = 0, h = points_ == 4 ? 2 * h_ : h_, wide = bend(k, v, h);
  for (int halving = 0; halving < 3; ++halving) {
    const double half = bend(k, v, h /= 2);
    odd = std::max(odd, std::abs(wide - 2 * half));
    wide = half;
  }
  return !(odd <= 0.5 * error);
}

Values Measured::at(std::size_t k, const Values& v, double t) const {
  Inputs moved = x_;
  Values values = x_[k].to_vector();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (v[i] != 0) values[i] += t * v[i];
  moved[k] = from_vector(values, x_[k].shape());
  return f_(moved).to_vector();
}

Slope Measured::difference(std::size_t k, const Values& v, double h, const Tensor<double>& weights) const {
  const Values right = at(k, v, h), left = at(k, v, -h), w = weights.to_vector();
  Slope s;
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (right[i] == left[i]) continue;
    s.value += w[i] * (right[i] - left[i]);
    s.noise += std::abs(w[i]) * std::max(std::abs(right[i]), std::abs(left[i]));
  }
  return {s.value / (2 * h), s.noise * 4 * std::numeric_limits<double>::epsilon() / h};
}

double Measured::bend(std::size_t k, const Values& v, double h) const {
  const Values right = at(k, v, h), here = at(k, v, 0), left = at(k, v, -h), w = dy_.to_vector();
  double sum = 0;
  for (std::size_t i = 0; i < w.size(); ++i) sum += w[i] * ((right[i] - here[i]) - (here[i] - left[i]));
  return sum / h;
}

}  // namespace tapehead::detail
