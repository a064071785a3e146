#include "tapehead/autograd/accumulate.hpp"

#include <algorithm>

#include "autograd/recorded.hpp"
#include "kernels/fold.hpp"
#include "kernels/require.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

using detail::recorded;

const Op add_op{"add", "c = a + b", "da = dc, db = dc", "broadcast"};
template <class T> Tensor<T> add(const Tensor<T>& a, const Tensor<T>& b) {
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
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t size = x.shape()[axis], stride = x.strides()[axis];
    if (size == 1) continue;
    axes.innermost_goes = axis < lead || shape[axis - lead] == 1;
    if (axes.innermost_goes)
      axes.gone_sizes[axes.gone_rank] = size, axes.gone_strides[axes.gone_rank++] = stride;
    else
      axes.kept_sizes[axes.kept_rank] = size, axes.kept_strides[axes.kept_rank++] = stride;
  }
  Buffer<T> y(shape, "sum_to");
  kernels::fold_sum(axes, x.data(), [&](const double* sums, std::int64_t n, std::int64_t k) {
    std::transform(sums, sums + n, y.data() + k, [](double total) { return static_cast<T>(total); });
  });
  return record(sum_to_op, Tensor<T>(std::move(y)),
                wrt(x, [from = x.shape()](const auto& dy) { return broadcast_to(dy, from); }));
}

// backward() sums the gradient of a broadcast tensor to the tensor's own shape, so the pullback has nothing to do.
const Op broadcast_to_op{"broadcast_to", "y = x repeated along axes of size 1", "dx = dy summed over them"};
template <class E> Tensor<E> broadcast_to(const Tensor<E>& x, const Shape& shape) {
  require<ShapeError>(broadcasts_to(x.shape(), shape),
                      "broadcast_to: shape {} does not broadcast to {}; aligned from the right, each size must be "
                      "equal, or 1 in the tensor",
                      x.shape(), shape);
  shape.numel("broadcast_to");
  return recorded(broadcast_to_op, x.view(shape, broadcast_strides(x.shape(), x.strides(), shape), x.data()),
                  wrt(x, [](const auto& dy) { return dy; }));
}

template Tensor<float> add(const Tensor<float>&, const Tensor<float>&);
template Tensor<double> add(const Tensor<double>&, const Tensor<double>&);
template Tensor<std::int64_t> add(const Tensor<std::int64_t>&, const Tensor<std::int64_t>&);
template Real<float> sum_to(const Tensor<float>&, const Shape&);
template Real<double> sum_to(const Tensor<double>&, const Shape&);
template Tensor<float> broadcast_to(const Tensor<float>&, const Shape&);
template Tensor<double> broadcast_to(const Tensor<double>&, const Shape&);
template Tensor<bool> broadcast_to(const Tensor<bool>&, const Shape&);
template Tensor<std::int64_t> broadcast_to(const Tensor<std::int64_t>&, const Shape&);

}  // namespace tapehead
