#pragma once
// Every operation of the library with inputs to run it on: the table that operations_test.cpp walks.
#include <string>
#include <type_traits>
#include <vector>

#include "tapehead/gradcheck.hpp"

struct Operation {
  /// f on a list of tensors, from a function of one, two or three. Plain pointers: a std::function for each
  /// of a hundred lambdas took most of the time that the table takes to compile.
  template <class T>
  class Function {
    using X = tapehead::Tensor<T>;
    using One = X (*)(X);
    using Two = X (*)(X, X);
    using Three = X (*)(X, X, X);

   public:
    template <class F>
    Function(F f) {
      if constexpr (std::is_convertible_v<F, One>)
        one_ = f;
      else if constexpr (std::is_convertible_v<F, Two>)
        two_ = f;
      else
        three_ = f;
    }
    X operator()(const std::vector<X>& x) const {
      return one_ != nullptr   ? one_(x.at(0))
             : two_ != nullptr ? two_(x.at(0), x.at(1))
                               : three_(x.at(0), x.at(1), x.at(2));
    }

   private:
    One one_ = nullptr;
    Two two_ = nullptr;
    Three three_ = nullptr;
  };

  std::string name;  // of the Op that it records
  std::vector<tapehead::Tensor<double>> inputs;
  Function<double> f;
  Function<float> in_float;  // the same
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
