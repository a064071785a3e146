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
  std::int64_t known = 1;
  for (int axis = 0; axis < to.rank(); ++axis) {
    if (to[axis] == -1 && open < 0)
      open = axis;
    else if (to[axis] == -1)
      raise<ShapeError>("reshape: {} leaves two sizes open; only one may be -1", to);
  }
  if (open >= 0) {
    known = to.without(open).numel();
    if (known == 0 || count % known != 0)
      raise<ShapeError>("reshape: {} elements of shape {} do not divide into {}", count, from, to);
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
      if (expected == 0 && x.numel() != 0 && axis > old_axis) return false;  // a broadcast axis inside a run
    }
    for (int axis = new_end - 1; axis >= new_axis; --axis) strides[axis] = step, step *= to[axis];
    old_axis = old_end, new_axis = new_end;
  }
  return true;
}

}  // namespace

const Op reshape_op{"reshape", "y = x under another shape", "dx = dy under x's shape"};
template <class E> Tensor<E> reshape(const Tensor<E>& x, const Shape& to) {
  const Shape shape = resolve(x.shape(), to);
  Strides strides;
  const bool viewed = view_strides(x, shape, strides);
  const Tensor<E> from = viewed ? x : detail::copied(x);
  auto y = from.view(shape, viewed ? strides : row_major(shape), from.data());
  return recorded(reshape_op, std::move(y), wrt(x, [from = x.shape()](const auto& dy) { return reshape(dy, from); }));
}

const Op clone_op{"clone", "y = x, copied", "dx = dy"};
template <class E> Tensor<E> clone(const Tensor<E>& x) {
  return recorded(clone_op, detail::copied(x), wrt(x, [](const auto& dy) { return dy; }));
}

const Op transpose_op{"transpose", "y = x with two axes swapped", "dx = dy with the same two swapped"};
template <class E> Tensor<E> transpose(const Tensor<E>& x, int axis0, int axis1) {
  axis0 = normalize_axis("transpose", axis0, x.shape());
  axis1 = normalize_axis("transpose", axis1, x.shape());
  Shape shape = x.shape();
  Strides strides = x.strides();
  std::swap(shape[axis0], shape[axis1]);
  std::swap(strides[axis0], strides[axis1]);
  return recorded(transpose_op, x.view(shape, strides, x.data()),
                  wrt(x, [axis0, axis1](const auto& dy) { return transpose(dy, axis0, axis1); }));
}

const Op permute_op{"permute", "y = x with its axes in another order", "dx = dy with its axes put back"};
template <class E> Tensor<E> permute(const Tensor<E>& x, const std::vector<int>& axes) {
  if (static_cast<int>(axes.size()) != x.rank())
    raise<ShapeError>("permute: {} axes for shape {}; name each of its {} once", axes.size(), x.shape(), x.rank());
  Axes(axes).mask("permute", x.shape());
  Shape shape = x.shape(), back = x.shape();
  Strides strides = x.strides();
  for (int i = 0; i < x.rank(); ++i) {
    const int from = normalize_axis("permute", axes[static_cast<std::size_t>(i)], x.shape());
    shape[i] = x.shape()[from], strides[i] = x.strides()[from], back[from] = i;
  }
  return recorded(permute_op, x.view(shape, strides, x.data()),
                  wrt(x, [back](const auto& dy) { return permute(dy, std::vector<int>(back.begin(), back.end())); }));
}

const Op slice_op{"slice", "y = x[start:stop:step] along an axis", "dx = zeros with dy at those positions"};
template <class E>
Tensor<E> slice(const Tensor<E>& x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
  axis = normalize_axis("slice", axis, x.shape());
  if (step <= 0) raise<ValueError>("slice: step {}; it must be positive (flip() turns an axis round)", step);
  const std::int64_t size = x.shape()[axis];
  const auto bound = [size](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size); };
  const std::int64_t first = bound(start), count = std::max<std::int64_t>(0, bound(stop) - first);
  const std::int64_t taken = count == 0 ? 0 : (count - 1) / step + 1;
  const Strides strides = x.strides().replaced(axis, taken > 1 ? x.strides()[axis] * step : x.strides()[axis]);
  const E* data = taken == 0 ? x.data() : x.data() + first * x.strides()[axis];
  return recorded(
      slice_op, x.view(x.shape().replaced(axis, taken), strides, data),
      wrt(x, [from = x.shape(), axis, first, step](const auto& dy) { return unslice(dy, from, axis, first, step); }));
}

const Op unslice_op{"unslice", "y = zeros with x at positions start, start + step, …", "dx = those positions of dy"};
template <class E>
Tensor<E> unslice(const Tensor<E>& x, const Shape& shape, int axis, std::int64_t start, std::int64_t step) {
  axis = normalize_axis("unslice", axis, shape);
  const std::int64_t taken = x.rank() == shape.rank() ? x.shape()[axis] : -1;
  if (taken < 0 || x.shape() != shape.replaced(axis, taken) || step <= 0 || start < 0 ||
      (taken > 0 && (start >= shape[axis] || taken - 1 > (shape[axis] - 1 - start) / step)))
    raise<ShapeError>("unslice: shape {} does not fit into {} along axis {} from {} by {}", x.shape(), shape, axis,
                      start, step);
  auto y = zeros<E>(shape);
  const Strides strides = taken > 1 ? y.strides().replaced(axis, y.strides()[axis] * step) : y.strides();
  E* out = const_cast<E*>(y.data()) + (taken == 0 ? 0 : start * y.strides()[axis]);  // y is not shared yet
  detail::copy_to(out, strides, x);
  return recorded(unslice_op, std::move(y), wrt(x, [axis, start, step, taken](const auto& dy) {
                    return taken == 0 ? slice(dy, axis, 0, 0)
                                      : slice(dy, axis, start, start + (taken - 1) * step + 1, step);
                  }));
}

const Op select_op{"select", "y = x[i] along an axis", "dx = zeros with dy at i"};
template <class E> Tensor<E> select(const Tensor<E>& x, int axis, std::int64_t index) {
  axis = normalize_axis("select", axis, x.shape());
  const std::int64_t size = x.shape()[axis];
  if (index < -size || index >= size)
    raise<IndexError>("select: index {} on axis {} of shape {}; it must be in {} to {}", index, axis, x.shape(), -size,
                      size - 1);
  const std::int64_t at = index < 0 ? index + size : index;
  auto y = x.view(x.shape().without(axis), x.strides().without(axis), x.data() + at * x.strides()[axis]);
  return recorded(select_op, std::move(y), wrt(x, [from = x.shape(), axis, at](const auto& dy) {
                    return unslice(unsqueeze(dy, axis), from, axis, at);
                  }));
}

const Op flip_op{"flip", "y = x in reverse along an axis", "dx = dy in reverse"};
template <class E> Tensor<E> flip(const Tensor<E>& x, int axis) {
  axis = normalize_axis("flip", axis, x.shape());
  const std::int64_t step = x.strides()[axis];
  const E* last = x.numel() == 0 ? x.data() : x.data() + (x.shape()[axis] - 1) * step;
  return recorded(flip_op, x.view(x.shape(), x.strides().replaced(axis, -step), last),
                  wrt(x, [axis](const auto& dy) { return flip(dy, axis); }));
}

const Op unsqueeze_op{"unsqueeze", "y = x with a new axis of size 1", "dx = dy without it"};
template <class E> Tensor<E> unsqueeze(const Tensor<E>& x, int axis) {
  if (axis < -x.rank() - 1 || axis > x.rank())
    raise<IndexError>("unsqueeze: axis {} for shape {}; it must be in {} to {}", axis, x.shape(), -x.rank() - 1,
                      x.rank());
  if (axis < 0) axis += x.rank() + 1;
  return recorded(unsqueeze_op, x.view(x.shape().with(axis, 1), x.strides().with(axis, 0), x.data()),
                  wrt(x, [axis](const auto& dy) { return squeeze(dy, axis); }));
}

const Op squeeze_op{"squeeze", "y = x without an axis of size 1", "dx = dy with it"};
template <class E> Tensor<E> squeeze(const Tensor<E>& x, int axis) {
  axis = normalize_axis("squeeze", axis, x.shape());
  if (x.shape()[axis] != 1)
    raise<ShapeError>("squeeze: axis {} of shape {} has size {}; only an axis of size 1 can go", axis, x.shape(),
                      x.shape()[axis]);
  return recorded(squeeze_op, x.view(x.shape().without(axis), x.strides().without(axis), x.data()),
                  wrt(x, [axis](const auto& dy) { return unsqueeze(dy, axis); }));
}

// The members, here because only from here on is recording known.
template <class E> Tensor<E> Tensor<E>::reshape(const Shape& to) const { return tapehead::reshape(*this, to); }
template <class E> Tensor<E> Tensor<E>::transpose(int axis0, int axis1) const {
  return tapehead::transpose(*this, axis0, axis1);
}
template <class E> Tensor<E> Tensor<E>::permute(const std::vector<int>& axes) const {
  return tapehead::permute(*this, axes);
}
template <class E>
Tensor<E> Tensor<E>::slice(int axis, std::int64_t start, std::int64_t stop, std::int64_t step) const {
  return tapehead::slice(*this, axis, start, stop, step);
}
template <class E> Tensor<E> Tensor<E>::select(int axis, std::int64_t index) const {
  return tapehead::select(*this, axis, index);
}
template <class E> Tensor<E> Tensor<E>::unsqueeze(int axis) const { return tapehead::unsqueeze(*this, axis); }
template <class E> Tensor<E> Tensor<E>::squeeze(int axis) const { return tapehead::squeeze(*this, axis); }
template <class E> Tensor<E> Tensor<E>::T() const {
  if (rank() != 2)
    raise<ShapeError>("T: shape {}; T() transposes a matrix (rank 2), mT(x) the last two axes of any rank", shape());
  return tapehead::transpose(*this, 0, 1);
}

#define TAPEHEAD_VIEWS(E)                                                                      \
  template Tensor<E> reshape(const Tensor<E>&, const Shape&);                                  \
  template Tensor<E> clone(const Tensor<E>&);                                                  \
  template Tensor<E> transpose(const Tensor<E>&, int, int);                                    \
  template Tensor<E> permute(const Tensor<E>&, const std::vector<int>&);                       \
  template Tensor<E> slice(const Tensor<E>&, int, std::int64_t, std::int64_t, std::int64_t);   \
  template Tensor<E> unslice(const Tensor<E>&, const Shape&, int, std::int64_t, std::int64_t); \
  template Tensor<E> select(const Tensor<E>&, int, std::int64_t);                              \
  template Tensor<E> flip(const Tensor<E>&, int);                                              \
  template Tensor<E> unsqueeze(const Tensor<E>&, int);                                         \
  template Tensor<E> squeeze(const Tensor<E>&, int);                                           \
  template Tensor<E> Tensor<E>::reshape(const Shape&) const;                                   \
  template Tensor<E> Tensor<E>::transpose(int, int) const;                                     \
  template Tensor<E> Tensor<E>::T() const;                                                     \
  template Tensor<E> Tensor<E>::permute(const std::vector<int>&) const;                        \
  template Tensor<E> Tensor<E>::slice(int, std::int64_t, std::int64_t, std::int64_t) const;    \
  template Tensor<E> Tensor<E>::select(int, std::int64_t) const;                               \
  template Tensor<E> Tensor<E>::unsqueeze(int) const;                                          \
  template Tensor<E> Tensor<E>::squeeze(int) const;
TAPEHEAD_VIEWS(float)
TAPEHEAD_VIEWS(double)
TAPEHEAD_VIEWS(bool)
TAPEHEAD_VIEWS(std::int64_t)

}  // namespace tapehead
