#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>
#ifdef _OPENMP
#include <omp.h>
#endif

namespace tapehead::kernels {

/// Below this many elementary operations a second thread costs more than it brings.
inline constexpr std::int64_t parallel_work = 100'000;

/// Calls f(i) for i in 0 … n-1, on several threads when `work` operations in all are enough to pay for them.
/// Which thread runs which i is not said: f must give the same result whoever runs it.
template <class F>
void parallel_for(std::int64_t n, std::int64_t work, const F& f) {
#ifdef _OPENMP
  if (n > 1 && work >= parallel_work && omp_get_max_threads() > 1 && !omp_in_parallel()) {
    std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic, 1)
    for (std::int64_t i = 0; i < n; ++i) {
      try {
        f(i);
      } catch (...) {
#pragma omp critical
        failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
    return;
  }
#else
  static_cast<void>(work);
#endif
  for (std::int64_t i = 0; i < n; ++i) f(i);
}

}  // namespace tapehead::kernels
