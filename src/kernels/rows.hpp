#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

// Softmax of one row. Sums are in double: a long row of small terms would otherwise stop growing.
namespace tapehead::kernels {

template <class T>
T max_of_row(std::int64_t n, const T* x) {
  T best = -std::numeric_limits<T>::infinity();
  for (std::int64_t i = 0; i < n; ++i) best = best > x[i] || best != best ? best : x[i];  // a NaN stays
  return best;
}

template <class T>
struct SumExp {
  T max;
  double log;  // of Σ exp(x - max)
};
template <class T>
SumExp<T> sum_exp_row(std::int64_t n, const T* x) {
  const T max = max_of_row(n, x);
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(std::exp(x[i] - max));
  return {max, std::log(total)};
}

/// a = exp(s - max s) / Σ; a row of nothing but -inf gives NaN, or zeros where asked.
template <class T>
void softmax_row(std::int64_t n, const T* s, T* a, bool empty_is_zero) {
  const T max = max_of_row(n, s);
  if (empty_is_zero && max == -std::numeric_limits<T>::infinity()) {
    for (std::int64_t i = 0; i < n; ++i) a[i] = 0;
    return;
  }
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(a[i] = std::exp(s[i] - max));
  for (std::int64_t i = 0; i < n; ++i) a[i] = static_cast<T>(static_cast<double>(a[i]) / total);
}

}  // namespace tapehead::kernels
