// 11  Causal and padding at once                                          (Causal & Padding Masks)
//
// In a batch, every sequence is filled up ("padded") to L tokens; sequence b has lengths[b] real
// tokens, at its start. Return a mask, (B, L, L): element (b, i, j) is true if query i of
// sequence b may attend to key j. It may if both conditions hold: j is not later than i, and j
// is a real token. (The rows of queries that are padding follow the same rule; their outputs are
// never used.)
#include "exercise.hpp"

Tensor<bool> visible(std::int64_t L, const std::vector<std::int64_t>& lengths) {
  todo();  // Buffer<bool> mask({B, L, L}); mask[n] is its n-th element, row after row. Set every element, then
           // `return Tensor<bool>(std::move(mask));`. Or compare and broadcast: arange<std::int64_t>(L) and `<`.
}
