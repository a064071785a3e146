#pragma once
#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

/// Rotary position embedding (Su et al. 2021), pairs split in halves as in GPT-NeoX and Llama: in a row of D
/// elements at position p, the pair (x_i, x_{i+D/2}) is turned by the angle p θ^(-2i/D). x is (…, L, D), D
/// even. positions are (L,), a single number for all rows, or have one axis less than x and broadcast to x's shape without its last axis: (batch, 1,
/// L) gives each sequence of a batch its own. Fewer axes are refused, because (batch, L) would be taken for (heads, L).
/// Angles are computed in double. Throws ShapeError on an odd D and on positions that do not fit, ValueError unless θ >
/// 0.
template <class T> Real<T> rope(const Tensor<T>& x, const Tensor<std::int64_t>& positions, double theta = 10'000);

}  // namespace tapehead
