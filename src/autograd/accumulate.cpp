#include "tapehead/autograd/accumulate.hpp"

#include "autograd/recorded.hpp"
#include "kernels/fold.hpp"
#include "kernels/require.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

using detail::recorded;

const Op add_op{"add", "c = a + b", "da = dc, db = dc", "broadcast"};
template <class T> Numeric<T> add(const Tensor<T>& a, const Like<T>& b) {
  auto c =
      detail::map<T>("add", a, b, [](T x, T y) { return detail::wrapped(x, y, [](auto u, auto v) { return u + v; }); });
  return recorded(add_op, std::move(c), wrt(a, [](const auto& dc) { return dc; }),
                  wrt(b, [](const auto& dc) { return dc; }));
}

const Op sum_to_op{"sum_to", "y = x summed to a smaller shape", "dx = dy, repeated", "the shape that is given"};
template <class T> Real<T> sum_to(const Tensor<T>& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  require<ShapeError>(broadcasts_to(shape, x.shape()),
                      "sum_to: shape {} cannot be summed to {}, which does not broadcast to it", x.shape(), shape);
  kernels::FoldAxes axes;
  const int lead = x.rank() - shape.rank();
  for (int axis = 0; axis < x.rank(); ++axis)
    axes.add(x.shape()[axis], x.strides()[axis], axis < lead || shape[axis - lead] == 1);
  Buffer<T> y(shape, "sum_to");
  kernels::fold_sum(axes, x.data(), kernels::write_to(y.data(), std::identity()));
  return record(sum_to_op, Tensor<T>(std::move(y)),
                wrt(x, [from = x.shape()](const auto& dy) { return broadcast_to(dy, from); }));
}

// backward() sums the gradient of a broadcast tensor to the tensor's own shape, so the pullback has nothing to do.
const Op broadcast_to_op{"broadcast_to", "y = x repeated along axes of size 1", "dx = dy summed over them",
                         "the shape that is given"};
template <class E> Tensor<E> broadcast_to(const Tensor<E>& x, const Shape& shape) {
  require<ShapeError>(broadcasts_to(x.shape(), shape),
                      "broadcast_to: shape {} does not broadcast to {}; aligned from the right, each size must be "
                      "equal, or 1 in the tensor",
                      x.shape(), shape);
  shape.numel("broadcast_to");
  return recorded(broadcast_to_op, x.view(shape, broadcast_strides(x.shape(), x.strides(), shape), x.data()),
                  wrt(x, [](const auto& dy) { return dy; }));
}

#define TAPEHEAD_ADD(T) template Tensor<T> add(const Tensor<T>&, const Tensor<T>&);
#define TAPEHEAD_SUM_TO(T) template Tensor<T> sum_to(const Tensor<T>&, const Shape&);
#define TAPEHEAD_BROADCAST(E) template Tensor<E> broadcast_to(const Tensor<E>&, const Shape&);
TAPEHEAD_REALS(TAPEHEAD_ADD)
TAPEHEAD_ADD(std::int64_t)
TAPEHEAD_REALS(TAPEHEAD_SUM_TO)
TAPEHEAD_ELEMENTS(TAPEHEAD_BROADCAST)

}  // namespace tapehead
