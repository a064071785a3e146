#pragma once
#include <cmath>
#include <cstdint>

// Normalising one row, and the gradient back through it. Everything is summed in double. What is written must
// not overlap what is read.
namespace tapehead::kernels {

/// Σ f(i) over i = 0 … n-1, in 16 interleaved sums: they do not wait for one another, and the compiler
/// vectorises them.
template <class F>
double sum_row(std::int64_t n, const F& f) {
  constexpr int ways = 16;
  double part[ways] = {};
  std::int64_t i = 0;
  for (; i + ways <= n; i += ways)
    for (int w = 0; w < ways; ++w) part[w] += f(i + w);
  for (; i < n; ++i) part[i % ways] += f(i);
  for (int half = ways / 2; half > 0; half /= 2)
    for (int w = 0; w < half; ++w) part[w] += part[w + half];
  return part[0];
}

/// How a row is normalised: x̂ = (x - mean) · scale. Without `centred` the mean is 0.
struct RowNorm {
  template <class T>
  RowNorm(std::int64_t n, const T* x, double eps, bool centred) {
    const auto count = static_cast<double>(n);
    if (centred) mean = sum_row(n, [x](std::int64_t i) { return static_cast<double>(x[i]); }) / count;
    const double squares = sum_row(n, [x, this](std::int64_t i) {
      return (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean);
    });
    scale = 1 / std::sqrt(squares / count + eps);
  }
  template <class T>
  double operator()(T x) const {
    return (static_cast<double>(x) - mean) * scale;
  }

  double mean = 0, scale;
};

/// y = x̂ w + b; w and b may be null.
template <class T>
void norm_row(std::int64_t n, const T* x, const T* w, const T* b, double eps, bool centred, T* __restrict y) {
  const RowNorm norm(n, x, eps, centred);
  if (w != nullptr && b != nullptr)
    for (std::int64_t i = 0; i < n; ++i)
      y[i] = static_cast<T>(norm(x[i]) * static_cast<double>(w[i]) + static_cast<double>(b[i]));
  else if (w != nullptr)
    for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(norm(x[i]) * static_cast<double>(w[i]));
  else
    for (std::int64_t i = 0; i < n; ++i)
      y[i] = static_cast<T>(norm(x[i]) + (b != nullptr ? static_cast<double>(b[i]) : 0.0));
}

/// dx = (g - mean g - x̂ mean(g x̂)) · scale for the gradient g of x̂; without `centred` there is no mean g. g
/// is dy, or dy w where there is a weight.
template <class T>
void norm_pull_row(std::int64_t n, const T* x, const T* dy, const T* w, double eps, bool centred,
                   T* __restrict dx) {
  const auto pulled = [&](const auto& g) {
    const RowNorm norm(n, x, eps, centred);
    const auto count = static_cast<double>(n);
    const double mean = centred ? sum_row(n, g) / count : 0;
    const double along = sum_row(n, [&](std::int64_t i) { return g(i) * norm(x[i]); }) / count;
    for (std::int64_t i = 0; i < n; ++i)
      dx[i] = static_cast<T>((g(i) - mean - norm(x[i]) * along) * norm.scale);
  };
  if (w != nullptr)
    pulled([=](std::int64_t i) { return static_cast<double>(dy[i]) * static_cast<double>(w[i]); });
  else
    pulled([=](std::int64_t i) { return static_cast<double>(dy[i]); });
}

/// dw[i] += dy[i] x̂[i]: the weight's gradient, row upon row.
template <class T>
void norm_weight_row(std::int64_t n, const T* x, const T* dy, double eps, bool centred,
                     double* __restrict dw) {
  const RowNorm norm(n, x, eps, centred);
  for (std::int64_t i = 0; i < n; ++i) dw[i] += static_cast<double>(dy[i]) * norm(x[i]);
}

}  // namespace tapehead::kernels
