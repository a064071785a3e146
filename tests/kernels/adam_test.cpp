#include "kernels/adam.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "testing.hpp"

using namespace tapehead::kernels;

TEST_CASE_TEMPLATE("adam: one step of every length agrees with the formula in long double", T, float, double) {
  const AdamStep<T> step{T(0.9), T(0.1), T(0.999), T(0.001), T(0.02), T(0.5), T(1e-8), T(0.03), T(0.98)};
  for (std::int64_t n = 0; n < 40; ++n) {
    const auto size = static_cast<std::size_t>(n);
    std::vector<T> p(size), g(size), m(size), v(size), next(size + 1, T(-7));
    for (std::size_t i = 0; i < size; ++i) {
      const T x = static_cast<T>(i);
      p[i] = std::sin(x), g[i] = std::cos(2 * x), m[i] = T(0.1) * std::sin(3 * x), v[i] = T(0.01) * x;
    }
    const auto m_before = m, v_before = v;
    adam_n<T>(n, step, p.data(), g.data(), m.data(), v.data(), next.data());
    CHECK(next[size] == T(-7));
    for (std::size_t i = 0; i < size; ++i) {
      using W = long double;
      const W d = W(g[i]) + W(step.into_gradient) * W(p[i]);
      const W mean = W(step.beta1) * W(m_before[i]) + W(step.rest1) * d;
      const W square = W(step.beta2) * W(v_before[i]) + W(step.rest2) * d * d;
      const W want =
          W(p[i]) * W(step.shrink) - W(step.rate) * (mean / (std::sqrt(square) / W(step.root) + W(step.eps)));
      const W tolerance = 8 * std::numeric_limits<T>::epsilon();
      CHECK(std::abs(W(m[i]) - mean) <= tolerance);
      CHECK(std::abs(W(v[i]) - square) <= tolerance);
      CHECK(std::abs(W(next[i]) - want) <= tolerance);
    }
  }
}
