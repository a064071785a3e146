#pragma once
// For the tests of modules: parameters that hide nothing, and gradients through every one of them.
#include <string>
#include <vector>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

namespace modules {

using namespace tapehead;

/// Two ways to the same sums: a few ε.
inline bool close(const Tensor<double>& a, const Tensor<double>& b) {
  return a.shape() == b.shape() && allclose(a, b, 1e-13, 1e-13);
}

/// Parameters that start at 0 or 1 hide mistakes.
template <class M> M with_random_parameters(M module) {
  NumpyRandom rng(7);
  module.each_parameter([&rng](const std::string&, Tensor<double>& p) { p = rng.randn(p.shape()) * 0.5; });
  return module;
}

/// The gradients of f(module, x) by every parameter and by x, against differences.
template <class M, class F> GradcheckReport check_gradients(const M& module, const Tensor<double>& x, const F& f) {
  std::vector<Named<double>> inputs = module.parameters();
  inputs.push_back({"x", x});
  return gradcheck(
      [&](const std::vector<Tensor<double>>& p) {
        M other = module;
        std::size_t i = 0;
        other.each_parameter([&](const std::string&, Tensor<double>& parameter) { parameter = p[i++]; });
        return f(other, p.back());
      },
      inputs, {.may_be_zero = false});
}
template <class M> GradcheckReport check_gradients(const M& module, const Tensor<double>& x) {
  return check_gradients(module, x, [](const M& m, const Tensor<double>& in) { return m(in); });
}
#define CHECK_GRADIENTS(...)                           \
  do {                                                 \
    const auto checked = check_gradients(__VA_ARGS__); \
    CHECK_MESSAGE(checked.ok, checked.text());         \
  } while (false)

template <class M> std::string names(const M& module) {
  std::string all;
  for (const auto& p : module.parameters()) all += p.name + p.tensor.shape().str() + " ";
  return all;
}

inline Tensor<double> randn(const Shape& shape, int seed = 1) { return NumpyRandom(seed).randn(shape); }

}  // namespace modules
