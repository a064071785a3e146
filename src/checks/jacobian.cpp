#include <fmt/format.h>

#include <algorithm>

#include "tapehead/kernels/error.hpp"
#include "tapehead/checks/gradcheck.hpp"
#include "tapehead/ops/join.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead::detail {

template <class T>
Tensor<T> gradient_of(const Tape<T>& tape, const Tensor<T>& y, const Tensor<T>& x) {
  if (y.numel() != 1)
    throw GradientError(
        fmt::format("hessian: the function's result has shape {}; only one element has a Hessian (jacobian "
                    "takes any shape)",
                    y.shape().str()));
  return tape.knows(y) ? tape.backward(y)[x] : zeros_like(x);
}

template <class T>
Tensor<T> jacobian_of(const Tape<T>& tape, const Tensor<T>& y, const Tensor<T>& x) {
  Shape shape = y.shape();
  if (y.rank() + x.rank() > max_rank)
    throw ShapeError(fmt::format(
        "jacobian: of {} by {} it would have {} axes; a tensor has at most {}: reshape x or f's result",
        y.shape().str(), x.shape().str(), y.rank() + x.rank(), max_rank));
  for (std::int64_t size : x.shape()) shape = shape.with(shape.rank(), size);
  if (!tape.knows(y) || y.numel() == 0) return zeros<T>(shape);
  std::vector<Tensor<T>> rows;
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    Buffer<T> dy(y.shape());
    std::fill_n(dy.data(), dy.numel(), T{});
    dy[i] = 1;
    rows.push_back(reshape(tape.backward(y, Tensor<T>(std::move(dy)))[x], {x.numel()}));
  }
  return reshape(stack(rows), shape);
}

#define TAPEHEAD_GRADCHECK(T)                                                         \
  template Tensor<T> gradient_of(const Tape<T>&, const Tensor<T>&, const Tensor<T>&); \
  template Tensor<T> jacobian_of(const Tape<T>&, const Tensor<T>&, const Tensor<T>&);
TAPEHEAD_GRADCHECK(float)
TAPEHEAD_GRADCHECK(double)

}  // namespace tapehead::detail
