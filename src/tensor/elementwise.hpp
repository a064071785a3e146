#pragma once
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "kernels/walk.hpp"
#include "tapehead/tensor/tensor.hpp"

// Element by element, over tensors that broadcast: an operation brings a small function on numbers, here is
// the loop around it, and elementwise.cpp brings every operand into the form that the loop is compiled for:
// side by side, without gaps.

namespace tapehead::detail {

/// An input of any element type, and the size of an element.
struct Operand {
  template <class E> Operand(const Tensor<E>& x) : header(x.header()), bytes(sizeof(E)) {}
  const Header& header;
  std::int64_t bytes;
};

/// A new tensor of the shape that the inputs broadcast to, filled by `run`. Throws ShapeError naming `op`.
template <class R>
Tensor<R> mapped(const char* op, std::initializer_list<Operand> inputs, kernels::Run run, const void* f);

// A bool is read and written as the byte that it is: loops over bool do not become vectors.
template <class E> using Raw = std::conditional_t<std::is_same_v<E, bool>, unsigned char, E>;

/// f(a, b), where int64 wraps around as unsigned numbers do: signed overflow would be undefined.
template <class T, class F> T wrapped(T a, T b, F f) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  else
    return f(a, b);
}

template <class R, class... A, class F>
void run(std::int64_t n, F f, Raw<R>* __restrict out, const Raw<A>* __restrict... in) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<R>(f(static_cast<A>(in[i])...));
}

template <class R, class F, class... A> Tensor<R> map_all(const char* op, const F& f, const Tensor<A>&... x) {
  return mapped<R>(
      op, {x...},
      [](std::int64_t n, char* const* p, const void* context) {
        [&]<int... I>(std::integer_sequence<int, I...>) {
          run<R, A...>(n, *static_cast<const F*>(context), reinterpret_cast<Raw<R>*>(p[0]),
                       reinterpret_cast<const Raw<A>*>(p[I + 1])...);
        }
        (std::make_integer_sequence<int, sizeof...(A)>{});
      },
      &f);
}

/// y = f(x), f(a, b) or f(a, b, c), where f works on numbers.
template <class R, class A, class F> Tensor<R> map(const char* op, const Tensor<A>& x, const F& f) {
  return map_all<R>(op, f, x);
}
template <class R, class A, class B, class F>
Tensor<R> map(const char* op, const Tensor<A>& a, const Tensor<B>& b, const F& f) {
  return map_all<R>(op, f, a, b);
}
template <class R, class A, class B, class C, class F>
Tensor<R> map(const char* op, const Tensor<A>& a, const Tensor<B>& b, const Tensor<C>& c, const F& f) {
  return map_all<R>(op, f, a, b, c);
}

/// y = f(x), where f works on n numbers side by side, from x to y: the vector functions of kernels/vmath.hpp.
template <class T, class F> Tensor<T> map_runs(const char* op, const Tensor<T>& x, F f) {
  return mapped<T>(
      op, {x},
      [](std::int64_t n, char* const* p, const void* context) {
        (*static_cast<const F*>(context))(n, reinterpret_cast<const T*>(p[1]), reinterpret_cast<T*>(p[0]));
      },
      &f);
}

/// Writes the elements of x to `out`, which is walked by the given strides.
void copy_to(void* out, const Strides& strides, const Operand& x);

}  // namespace tapehead::detail
