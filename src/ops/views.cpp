#include "tapehead/ops/views.hpp"

#include <algorithm>

#include "autograd/recorded.hpp"
#include "kernels/require.hpp"
#include "tensor/copy.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

using detail::recorded;

namespace {

Shape resolve(const Shape& from, Shape to) {
  const std::int64_t count = from.numel();
  int open = -1;
  for (int axis = 0; axis < to.rank(); ++axis) {
    if (to[axis] != -1) continue;
    require<ShapeError>(open < 0, "reshape: {} leaves two sizes open; only one may be -1", to);
    open = axis;
  }
  if (open >= 0) {
    const std::int64_t known = to.without(open).numel();
    require<ShapeError>(known != 0 && count % known == 0, "reshape: {} elements of shape {} do not divide into {}",
                        count, from, to);
    to[open] = count / known;
  } else if (to.numel() != count) {
    raise<ShapeError>("reshape: shape {} has {} elements and {} has {}; they must be equal", from, count, to,
                      to.numel());
  }
  return to;
}

// Strides that walk `x` in row-major order under the new shape, where there are any. Both shapes are cut into
// runs of equal element count; inside a run the old axes must be stored as one.
template <class E> bool view_strides(const Tensor<E>& x, const Shape& to, Strides& strides) {
  strides = row_major(to);
  if (x.numel() == 0) return true;
  int old_axis = 0, new_axis = 0;
  while (old_axis < x.rank() && new_axis < to.rank()) {
    int old_end = old_axis + 1, new_end = new_axis + 1;
    std::int64_t old_count = x.shape()[old_axis], new_count = to[new_axis];
    while (old_count != new_count)
      old_count < new_count ? old_count *= x.shape()[old_end++] : new_count *= to[new_end++];
    std::int64_t step = 0, expected = 0;
    for (int axis = old_end - 1; axis >= old_axis; --axis) {
      if (x.shape()[axis] == 1) continue;
      if (expected != 0 && x.strides()[axis] != expected) return false;
      if (expected == 0) step = x.strides()[axis];
      expected = x.strides()[axis] * x.shape()[axis];
      if (expected == 0 && axis > old_axis) return false;  // a broadcast axis inside a run
    }
    for (int axis = new_end - 1; axis >= new_axis; --axis) strides[axis] = step, step *= to[axis];
    old_axis = old_end, new_axis = new_end;
  }
  return true;
}

}  // namespace

const Op reshape_op{"reshape", "y = x under another shape", "dx = dy under x's shape", "the shape that is given"};
template <class E> Tensor<E> Tensor<E>::reshape(const Shape& to) const {
  const Shape sizes = resolve(shape(), to);
  Strides steps;
  const bool viewed = view_strides(*this, sizes, steps);
  const Tensor from = viewed ? *this : detail::copied(*this);
  auto y = from.view(sizes, viewed ? steps : row_major(sizes), from.data());
  return recorded(reshape_op, std::move(y), wrt(*this, [x = shape()](const auto& dy) { return dy.reshape(x); }));
}

const Op clone_op{"clone", "y = x, copied", "dx = dy", "elementwise"};
template <class E> Tensor<E> clone(const Tensor<E>& x) {
  return recorded(clone_op, detail::copied(x), wrt(x, [](const auto& dy) { return dy; }));
}

const Op transpose_op{"transpose", "y = x with two axes swapped", "dx = dy with the same two swapped",
                      "(…, m, …, n, …) → (…, n, …, m, …)"};
template <class E> Tensor<E> Tensor<E>::transpose(int axis0, int axis1) const {
  axis0 = normalize_axis("transpose", axis0, shape());
  axis1 = normalize_axis("transpose", axis1, shape());
  Shape sizes = shape();
  Strides steps = strides();
  std::swap(sizes[axis0], sizes[axis1]);
  std::swap(steps[axis0], steps[axis1]);
  return recorded(transpose_op, view(sizes, steps, data()),
                  wrt(*this, [axis0, axis1](const auto& dy) { return dy.transpose(axis0, axis1); }));
}
template <class E> Tensor<E> Tensor<E>::T() const {
  require<ShapeError>(rank() == 2, "T: shape {}; T() transposes a matrix (rank 2), mT(x) the last two axes of any rank",
                      shape());
  return transpose(0, 1);
}

const Op permute_op{"permute", "y = x with its axes in another order", "dx = dy with its axes put back",
                    "x with its sizes in the new order"};
template <class E> Tensor<E> Tensor<E>::permute(const std::vector<int>& axes) const {
  require<ShapeError>(static_cast<int>(axes.size()) == rank(),
                      "permute: {} axes for shape {}; name each of its {} once", axes.size(), shape(), rank());
  Axes(axes).mask("permute", shape());
  Shape sizes = shape(), back = shape();
  Strides steps = strides();
  for (int i = 0; i < rank(); ++i) {
    const int from = normalize_axis("permute", axes[static_cast<std::size_t>(i)], shape());
    sizes[i] = shape()[from], steps[i] = strides()[from], back[from] = i;
  }
  return recorded(permute_op, view(sizes, steps, data()), wrt(*this, [back](const auto& dy) {
                    return dy.permute({back.begin(), back.end()});
                  }));
}

const Op slice_op{"slice", "y = x[start:stop:step] along an axis", "dx = zeros with dy at those positions",
                  "(…, n, …) → (…, taken, …)"};
template <class E>
Tensor<E> Tensor<E>::slice(int axis, std::int64_t start, std::int64_t stop, std::int64_t step) const {
  axis = normalize_axis("slice", axis, shape());
  require<ValueError>(step > 0, "slice: step {}; it must be positive (flip() turns an axis round)", step);
  const std::int64_t size = shape()[axis];
  const auto bound = [size](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size); };
  const std::int64_t first = bound(start), count = std::max<std::int64_t>(0, bound(stop) - first);
  const std::int64_t taken = count == 0 ? 0 : (count - 1) / step + 1;
  const Strides steps = strides().replaced(axis, taken > 1 ? strides()[axis] * step : strides()[axis]);
  const E* from = taken == 0 ? data() : data() + first * strides()[axis];
  const auto pullback = [x = shape(), axis, first, step](const auto& dy) { return unslice(dy, x, axis, first, step); };
  return recorded(slice_op, view(shape().replaced(axis, taken), steps, from), wrt(*this, pullback));
}

const Op unslice_op{"unslice", "y = zeros with x at positions start, start + step, …", "dx = those positions of dy",
                    "(…, taken, …) → (…, n, …)"};
template <class E>
Tensor<E> unslice(const Tensor<E>& x, const Shape& shape, int axis, std::int64_t start, std::int64_t step) {
  axis = normalize_axis("unslice", axis, shape);
  const std::int64_t taken = x.rank() == shape.rank() ? x.shape()[axis] : -1;
  require<ShapeError>(taken >= 0 && x.shape() == shape.replaced(axis, taken) && step > 0 && start >= 0 &&
                          (taken == 0 || (start < shape[axis] && taken - 1 <= (shape[axis] - 1 - start) / step)),
                      "unslice: shape {} does not fit into {} along axis {} from {} by {}", x.shape(), shape, axis,
                      start, step);
  auto y = zeros<E>(shape);
  const Strides strides = taken > 1 ? y.strides().replaced(axis, y.strides()[axis] * step) : y.strides();
  E* out = const_cast<E*>(y.data()) + (taken == 0 ? 0 : start * y.strides()[axis]);  // y is not shared yet
  detail::copy_to(out, strides, x);
  const std::int64_t stop = taken == 0 ? start : start + (taken - 1) * step + 1;
  return recorded(unslice_op, std::move(y),
                  wrt(x, [axis, start, stop, step](const auto& dy) { return slice(dy, axis, start, stop, step); }));
}

const Op select_op{"select", "y = x[i] along an axis", "dx = zeros with dy at i", "(…, n, …) → (…, …)"};
template <class E> Tensor<E> Tensor<E>::select(int axis, std::int64_t index) const {
  axis = normalize_axis("select", axis, shape());
  const std::int64_t size = shape()[axis], at = index < 0 ? index + size : index;
  require<IndexError>(at >= 0 && at < size, "select: index {} on axis {} of shape {}; it must be in {} to {}", index,
                      axis, shape(), -size, size - 1);
  auto y = view(shape().without(axis), strides().without(axis), data() + at * strides()[axis]);
  const auto pullback = [x = shape(), axis, at](const auto& dy) { return unslice(dy.unsqueeze(axis), x, axis, at); };
  return recorded(select_op, std::move(y), wrt(*this, pullback));
}

const Op flip_op{"flip", "y = x in reverse along an axis", "dx = dy in reverse", "(…, n, …) → the same"};
template <class E> Tensor<E> flip(const Tensor<E>& x, int axis) {
  axis = normalize_axis("flip", axis, x.shape());
  const std::int64_t step = x.strides()[axis];
  const E* last = x.numel() == 0 ? x.data() : x.data() + (x.shape()[axis] - 1) * step;
  return recorded(flip_op, x.view(x.shape(), x.strides().replaced(axis, -step), last),
                  wrt(x, [axis](const auto& dy) { return flip(dy, axis); }));
}

const Op unsqueeze_op{"unsqueeze", "y = x with a new axis of size 1", "dx = dy without it", "(…, …) → (…, 1, …)"};
template <class E> Tensor<E> Tensor<E>::unsqueeze(int axis) const {
  require<IndexError>(axis >= -rank() - 1 && axis <= rank(), "unsqueeze: axis {} for shape {}; it must be in {} to {}",
                      axis, shape(), -rank() - 1, rank());
  if (axis < 0) axis += rank() + 1;
  return recorded(unsqueeze_op, view(shape().with(axis, 1), strides().with(axis, 0), data()),
                  wrt(*this, [axis](const auto& dy) { return dy.squeeze(axis); }));
}

const Op squeeze_op{"squeeze", "y = x without an axis of size 1", "dx = dy with it", "(…, 1, …) → (…, …)"};
template <class E> Tensor<E> Tensor<E>::squeeze(int axis) const {
  axis = normalize_axis("squeeze", axis, shape());
  require<ShapeError>(shape()[axis] == 1, "squeeze: axis {} of shape {} has size {}; only an axis of size 1 can go",
                      axis, shape(), shape()[axis]);
  return recorded(squeeze_op, view(shape().without(axis), strides().without(axis), data()),
                  wrt(*this, [axis](const auto& dy) { return dy.unsqueeze(axis); }));
}

#define TAPEHEAD_VIEWS(E)                                                                      \
  template Tensor<E> clone(const Tensor<E>&);                                                  \
  template Tensor<E> unslice(const Tensor<E>&, const Shape&, int, std::int64_t, std::int64_t); \
  template Tensor<E> flip(const Tensor<E>&, int);                                              \
  template Tensor<E> Tensor<E>::reshape(const Shape&) const;                                   \
  template Tensor<E> Tensor<E>::transpose(int, int) const;                                     \
  template Tensor<E> Tensor<E>::T() const;                                                     \
  template Tensor<E> Tensor<E>::permute(const std::vector<int>&) const;                        \
  template Tensor<E> Tensor<E>::slice(int, std::int64_t, std::int64_t, std::int64_t) const;    \
  template Tensor<E> Tensor<E>::select(int, std::int64_t) const;                               \
  template Tensor<E> Tensor<E>::unsqueeze(int) const;                                          \
  template Tensor<E> Tensor<E>::squeeze(int) const;
TAPEHEAD_ELEMENTS(TAPEHEAD_VIEWS)

}  // namespace tapehead
