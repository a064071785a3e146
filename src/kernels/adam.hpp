#pragma once
#include <cstdint>

namespace tapehead::kernels {

/// The constants of one step of Adam, the same for all elements of a parameter.
template <class T> struct AdamStep {
  T beta1, rest1, beta2, rest2;  // rest: 1 - beta, rounded by itself
  T rate;                        // lr / (1 - beta1^t)
  T root;                        // √(1 - beta2^t)
  T eps;
  T into_gradient;  // weight decay that is added to g (Adam)
  T shrink;         // what p is multiplied by (AdamW: 1 - lr decay)
};

/// m = beta1 m + rest1 g,  v = beta2 v + rest2 g²,  next = shrink p - rate m / (√v / root + eps), one pass
/// through memory (Kingma and Ba, 2015; AdamW: Loshchilov and Hutter, 2019). The five arrays of n elements
/// must not overlap.
template <class T> void adam_n(std::int64_t n, const AdamStep<T>& step, const T* p, const T* g, T* m, T* v, T* next);

}  // namespace tapehead::kernels
