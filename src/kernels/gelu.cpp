#include "kernels/gelu.hpp"

namespace tapehead::kernels {

template <class T> void gelu_n(std::int64_t n, const T* x, T* y) {
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) store(y + i, gelu(load(x + i)));
  if (i < n) store_n(y + i, gelu(load_n(x + i, n - i)), n - i);
}

template <class T> void gelu_pull_n(std::int64_t n, const T* x, const T* dy, T* dx) {
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) store(dx + i, load(dy + i) * gelu_slope(load(x + i)));
  if (i < n) store_n(dx + i, load_n(dy + i, n - i) * gelu_slope(load_n(x + i, n - i)), n - i);
}

#define TAPEHEAD_GELU(T)                            \
  template void gelu_n(std::int64_t, const T*, T*); \
  template void gelu_pull_n(std::int64_t, const T*, const T*, T*);
TAPEHEAD_GELU(float)
TAPEHEAD_GELU(double)

}  // namespace tapehead::kernels
