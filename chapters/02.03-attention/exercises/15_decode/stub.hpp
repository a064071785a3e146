// 15  One token at a time, with a cache                                   (Causal & Padding Masks)
//
// A model that generates text sees one new token at a time. The token's key k, (d_k,), and value
// v, (d_v,), join those of the earlier tokens in the cache; its query q, (d_k,), attends to all
// of them, itself included. Update the cache and return the output of this token, (d_v,). A new
// cache has no rows: K is (0, d_k) and V is (0, d_v). The check feeds a whole sequence and
// compares the outputs with causal attention over all tokens at once.
#include "exercise.hpp"

Tensor<double> decode_step(Cache& cache, const Tensor<double>& q, const Tensor<double>& k,
                           const Tensor<double>& v) {
  todo();  // cat<double>({a, b}) puts b's rows below a's; unsqueeze(k, 0) makes a row of k
}
