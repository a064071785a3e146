#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "tapehead/checks/gradcheck.hpp"

namespace tapehead::detail {

using Values = std::vector<double>;
using Inputs = std::vector<Tensor<double>>;

/// A slope along some direction, and what rounding leaves uncertain of it.
struct Slope {
  double value = 0, noise = 0;
};

/// f at a point, seen as one number Σ dy ⊙ f(x), whose slopes are measured by central differences. It refers
/// to f, and changes no x: each difference moves a copy.
class Measured {
 public:
  Measured(const CheckedFunction& f, Inputs x, Tensor<double> dy, const GradcheckOptions& o);

  /// The step of element i of an argument is step() times this.
  static double unit(double x) { return std::exp2(std::ceil(std::log2(std::max(1.0, std::abs(x))))); }
  double step() const { return h_; }

  /// d/dt Σ weights ⊙ f(x + t v), v in argument k.
  Slope slope(std::size_t k, const Values& v, const Tensor<double>& weights) const;
  Slope slope(std::size_t k, const Values& v) const { return slope(k, v, dy_); }

  /// Whether f has a kink or a jump within the difference, which caused an error of the slope as large as
  /// `error`.
  bool kink(std::size_t k, const Values& v, double error) const;

  const Inputs& x() const { return x_; }
  const Tensor<double>& dy() const { return dy_; }

 private:
  Values at(std::size_t k, const Values& v, double t) const;
  Slope difference(std::size_t k, const Values& v, double h, const Tensor<double>& weights) const;
  double bend(std::size_t k, const Values& v, double h) const;

  const CheckedFunction& f_;
  Inputs x_;
  Tensor<double> dy_;
  int points_;
  double h_;
};

}  // namespace tapehead::detail
