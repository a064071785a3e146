#pragma once
#include <string>

#include "tapehead/tensor/real.hpp"

namespace tapehead {

/// Products of elements summed over the letters that the result does not name: einsum("bhqd,bhkd->bhqk", Q,
/// K) is out[b][h][q][k] = Σ_d Q[b][h][q][d] K[b][h][k][d]. One letter an axis, any of a to z and A to Z;
/// spaces are ignored. It is made of sum, permute, reshape and matmul, so it is as exact as they are, and
/// differentiable. Throws ValueError for an equation without
/// "->", with "..." or with a letter twice in one term (a diagonal), and ShapeError where the sizes do not
/// fit.
template <class T>
Real<T> einsum(const std::string& equation, const Tensor<T>& a, const Tensor<T>& b);
/// The same of one tensor: "ij->ji", "bij->b".
template <class T>
Real<T> einsum(const std::string& equation, const Tensor<T>& a);

}  // namespace tapehead
