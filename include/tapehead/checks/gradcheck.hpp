#pragma once
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapehead/autograd/tape.hpp"

// Is a gradient right? The tape's answer beside central differences in double, element by element or along
// random directions, for first and second derivatives; and what a wrong one looks most like. On top: jacobian
// and hessian.

namespace tapehead {

struct GradcheckOptions {
  /// 2: the derivatives of the gradients too (by nesting tapes), with respect to the inputs and to the
  /// arriving "dy".
  int order = 1;
  /// Of the central difference: 2 (its error shrinks with h²) or 4 (with h⁴).
  int points = 2;
  /// h, to be multiplied by max(1, |x|) and rounded to powers of two, so that x + h is exact. 0 takes the one
  /// where rounding and truncation balance: 2⁻¹⁷ for 2 points, 2⁻¹⁰ for 4.
  double step = 0;
  /// Allowed |got - expected| at first and at second order, as a share of the largest gradient of the
  /// argument; what the differences cannot resolve (a few ε |f| / h) comes on top. Differences of smooth
  /// functions of moderate size are good to 1e-9 or so: 1e-7 leaves room, and second derivatives some more.
  double tolerance = 1e-7;
  double tolerance2 = 1e-5;
  /// Input values at which f has a kink (relu: {0}). Elements within 4 steps of one are left out.
  std::vector<double> avoid = {};
  /// Leaves out every element where f turns out to have a kink or a jump within a step. Otherwise such an
  /// element fails, and the text says so.
  bool skip_kinks = false;
  /// 0: every element. n: that many random directions for each argument, each costing two evaluations
  /// whatever the tensor's size; a wrong one is narrowed down to an element.
  int directions = 0;
  /// Whether gradients that are all zero may pass. They prove nothing: so would a gradient that was never
  /// recorded.
  bool may_be_zero = false;
  std::uint64_t seed = 1;
};

/// What gradcheck found: true when everything agreed and there was something to check.
class GradcheckReport {
 public:
  explicit operator bool() const { return ok; }
  /// For each argument that disagrees: its name, how much of it, the worst index, what the tape gave, what
  /// was expected and the likeliest cause.
  const std::string& text() const { return message; }

  bool ok = false;
  std::int64_t checked = 0;  // elements or directions
  std::int64_t skipped = 0;  // at kinks
  double worst = 0;          // the largest |got - expected|, as a share of what is allowed
  std::string message;
};

namespace detail {
// A function of i tensors, or of a vector of them where there is no i; f outlives this. A std::function for
// each f would compile seven times as much.
class CheckedFunction {
 public:
  template <class F, std::size_t... i>
  CheckedFunction(const F& f, std::index_sequence<i...>) : f_(&f), call_(call<F, i...>) {}
  Tensor<double> operator()(const std::vector<Tensor<double>>& x) const { return call_(f_, x); }

 private:
  template <class F, std::size_t... i>
  static Tensor<double> call(const void* f, const std::vector<Tensor<double>>& x) {
    if constexpr (sizeof...(i) == 0)
      return (*static_cast<const F*>(f))(x);
    else
      return (*static_cast<const F*>(f))(x[i]...);
  }
  const void* f_;
  Tensor<double> (*call_)(const void*, const std::vector<Tensor<double>>&);
};
GradcheckReport gradcheck(const CheckedFunction& f, const std::vector<Named<double>>& inputs,
                          const GradcheckOptions& options);

template <class F, std::size_t... i>
constexpr bool takes(std::index_sequence<i...>) {
  return std::is_invocable_v<const F&, std::enable_if_t<i + 1 != 0, const Tensor<double>&>...>;
}
/// How many tensors f takes; 0 when it takes none, but a vector of them.
template <class F, std::size_t n = 1>
constexpr std::size_t arity() {
  if constexpr (n > 8)
    return 0;
  else if constexpr (takes<F>(std::make_index_sequence<n>()))
    return n;
  else
    return arity<F, n + 1>();
}
void check_arity(std::size_t taken, std::size_t given);

template <class T>
Tensor<T> jacobian_of(const Tape<T>& tape, const Tensor<T>& y, const Tensor<T>& x);
template <class T>
Tensor<T> gradient_of(const Tape<T>& tape, const Tensor<T>& y, const Tensor<T>& x);
}  // namespace detail

/// Compares the tape's gradients of f with central differences. f takes the inputs, as tensors or as one
/// std::vector of them, and gives a tensor; one with several elements is weighted by a random dy. It has to
/// be the same function each time (no fresh dropout).
///   CHECK(gradcheck([](auto a, auto b) { return matmul(a, b); }, {{"a", a}, {"b", b}}, {.order = 2}));
template <class F>
GradcheckReport gradcheck(const F& f, const std::vector<Named<double>>& inputs,
                          const GradcheckOptions& options = {}) {
  if constexpr (std::is_function_v<F>) {
    return gradcheck(&f, inputs, options);
  } else {
    constexpr std::size_t n = detail::arity<F>();
    if constexpr (n != 0) detail::check_arity(n, inputs.size());
    return detail::gradcheck({f, std::make_index_sequence<n>()}, inputs, options);
  }
}

/// ∂yᵢ/∂xⱼ of y = f(x), of shape (y's shape, x's shape): one backward pass for each element of y. On outer
/// tapes it is recorded, and differentiable. Throws ShapeError where the two ranks together pass six.
template <class T, class F>
Tensor<T> jacobian(const F& f, const Tensor<T>& x) {
  Tape<T> tape;
  tape.watch(x);
  return detail::jacobian_of<T>(tape, f(x), x);
}

/// ∂²y/∂xᵢ∂xⱼ of y = f(x), which must have one element: the Jacobian of the gradient, of shape (x's shape,
/// x's shape).
template <class T, class F>
Tensor<T> hessian(const F& f, const Tensor<T>& x) {
  return jacobian(
      [&f](const Tensor<T>& at) {
        Tape<T> tape;
        tape.watch(at);
        return detail::gradient_of<T>(tape, f(at), at);
      },
      x);
}

}  // namespace tapehead
