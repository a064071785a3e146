#pragma once
#include <type_traits>

#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

namespace detail {
template <class T> struct RealTensor {
  static_assert(std::is_floating_point_v<T>,
                "this operation takes Tensor<float> or Tensor<double>: convert with to<float>(x) or to<double>(x)");
  using type = Tensor<T>;
};
}  // namespace detail

/// Tensor<T> for T = float or double. As a result type it says of an operation that there are no other versions, and
/// a call with another element type stops at the one line above.
template <class T> using Real = typename detail::RealTensor<T>::type;

}  // namespace tapehead
