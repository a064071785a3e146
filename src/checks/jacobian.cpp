#include "tapehead/checks/jacobian.hpp"

#include "kernels/require.hpp"
#include "tapehead/ops/join.hpp"

namespace tapehead::detail {

template <class T> Tensor<T> gradient_of(const Tape<T>& tape, const Tensor<T>& y, const Tensor<T>& x) {
  require<GradientError>(y.numel() == 1, "hessian: f's result has shape {}; sum it, or call jacobian", y.shape());
  return tape.knows(y) ? tape.backward(y)[x] : zeros_like(x);
}

template <class T> Tensor<T> jacobian_of(const Tape<T>& tape, const Tensor<T>& y, const Tensor<T>& x) {
  require<ShapeError>(y.rank() + x.rank() <= max_rank,
                      "jacobian: of {} by {} it would have {} axes, more than {}: reshape x or f's result", y.shape(),
                      x.shape(), y.rank() + x.rank(), max_rank);
  Shape shape = y.shape();
  for (const std::int64_t size : x.shape()) shape = shape.with(shape.rank(), size);
  if (!tape.knows(y) || y.numel() == 0) return zeros<T>(shape);
  std::vector<Tensor<T>> rows;
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    std::vector<T> dy(static_cast<std::size_t>(y.numel()));
    dy[static_cast<std::size_t>(i)] = 1;
    rows.push_back(reshape(tape.backward(y, from_vector(dy, y.shape()))[x], {x.numel()}));
  }
  return reshape(stack(rows), shape);
}

#define TAPEHEAD_JACOBIAN(T)                                                          \
  template Tensor<T> gradient_of(const Tape<T>&, const Tensor<T>&, const Tensor<T>&); \
  template Tensor<T> jacobian_of(const Tape<T>&, const Tensor<T>&, const Tensor<T>&);
TAPEHEAD_REALS(TAPEHEAD_JACOBIAN)

}  // namespace tapehead::detail
