#pragma once
#include "tapehead/tensor/real.hpp"

namespace tapehead {

/// Rotary position embedding (Su et al. 2021), pairs split in halves as in GPT-NeoX and Llama: in a row of D
/// elements at position p, the pair (x_i, x_{i+D/2}) is turned by the angle p θ^(-2i/D). x is (…, L, D), D
/// even; positions are (L,), or any shape that broadcasts to x's without its last axis, one for each batch
/// for instance. Angles are computed in double. Throws ShapeError on an odd D and on positions that do not
/// fit, ValueError unless θ > 0.
template <class T>
Real<T> rope(const Tensor<T>& x, const Tensor<std::int64_t>& positions, double theta = 10'000);

}  // namespace tapehead
