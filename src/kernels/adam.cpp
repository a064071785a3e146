#include "kernels/adam.hpp"

#include <cmath>

namespace tapehead::kernels {

// __restrict tells the compiler that the arrays do not overlap. It would not check five arrays, and not
// vectorise.
template <class T> void adam_n(std::int64_t n, const AdamStep<T>& step, const T* __restrict p, const T* __restrict g,
                               T* __restrict m, T* __restrict v, T* __restrict next) {
  const AdamStep<T> s = step;
  for (std::int64_t i = 0; i < n; ++i) {
    const T d = g[i] + s.into_gradient * p[i];
    const T mean = s.beta1 * m[i] + s.rest1 * d, square = s.beta2 * v[i] + s.rest2 * d * d;
    m[i] = mean, v[i] = square;
    next[i] = p[i] * s.shrink - s.rate * (mean / (std::sqrt(square) / s.root + s.eps));
  }
}

template void adam_n(std::int64_t, const AdamStep<float>&, const float*, const float*, float*, float*, float*);
template void adam_n(std::int64_t, const AdamStep<double>&, const double*, const double*, double*, double*, double*);

}  // namespace tapehead::kernels
