#pragma once
#include <cstdint>
#include <type_traits>

// What is not offered says so in one line: the checks that stop the compiler where an element type, or two of them, do
// not fit, with the conversion to write.

namespace tapehead {

template <class N>
concept Number = std::is_arithmetic_v<N>;

template <class E>
concept Element =
    std::is_same_v<E, float> || std::is_same_v<E, double> || std::is_same_v<E, bool> || std::is_same_v<E, std::int64_t>;

template <class E> class Tensor;

/// The second tensor of an operation on two, of the first one's element type. A tensor of another type is converted to
/// it implicitly, and that stops at Tensor's one line about conversions.
template <class E> using Like = std::type_identity_t<Tensor<E>>;

namespace detail {
// Types that no tensor has stop at Tensor itself.
template <class T> struct IsReal {
  static_assert(!Element<T> || std::is_floating_point_v<T>,
                "this operation takes Tensor<float> or Tensor<double>: convert with to<float>(x) or to<double>(x)");
  static constexpr bool value = true;
};
template <class T> struct IsNumeric {
  static_assert(!std::is_same_v<T, bool>,
                "this operation takes numbers: convert a mask with to<double>(m) or to<std::int64_t>(m), or combine "
                "masks with &, | and ~");
  static constexpr bool value = true;
};
// R, once the check has compiled. (clang++ would report the class that a static_assert has failed in a second time.)
template <class Check, class R> struct Checked {
  static_assert(Check::value);
  static constexpr bool value = true;
  using type = R;
};
/// A number as an element beside others of type T.
template <class T, Number N> T as(N number) {
  static_assert(std::is_floating_point_v<T> || std::is_integral_v<N>,
                "beside a tensor of int64 or bool a number must be whole: convert the tensor with to<double>(x)");
  return static_cast<T>(number);
}
template <class E> struct NumberOf {
  template <Number N> constexpr NumberOf(N number) : value(as<E>(number)) {}
  constexpr operator E() const { return value; }
  E value;
};
/// What a tensor of U that came where one of E is needed should become.
template <class E, class U> constexpr bool converts() {
  static_assert(
      !std::is_same_v<E, float> || std::is_same_v<E, U>,
      "the element types differ: Tensor<float> is needed here; convert with to<float>(x), or convert the others");
  static_assert(!std::is_same_v<E, double> || std::is_same_v<E, U>,
                "the element types differ: Tensor<double> is needed here; convert with to<double>(x)");
  static_assert(!std::is_same_v<E, std::int64_t> || std::is_same_v<E, U>,
                "the element types differ: Tensor<std::int64_t> is needed here; convert with to<std::int64_t>(x)");
  static_assert(!std::is_same_v<E, bool> || std::is_same_v<E, U>,
                "a mask, Tensor<bool>, is needed here: make one by a comparison, such as x != 0");
  return true;
}
}  // namespace detail

/// A number beside tensors of E: of any type, but beside int64 or bool it must be whole.
template <class E> using NumberFor = std::type_identity_t<detail::NumberOf<E>>;

/// float or double, for templates that have no other version.
template <class T>
concept Floating = detail::Checked<detail::IsReal<T>, T>::value;

/// R, where T is float or double. As a result type it says of an operation that there are no other versions, and a call
/// with another element type stops at the one line above. Numeric is the same for int64 too.
template <class T, class R = Tensor<T>> using Real = typename detail::Checked<detail::IsReal<T>, R>::type;
template <class T, class R = Tensor<T>> using Numeric = typename detail::Checked<detail::IsNumeric<T>, R>::type;

}  // namespace tapehead
