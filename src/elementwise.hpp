#pragma once
#include <type_traits>

#include "kernels/walk.hpp"
#include "tapehead/tensor.hpp"

// Element by element, over tensors that broadcast: an operation brings a small function on numbers, and here
// is the loop around it. The row is written so that the compiler can vectorise what is common (every operand
// stored without gaps, or one of them repeated).

namespace tapehead::detail {

template <class E>
E& element(char* p, std::int64_t i, std::int64_t step) {
  return *reinterpret_cast<E*>(p + i * step);
}

template <class F, class R, class A>
void row1(std::int64_t n, char* const* p, const std::int64_t* s, const void* context) {
  const F& f = *static_cast<const F*>(context);
  R* out = reinterpret_cast<R*>(p[0]);
  const A* a = reinterpret_cast<const A*>(p[1]);
  if (s[1] == sizeof(A))
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i]);
  else
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(element<const A>(p[1], i, s[1]));
}

template <class F, class R, class A, class B>
void row2(std::int64_t n, char* const* p, const std::int64_t* s, const void* context) {
  const F& f = *static_cast<const F*>(context);
  R* out = reinterpret_cast<R*>(p[0]);
  const A* a = reinterpret_cast<const A*>(p[1]);
  const B* b = reinterpret_cast<const B*>(p[2]);
  if (s[1] == sizeof(A) && s[2] == sizeof(B)) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  } else if (s[1] == sizeof(A) && s[2] == 0) {
    const B fixed = *b;
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i], fixed);
  } else if (s[1] == 0 && s[2] == sizeof(B)) {
    const A fixed = *a;
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(fixed, b[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = f(element<const A>(p[1], i, s[1]), element<const B>(p[2], i, s[2]));
  }
}

template <class F, class R, class A, class B, class C>
void row3(std::int64_t n, char* const* p, const std::int64_t* s, const void* context) {
  const F& f = *static_cast<const F*>(context);
  R* out = reinterpret_cast<R*>(p[0]);
  for (std::int64_t i = 0; i < n; ++i)
    out[i] =
        f(element<const A>(p[1], i, s[1]), element<const B>(p[2], i, s[2]), element<const C>(p[3], i, s[3]));
}

/// Adds an array to a walk whose rank and sizes are set; its strides are in elements.
template <class E>
void add_operand(kernels::Walk& w, const E* data, const Strides& strides) {
  w.base[w.operands] = reinterpret_cast<char*>(const_cast<E*>(data));
  for (int axis = 0; axis < w.rank; ++axis)
    w.strides[w.operands][axis] = strides[axis] * static_cast<std::int64_t>(sizeof(E));
  ++w.operands;
}
inline kernels::Walk walk_shape(const Shape& shape) {
  kernels::Walk w;
  w.rank = shape.rank();
  for (int axis = 0; axis < w.rank; ++axis) w.sizes[axis] = shape[axis];
  return w;
}

// The walk over one output (fresh, row-major) and its inputs, each seen as the output's shape.
template <class R, class... A>
kernels::Walk walk_over(Buffer<R>& out, const Tensor<A>&... inputs) {
  kernels::Walk w = walk_shape(out.shape());
  add_operand(w, out.data(), row_major(out.shape()));
  (add_operand(w, inputs.data(), broadcast_strides(inputs.shape(), inputs.strides(), out.shape())), ...);
  return w;
}

// Up to here one call of the row is the whole of it: no walk, no threads.
inline constexpr std::int64_t short_row = 32'768;

/// y = f(x) where f works on whole runs: the vector functions of kernels/vmath.hpp. f may be given y for x.
template <class T, class F>
Tensor<T> map_runs(const char* op, const Tensor<T>& x, F f) {
  Buffer<T> y(x.shape(), op);
  const auto row = [](std::int64_t n, char* const* p, const std::int64_t* s, const void* context) {
    T* out = reinterpret_cast<T*>(p[0]);
    const T* in = reinterpret_cast<const T*>(p[1]);
    if (s[1] != sizeof(T)) {
      for (std::int64_t i = 0; i < n; ++i) out[i] = element<const T>(p[1], i, s[1]);
      in = out;
    }
    (*static_cast<const F*>(context))(n, in, out);
  };
  if (x.is_contiguous() && y.numel() <= short_row)
    f(y.numel(), x.data(), y.data());
  else
    kernels::walk(walk_over(y, x), row, &f);
  return y;
}

/// Writes the elements of x to `out`, which is walked by the given strides.
template <class E>
void copy_to(E* out, const Strides& strides, const Tensor<E>& x) {
  const auto same = [](E v) { return v; };
  kernels::Walk w = walk_shape(x.shape());
  add_operand(w, out, strides);
  add_operand(w, x.data(), x.strides());
  const auto row = [](std::int64_t n, char* const* p, const std::int64_t* s, const void* context) {
    if (s[0] == sizeof(E)) return row1<decltype(same), E, E>(n, p, s, context);
    for (std::int64_t i = 0; i < n; ++i) element<E>(p[0], i, s[0]) = element<const E>(p[1], i, s[1]);
  };
  kernels::walk(w, row, &same);
}

template <class R, class A, class F>
Tensor<R> map(const char* op, const Tensor<A>& a, const F& f) {
  Buffer<R> out(a.shape(), op);
  if (a.is_contiguous() && out.numel() <= short_row) {
    char* const p[] = {reinterpret_cast<char*>(out.data()),
                       reinterpret_cast<char*>(const_cast<A*>(a.data()))};
    const std::int64_t s[] = {sizeof(R), sizeof(A)};
    row1<F, R, A>(out.numel(), p, s, &f);
  } else {
    kernels::walk(walk_over(out, a), row1<F, R, A>, &f);
  }
  return out;
}

template <class R, class A, class B, class F>
Tensor<R> map(const char* op, const Tensor<A>& a, const Tensor<B>& b, const F& f) {
  const bool same = a.shape() == b.shape();
  Buffer<R> out(same ? a.shape() : broadcast_shapes(op, a.shape(), b.shape()), op);
  if (same && a.is_contiguous() && b.is_contiguous() && out.numel() <= short_row) {
    char* const p[] = {reinterpret_cast<char*>(out.data()), reinterpret_cast<char*>(const_cast<A*>(a.data())),
                       reinterpret_cast<char*>(const_cast<B*>(b.data()))};
    const std::int64_t s[] = {sizeof(R), sizeof(A), sizeof(B)};
    row2<F, R, A, B>(out.numel(), p, s, &f);
  } else {
    kernels::walk(walk_over(out, a, b), row2<F, R, A, B>, &f);
  }
  return out;
}

template <class R, class A, class B, class C, class F>
Tensor<R> map(const char* op, const Tensor<A>& a, const Tensor<B>& b, const Tensor<C>& c, const F& f) {
  Buffer<R> out(broadcast_shapes(op, broadcast_shapes(op, a.shape(), b.shape()), c.shape()), op);
  kernels::walk(walk_over(out, a, b, c), row3<F, R, A, B, C>, &f);
  return out;
}

}  // namespace tapehead::detail
