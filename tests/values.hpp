#pragma once
// What tests of operations ask of values: a gradient by one tape, and comparisons that are stricter than equality.
#include <cmath>
#include <cstring>

#include "tapehead/autograd/tape.hpp"

namespace testing {

/// The gradient at x of f(x), which has one element.
template <class T, class F> tapehead::Tensor<T> gradient(const F& f, const tapehead::Tensor<T>& x) {
  tapehead::Tape<T> tape;
  tape.watch(x);
  return tape.backward(f(x))[x];
}

template <class T> bool all_nan(const tapehead::Tensor<T>& x) {
  for (T v : x.to_vector())
    if (!std::isnan(v)) return false;
  return true;
}

/// The same shape, and the same bits: NaN equals NaN, and 0 is not -0.
template <class T> bool same_bits(const tapehead::Tensor<T>& a, const tapehead::Tensor<T>& b) {
  const auto u = a.to_vector(), v = b.to_vector();
  return a.shape() == b.shape() && (u.empty() || std::memcmp(u.data(), v.data(), u.size() * sizeof(T)) == 0);
}

}  // namespace testing
