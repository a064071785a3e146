#pragma once
#include <cstdint>

// Normalising one row of n elements, and its gradients. Everything is accumulated in double. Outputs must not
// overlap inputs.
namespace tapehead::kernels {

/// y = x̂ w + b with x̂ = (x - mean x) / √(mean (x - mean x)² + eps); if not centred (RMS norm), the mean of
/// x is taken to be 0. w and b may be null.
template <class T> void norm_row(std::int64_t n, const T* x, const T* w, const T* b, double eps, bool centred, T* y);

/// The gradients for dy arriving, with g = dy w the gradient of x̂ and scale = 1 / √(…):
///   dx = (g - mean g - x̂ mean(g x̂)) · scale, without mean g if not centred;  dw += dy x̂;  db += dy.
/// w may be null, and so may each gradient that is not needed.
template <class T> void norm_pull_row(std::int64_t n, const T* x, const T* dy, const T* w, double eps, bool centred,
                                      T* dx, double* dw, double* db);

}  // namespace tapehead::kernels
