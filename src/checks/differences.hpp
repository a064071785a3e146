#pragma once
#include <vector>

#include "tapehead/checks/gradcheck.hpp"

namespace tapehead::detail {

using Values = std::vector<double>;
using Inputs = std::vector<Tensor<double>>;

/// A slope measured by differences, and how much of it may be rounding error.
struct Slope {
  double value = 0, noise = 0;
};

/// f at x, whose derivatives are measured by central differences: each moves an element of a copy of x.
struct Measured {
  const CheckedFunction& f;
  Inputs x;
  const GradcheckOptions& options;

  /// The derivative of Σ w ⊙ f(x) with respect to element i of argument k.
  Slope slope(std::size_t k, std::size_t i, const Tensor<double>& w) const;
  /// Whether f has a kink or a jump within that difference, which caused an error of the slope as large as `error`.
  bool kink(std::size_t k, std::size_t i, const Tensor<double>& w, double error) const;
  double step(std::size_t k, std::size_t i) const;

 private:
  Values at(std::size_t k, std::size_t i, double t) const;
  Slope difference(std::size_t k, std::size_t i, double h, const Values& w) const;
  double bend(std::size_t k, std::size_t i, double h, const Values& w) const;
};

}  // namespace tapehead::detail
