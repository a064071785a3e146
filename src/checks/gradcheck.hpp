#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tapehead/checks/gradcheck.hpp"

namespace tapehead::detail {

/// A gradient that disagrees, and what its likeliest cause is worked out from.
struct Disagreement {
  std::size_t argument;                       // which of the inputs
  std::vector<std::string> names;             // of all inputs
  std::vector<Tensor<double>> got, expected;  // the gradients of all inputs: the tape's, the differences'
  Shape output;
  int order;
  /// The differences' gradient when only one position along an axis of the output counts.
  std::function<Tensor<double>(int axis, std::int64_t position)> expected_from;
  /// Whether two gradients of the argument are equal within what is allowed.
  std::function<bool(const Tensor<double>&, const Tensor<double>&)> close;
};

std::string likeliest_cause(const Disagreement& d);

}  // namespace tapehead::detail
