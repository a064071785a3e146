#pragma once
#include <fmt/core.h>

#include <string>

#include "tapehead/tensor/tensor.hpp"

// Tensors as text, character for character as NumPy (2.3 and later) prints arrays:
//
//   fmt::print("{}\n", weights);              // as print(weights)
//   fmt::print("{}\n", round(weights, 3));    // as print(np.round(weights, 3))
//   fmt::print("{:.3}\n", weights);           // at most three digits after the point
//   fmt::print("{:.3f}\n", weights);          // exactly three, never scientific; e: always scientific
//   fmt::print("{:8.3f}\n", loss);            // the same, and at least eight characters for each element
//   fmt::print("{}\n", weights.shape());      // (2, 3)
//
// tapehead/tensor/ostream.hpp has std::cout << weights.

namespace tapehead {

/// automatic: scientific where the largest number is 1e8 or more (float: 1e6), the smallest that is not 0 is
/// below 1e-4, or they are more than a factor 1000 apart.
enum class Notation { automatic, fixed, scientific };

/// How a tensor is written; NumPy's defaults. With those no number that is not 0 reads as 0; at a precision
/// that you choose below 4, or with suppress_small, one can.
struct PrintOptions {
  int width = 0;              ///< of an element, at least
  int precision = -1;         ///< digits after the point, at most. -1: 8, and all of them where the rank is 0
  bool equal_digits = false;  ///< exactly `precision` digits, even where fewer say it all
  Notation notation = Notation::automatic;
  bool suppress_small = false;    ///< numbers near 0 alone do not make it scientific
  std::int64_t threshold = 1000;  ///< beyond so many elements the middle of each long axis reads "..."
  std::int64_t edge_items = 3;    ///< elements left at either end of such an axis
  std::int64_t line_width = 75;
};

/// x as NumPy's str() has it: columns aligned; as few digits as tell a number from its neighbours of the same
/// type, up to the precision. Throws ValueError where an option is out of range.
template <class E> std::string to_string(const Tensor<E>& x, const PrintOptions& options = {});

namespace detail {

// Not constexpr, so that a bad specification in a literal is an error at compile time.
[[noreturn]] void throw_bad_print_spec();

// Reads "", "8", ".3", "8.3", ".3f" or ".3e" (f, e alone: 6 digits) up to the brace; returns where it stopped.
template <class It> constexpr It parse_print_spec(It it, It end, PrintOptions& options) {
  const auto digit = [&] { return it != end && *it >= '0' && *it <= '9'; };
  const auto number = [&](int& value) {
    for (value = 0; digit(); ++it)
      if ((value = value * 10 + (*it - '0')) > 1100) throw_bad_print_spec();
  };
  if (digit() && *it != '0') number(options.width);
  if (it != end && *it == '.') {
    ++it;
    if (!digit()) throw_bad_print_spec();
    number(options.precision);
  }
  if (it != end && (*it == 'f' || *it == 'e')) {
    options.notation = *it == 'f' ? Notation::fixed : Notation::scientific;
    options.equal_digits = true;
    if (options.precision < 0) options.precision = 6;
    ++it;
  }
  if (it != end && *it != '}') throw_bad_print_spec();
  return it;
}

template <class Out> Out put(const std::string& text, Out out) {
  for (const char c : text) *out++ = c;
  return out;
}

}  // namespace detail
}  // namespace tapehead

template <class E> struct fmt::formatter<tapehead::Tensor<E>> {
  tapehead::PrintOptions options;

  template <class Context> constexpr auto parse(Context& context) {
    return tapehead::detail::parse_print_spec(context.begin(), context.end(), options);
  }
  template <class Context> auto format(const tapehead::Tensor<E>& x, Context& context) const {
    return tapehead::detail::put(tapehead::to_string(x, options), context.out());
  }
};

template <> struct fmt::formatter<tapehead::Shape> {
  template <class Context> constexpr auto parse(Context& context) { return context.begin(); }
  template <class Context> auto format(const tapehead::Shape& shape, Context& context) const {
    return tapehead::detail::put(shape.str(), context.out());
  }
};
