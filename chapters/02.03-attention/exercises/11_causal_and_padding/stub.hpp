// 11  Causal and padding at once                                           (Causal & Padding Masks)
//
// A batch of sequences, each filled up ("padded") to L tokens; sequence b has lengths[b] real ones,
// at its start. Return a mask, (B, L, L): element (b, i, j) is true where query i of sequence b may
// attend to key j. It may where both hold: j is not later than i, and j is a real token. (Rows of
// padding queries follow the same rule; nobody reads what comes out of them.)
#include "exercise.hpp"

Tensor<bool> visible(std::int64_t L, const std::vector<std::int64_t>& lengths) {
  todo();  // Buffer<bool> mask({B, L, L}); mask[n] is its n-th element, row after row; return mask at the end
           // with `return Tensor<bool>(std::move(mask));`. Or compare and broadcast: arange<std::int64_t>(L)
           // and `<`
}
