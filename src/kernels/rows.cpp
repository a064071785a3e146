#include "kernels/rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/row_sums.hpp"
#include "kernels/vmath.hpp"

namespace tapehead::kernels {
namespace {

// 16 interleaved partial results do not depend on each other, so the compiler makes vectors of them.
constexpr std::int64_t ways = 16;

/// The largest element, -∞ of none, NaN if the largest is infinite and there is a NaN. (Beside finite numbers
/// a NaN needs no search: it makes the sum of the exponentials NaN.)
template <class T> T max_of(std::int64_t n, const T* x) {
  T best[ways];
  std::fill_n(best, ways, -std::numeric_limits<T>::infinity());
  std::int64_t i = 0;
  for (; i + ways <= n; i += ways)
    for (std::int64_t w = 0; w < ways; ++w) best[w] = x[i + w] > best[w] ? x[i + w] : best[w];
  for (; i < n; ++i) best[0] = x[i] > best[0] ? x[i] : best[0];
  const T largest = *std::max_element(best, best + ways);
  if (std::isinf(largest))
    for (i = 0; i < n; ++i)
      if (std::isnan(x[i])) return x[i];
  return largest;
}

/// Σ x, in double.
template <class T> double sum_of(std::int64_t n, const T* x) {
  return sums<1>(n, [x](auto at) { return std::array{at(x)}; })[0];
}

/// y = exp(x - shift).
template <class T> void exp_shifted(std::int64_t n, const T* x, T shift, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] - shift;
  exp_n(n, y, y);
}

}  // namespace

template <class T> SumExp<T> sum_exp_row(std::int64_t n, const T* x) {
  constexpr std::int64_t piece = 512;
  T y[piece];
  const T max = max_of(n, x);
  double total = 0;
  for (std::int64_t i = 0; i < n; i += piece) {
    exp_shifted(std::min(piece, n - i), x + i, max, y);
    total += sum_of(std::min(piece, n - i), y);
  }
  return {max, std::log(total)};
}

template <class T> void softmax_row(std::int64_t n, const T* s, T* a, bool empty_is_zero) {
  const T max = max_of(n, s);
  if (empty_is_zero && max == -std::numeric_limits<T>::infinity()) {
    std::fill_n(a, n, T{0});
    return;
  }
  exp_shifted(n, s, max, a);  // -∞ - -∞ is NaN: the row of which nothing may be attended to
  const T total = static_cast<T>(sum_of(n, a));  // a NaN anywhere makes the sum NaN, and so the row
  for (std::int64_t i = 0; i < n; ++i) a[i] /= total;
}

template <class T> void softmax_pull_row(std::int64_t n, const T* a, const T* da, T* ds) {
  const auto total = static_cast<T>(sums<1>(n, [=](auto at) { return std::array{at(da) * at(a)}; })[0]);
  for (std::int64_t i = 0; i < n; ++i) ds[i] = a[i] * (da[i] - total);
}

template SumExp<float> sum_exp_row(std::int64_t, const float*);
template SumExp<double> sum_exp_row(std::int64_t, const double*);
template void softmax_row(std::int64_t, const float*, float*, bool);
template void softmax_row(std::int64_t, const double*, double*, bool);
template void softmax_pull_row(std::int64_t, const float*, const float*, float*);
template void softmax_pull_row(std::int64_t, const double*, const double*, double*);

}  // namespace tapehead::kernels
