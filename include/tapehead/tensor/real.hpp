#pragma once
#include <type_traits>

#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

namespace detail {
template <class T, class R> struct RealResult {
  static_assert(std::is_floating_point_v<T>,
                "this operation takes Tensor<float> or Tensor<double>: convert with to<float>(x) or to<double>(x)");
  using type = R;
};
template <class T, class R> struct NumericResult {
  static_assert(!std::is_same_v<T, bool>,
                "this operation takes numbers: convert a mask with to<double>(m) or "
                "to<std::int64_t>(m), or combine masks with &, | and ~");
  using type = R;
};
template <class T, class U> struct MixedResult {
  static_assert(std::is_same_v<T, U>, "the element types differ: convert one side with to<float>(x) or to<double>(x)");
  using type = Tensor<T>;
};
/// A number as an element beside others of type T.
template <class T, Number N> T as(N number) {
  static_assert(std::is_floating_point_v<T> || std::is_integral_v<N>,
                "beside a tensor of int64 or bool a number must be whole: convert the tensor with to<double>(x)");
  return static_cast<T>(number);
}
}  // namespace detail

/// R, where T is float or double. As a result type it says of an operation that there are no other versions, and a call
/// with another element type stops at the one line above. Numeric is the same for int64 too.
template <class T, class R = Tensor<T>> using Real = typename detail::RealResult<T, R>::type;
template <class T, class R = Tensor<T>> using Numeric = typename detail::NumericResult<T, R>::type;
/// The result of a version of an operation that is chosen for tensors of two element types, and refuses them.
template <class T, class U>
requires(!std::is_same_v<T, U>) using Mixed = typename detail::MixedResult<T, U>::type;

}  // namespace tapehead
