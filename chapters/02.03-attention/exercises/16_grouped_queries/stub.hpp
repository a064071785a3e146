// 16  Query heads that share keys                                     (Which kernel actually runs)
//
// In grouped-query attention there are more query heads than key/value heads, and neighbouring
// query heads share one, which makes the cache smaller. Q is (Hq, L, d_k), K (Hkv, L, d_k), V
// (Hkv, L, d_v); Hq is a multiple of Hkv. With Hq = 6 and Hkv = 2, query heads 0, 1 and 2 use
// key head 0, and query heads 3, 4 and 5 use key head 1. There is no mask. Return the output,
// (Hq, L, d_v), without the library's attention functions.
#include "exercise.hpp"

Tensor<double> grouped_attention(const Tensor<double>& Q, const Tensor<double>& K, const Tensor<double>& V) {
  todo();  // Q[h] is head h, (L, d_k); stack<double>(rows) joins a std::vector of tensors along a new first
           // axis
}
