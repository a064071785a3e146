#pragma once
#include <cstdint>

// Normalising one row, and the gradients back through it. Everything is summed in double. What is written
// must not overlap what is read.
namespace tapehead::kernels {

/// How a row is normalised: x̂ = (x - mean) · scale, mean 0 where it is not centred.
template <class T>
void norm_row(std::int64_t n, const T* x, const T* w, const T* b, double eps, bool centred, T* y);

/// Back from dy, with g = dy w the gradient of x̂:
///   dx = (g - mean g - x̂ mean(g x̂)) · scale, without mean g where it is not centred;  dw += dy x̂;  db += dy.
/// w may be null, and so may be each gradient that is not asked for.
template <class T>
void norm_pull_row(std::int64_t n, const T* x, const T* dy, const T* w, double eps, bool centred, T* dx,
                   double* dw, double* db);

}  // namespace tapehead::kernels
