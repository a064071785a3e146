#pragma once
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapehead/autograd/tape.hpp"

// Is a gradient right? gradcheck compares the tape's gradients with central differences in double, element by
// element, for first and second derivatives, and says where a wrong one differs, by how much and, when the wrong
// values show it, why.

namespace tapehead {

struct GradcheckOptions {
  /// 2 also checks the derivatives of the gradients (by nesting tapes) with respect to the inputs and to the
  /// upstream gradient "dy".
  int order = 1;
  /// The points of the central difference: 2 (its error shrinks with h²) or 4 (with h⁴).
  int points = 2;
  /// h, which is multiplied by max(1, |x|) and rounded to a power of two, so that x + h is exact. 0 takes the step
  /// at which rounding and truncation errors balance: 2⁻¹⁷ for 2 points, 2⁻¹⁰ for 4.
  double step = 0;
  /// The allowed |got - expected| at first and at second order, relative to the argument's largest gradient; the
  /// rounding error of the differences (a few ε |f| / h) is added. Differences of smooth functions of moderate size
  /// are accurate to about 1e-9: 1e-7 leaves a margin, and second derivatives need a larger one.
  double tolerance = 1e-7;
  double tolerance2 = 1e-5;
  /// Skips every element where f turns out to have a kink or a jump within a step (relu at 0). Otherwise such an
  /// element fails, and the text says so.
  bool skip_kinks = false;
  /// Whether gradients that are all zero may pass. They prove nothing: a gradient that was never recorded is zero
  /// too.
  bool may_be_zero = false;
};

/// What gradcheck found: true when everything agreed and there was something to check.
struct GradcheckReport {
  explicit operator bool() const { return ok; }
  /// For each argument that disagrees: how many of its elements do, the index of the worst one, the tape's value
  /// and the differences' value, and the likely cause where the values show one.
  std::string text() const { return message; }

  bool ok = true;
  std::int64_t checked = 0;  // elements
  std::int64_t skipped = 0;  // elements at kinks
  double worst = 0;          // the largest |got - expected|, divided by what is allowed
  std::string message;
};

namespace detail {
// A function of tensors, called with a vector of them; f outlives this. A std::function for each f would compile seven
// times as much.
struct CheckedFunction {
  const void* f;
  Tensor<double> (*call)(const void* f, const std::vector<Tensor<double>>& x);
  Tensor<double> operator()(const std::vector<Tensor<double>>& x) const { return call(f, x); }
};
// f takes the vector itself where there is no i.
template <class F, std::size_t... i> CheckedFunction checked(const F& f, std::index_sequence<i...>) {
  return {&f, [](const void* g, const std::vector<Tensor<double>>& x) -> Tensor<double> {
            if constexpr (sizeof...(i) == 0)
              return (*static_cast<const F*>(g))(x);
            else
              return (*static_cast<const F*>(g))(x[i]...);
          }};
}
/// `taken`: how many tensors f takes; 0 where it takes a vector of them.
GradcheckReport gradcheck(const CheckedFunction& f, std::size_t taken, const std::vector<Named<double>>& inputs,
                          const GradcheckOptions& options);

// How many tensors f takes, sizeof...(i) or more; 0 when it takes none, but a vector of them.
template <class F, std::size_t... i> constexpr std::size_t arity(std::index_sequence<i...>) {
  if constexpr (std::is_invocable_v<const F&, std::enable_if_t<i + 1 != 0, const Tensor<double>&>...>)
    return sizeof...(i);
  else if constexpr (sizeof...(i) == 8)
    return 0;
  else
    return arity<F>(std::make_index_sequence<sizeof...(i) + 1>());
}
}  // namespace detail

/// Compares the tape's gradients of f with central differences. f takes the inputs, as tensors or as one
/// std::vector of them, and returns a tensor; a result with several elements is weighted by a random dy. f must be
/// the same function at each call (no fresh dropout). Throws ValueError for options out of range.
///   CHECK(gradcheck([](auto a, auto b) { return matmul(a, b); }, {{"a", a}, {"b", b}}, {.order = 2}));
template <class F>
GradcheckReport gradcheck(F f, const std::vector<Named<double>>& inputs, const GradcheckOptions& options = {}) {
  constexpr std::size_t n = detail::arity<F>(std::index_sequence<0>());
  return detail::gradcheck(detail::checked(f, std::make_index_sequence<n>()), n, inputs, options);
}

}  // namespace tapehead
