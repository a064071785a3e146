#pragma once
// Every operation of the library with inputs to run it on: the table that operations_test.cpp walks.
#include <functional>
#include <string>
#include <vector>

#include "tapehead/gradcheck.hpp"

struct Operation {
  template <class T>
  using Function = std::function<tapehead::Tensor<T>(const std::vector<tapehead::Tensor<T>>&)>;

  std::string name;  // of the Op that it records
  Function<double> f;
  Function<float> in_float;  // the same
  std::vector<tapehead::Tensor<double>> inputs;
  /// Elementwise: takes inputs of any shape, and element i of the result comes from element i of the inputs
  /// alone.
  bool elementwise = false;
  /// How many records one call appends: 1, unless f has to prepare something for the operation to be reached.
  int records = 1;
  /// 2: differentiable again and again. A fused kernel's result is so once, its gradients not at all: asking
  /// for more throws.
  int derivatives = 2;
};

const std::vector<Operation>& operations();
