#include "kernels/vmath.hpp"

namespace tapehead::kernels {

namespace {
/// Whole vectors, then what is left as one partial vector: an element is computed the same way wherever it
/// stands.
template <class T, class F> void map(std::int64_t n, const T* x, T* y, F f) {
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) store(y + i, f(load(x + i)));
  if (i < n) store_n(y + i, f(load_n(x + i, n - i)), n - i);
}
}  // namespace

#define TAPEHEAD_MAP(name)                                             \
  template <class T> void name##_n(std::int64_t n, const T* x, T* y) { \
    map(n, x, y, [](Vec<T> v) { return name(v); });                    \
  }                                                                    \
  template void name##_n(std::int64_t, const float*, float*);          \
  template void name##_n(std::int64_t, const double*, double*);

TAPEHEAD_MAP(exp)
TAPEHEAD_MAP(exp2)
TAPEHEAD_MAP(expm1)
TAPEHEAD_MAP(log)
TAPEHEAD_MAP(tanh)
TAPEHEAD_MAP(sigmoid)
TAPEHEAD_MAP(erf)
#undef TAPEHEAD_MAP

}  // namespace tapehead::kernels
