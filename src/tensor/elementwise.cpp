#include "tensor/elementwise.hpp"

#include "kernels/require.hpp"

namespace tapehead::detail {
namespace {

// Adds an array to a walk whose rank and sizes are set; its strides are in elements.
void add(kernels::Walk& w, const void* data, const Strides& strides, std::int64_t bytes) {
  w.base[w.operands] = static_cast<char*>(const_cast<void*>(data));
  w.bytes[w.operands] = bytes;
  for (int axis = 0; axis < w.rank; ++axis) w.strides[w.operands][axis] = strides[axis] * bytes;
  ++w.operands;
}

kernels::Walk walk_over(const Shape& shape) {
  kernels::Walk w;
  w.rank = shape.rank();
  for (int axis = 0; axis < w.rank; ++axis) w.sizes[axis] = shape[axis];
  return w;
}

}  // namespace

template <class R>
Tensor<R> mapped(const char* op, std::initializer_list<Operand> inputs, kernels::Run run, const void* f) {
  Shape common = inputs.begin()->header.shape;
  bool plain = true;  // all of one shape, without gaps: one call of the loop does it
  for (const Operand& x : inputs) {
    if (x.header.shape != common) common = broadcast_shapes(op, common, x.header.shape), plain = false;
    plain &= x.header.contiguous;
  }
  constexpr std::int64_t one_call = 32'768;  // up to here
  Buffer<R> out(common, op);
  if (plain && out.numel() <= one_call) {
    char* p[kernels::max_operands] = {reinterpret_cast<char*>(out.data())};
    int i = 0;
    for (const Operand& x : inputs) p[++i] = static_cast<char*>(x.header.data);
    run(out.numel(), p, f);
  } else {
    kernels::Walk w = walk_over(common);
    add(w, out.data(), row_major(common), sizeof(R));
    for (const Operand& x : inputs)
      add(w, x.header.data, broadcast_strides(x.header.shape, x.header.strides, common), x.bytes);
    kernels::walk(w, run, f);
  }
  return out;
}

void copy_to(void* out, const Strides& strides, const Operand& x) {
  kernels::Walk w = walk_over(x.header.shape);
  add(w, out, strides, x.bytes);
  add(w, x.header.data, x.header.strides, x.bytes);
  kernels::copy(w);
}

#define TAPEHEAD_MAPPED(E) \
  template Tensor<E> mapped(const char*, std::initializer_list<Operand>, kernels::Run, const void*);
TAPEHEAD_ELEMENTS(TAPEHEAD_MAPPED)

}  // namespace tapehead::detail
