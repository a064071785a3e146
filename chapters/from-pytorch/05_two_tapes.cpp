// What an inner tape records while an outer one walks back: everything, unless its scope has ended.
#include <fmt/format.h>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

int main() {
  Tensor<double> x{1, 2};
  Tape<double> outer, inner;
  outer.watch(x), inner.watch(x);
  const auto slope = inner.backward(sum(x * x * x))[x];
  const auto before = inner.size();
  const auto grad = outer.backward(sum(slope));
  fmt::print("records on the inner tape: {} before outer.backward, {} after it; gradient {}\n", before,
             inner.size(), grad[x]);
}
