#pragma once
#include <cstdint>

// Softmax of one row. The largest element is subtracted, so that no exponential overflows, and the sum is
// accumulated in double, because a float sum of a long row would stop growing.
namespace tapehead::kernels {

/// The largest element and log Σ exp(x - max), so that log Σ exp(x) = max + log. An empty row has max = log = -∞. In a
/// row with a NaN, `log` is NaN, and so is `max` where it would be infinite. In any other row whose `max` is infinite,
/// `log` is NaN. Losses add in the order (max - x) + log: max + log would lose the logarithm of a row of large numbers.
template <class T> struct SumExp {
  T max;
  double log;
};
template <class T> SumExp<T> sum_exp_row(std::int64_t n, const T* x);

/// a = exp(s - max s) / Σ for n elements; a may be s. A row of nothing but -∞ gives NaN, or zeros if
/// `empty_is_zero`. A NaN in s makes all of a NaN.
template <class T> void softmax_row(std::int64_t n, const T* s, T* a, bool empty_is_zero);

/// ds = a (da - Σ da a), the gradient of softmax with its output a and da arriving; ds may be da.
template <class T> void softmax_pull_row(std::int64_t n, const T* a, const T* da, T* ds);

}  // namespace tapehead::kernels
