// 14  The fused kernel, for one query                                  (Which kernel actually runs)
//
// One query q, (d_k,), against keys and values that come in blocks: blocks[b].K is (n_b, d_k),
// blocks[b].V is (n_b, d_v). Return softmax(q Kᵀ / √d_k) V over all blocks, (d_v,), but go through
// the blocks once, and keep only the largest score, the sum and an output row from one to the next.
// Nothing of the size of the whole sequence.
#include "exercise.hpp"

Tensor<double> flash_row(const Tensor<double>& q, const std::vector<Block>& blocks) {
  todo();  // your code here, instead of this line
}
