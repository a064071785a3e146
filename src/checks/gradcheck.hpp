#pragma once
#include <string>
#include <vector>

#include "tapehead/checks/gradcheck.hpp"

namespace tapehead::detail {

/// A gradient that disagrees with the differences, and what its likely cause is derived from.
struct Disagreement {
  std::size_t argument;                       // the index of the input
  std::vector<std::string> names;             // of all inputs
  std::vector<Tensor<double>> got, expected;  // the gradients of all inputs: the tape's, the differences'
  Tensor<double> without_dy;                  // what would be expected if dy were 1 everywhere
  Shape output;
  double allowed;  // the difference between gradients that count as equal
};

/// The mistake that gives exactly this wrong gradient; "" where none is known.
std::string likely_cause(const Disagreement& d);

}  // namespace tapehead::detail
