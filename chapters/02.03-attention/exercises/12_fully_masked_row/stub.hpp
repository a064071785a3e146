// 12  A query without a key, and its gradient                 (Causal & Padding Masks; exercise 4)
//
// Attention with a mask, where true means "may attend" and a query may be left without any key.
// The output of such a query is 0. That is the easy half: the gradients of Q, K and V must be
// numbers too, and this query must add nothing to them. Q is (n_q, d_k), K (n_k, d_k), V (n_k,
// d_v), the mask (n_q, n_k). Write it with the library's operations, because they are recorded
// and the check differentiates them, but without EmptyRows and without the library's attention
// functions.
#include "exercise.hpp"

Tensor<double> masked_attention(const Tensor<double>& Q, const Tensor<double>& K, const Tensor<double>& V,
                                const Tensor<bool>& mask) {
  todo();  // write your code in place of this line
}
