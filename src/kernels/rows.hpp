#pragma once
#include <cstdint>

// Softmax of one row: the largest is subtracted, so that no exponential overflows, and the sum is taken in
// double, so that a long row of small terms does not stop growing.
namespace tapehead::kernels {

/// The largest element (NaN apart) and log Σ exp(x - max); -inf and NaN or 0 where there is nothing but -inf.
template <class T>
struct SumExp {
  T max;
  double log;
};
template <class T>
SumExp<T> sum_exp_row(std::int64_t n, const T* x);

/// a = exp(s - max s) / Σ. A row of nothing but -inf gives NaN, or zeros where asked. a may be s.
template <class T>
void softmax_row(std::int64_t n, const T* s, T* a, bool empty_is_zero);

/// ds = a (da - Σ da a), the way back through it; ds may be da.
template <class T>
void softmax_pull_row(std::int64_t n, const T* a, const T* da, T* ds);

}  // namespace tapehead::kernels
