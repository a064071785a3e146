#include "tapehead/tensor/shape.hpp"

#include <algorithm>

#include "kernels/require.hpp"

namespace tapehead {

Shape::Shape(const std::int64_t* first, const std::int64_t* last) {
  require<ShapeError>(last - first <= max_rank, "shape: {} axes; a tensor has at most {}", last - first, max_rank);
  rank_ = static_cast<int>(last - first);
  std::copy(first, last, sizes_);
}

void Shape::raise_axis(int axis) const {
  raise<IndexError>("shape: {} has no axis {}; axes are counted from 0, and x.size(-1) counts from the end", *this,
                    axis);
}

std::int64_t Shape::numel(const char* op) const {
  std::int64_t count = 1;
  bool empty = false, overflow = false;
  for (std::int64_t size : *this) {
    require<ShapeError>(size >= 0, "{}: {} has a negative size", op, *this);
    empty |= size == 0;
    overflow |= size != 0 && __builtin_mul_overflow(count, size, &count);
  }
  if (empty) return 0;
  require<ShapeError>(!overflow, "{}: {} has more than 2^63 - 1 elements", op, *this);
  return count;
}

std::string Shape::str() const { return fmt::format("({}{})", fmt::join(begin(), end(), ", "), rank_ == 1 ? "," : ""); }

Shape Shape::with(int axis, std::int64_t size) const {
  require<ShapeError>(rank_ < max_rank, "shape: {} cannot take one more axis; a tensor has at most {}", *this,
                      max_rank);
  Shape wider = *this;
  std::copy_backward(wider.sizes_ + axis, wider.sizes_ + rank_, wider.sizes_ + rank_ + 1);
  wider.sizes_[axis] = size;
  ++wider.rank_;
  return wider;
}

Shape Shape::without(int axis) const {
  Shape narrower = *this;
  std::copy(narrower.sizes_ + axis + 1, narrower.sizes_ + rank_, narrower.sizes_ + axis);
  --narrower.rank_;
  return narrower;
}

Shape Shape::replaced(int axis, std::int64_t size) const {
  Shape other = *this;
  other.sizes_[axis] = size;
  return other;
}

Strides row_major(const Shape& shape) {
  Strides strides = shape;
  std::int64_t step = shape.numel() == 0 ? 0 : 1;  // no elements, no steps: the sizes beside a 0 are not bounded
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

bool is_row_major(const Shape& shape, const Strides& strides) {
  const Strides plain = row_major(shape);
  bool differs = false;
  for (int i = 0; i < shape.rank(); ++i) differs |= shape[i] != 1 && strides[i] != plain[i];
  return !differs || shape.numel() == 0;
}

int normalize_axis(const char* op, int axis, const Shape& shape) {
  const int rank = shape.rank();
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  require<IndexError>(rank > 0, "{}: axis {} of a zero-dimensional tensor, which has no axes", op, axis);
  raise<IndexError>("{}: axis {} is out of range for shape {}; it has axes {} to {}", op, axis, shape, -rank, rank - 1);
}

std::vector<bool> Axes::mask(const char* op, const Shape& shape) const {
  std::vector<bool> reduced(static_cast<std::size_t>(shape.rank()), all_);
  for (int axis : list_) {
    auto at = static_cast<std::size_t>(normalize_axis(op, axis, shape));
    require<ValueError>(!reduced[at], "{}: axis {} is named twice for shape {}; name each once", op, axis, shape);
    reduced[at] = true;
  }
  return reduced;
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  Shape out = a.rank() >= b.rank() ? a : b;
  for (int back = 1; back <= std::min(a.rank(), b.rank()); ++back) {
    const std::int64_t m = a[a.rank() - back], n = b[b.rank() - back];
    require<ShapeError>(m == n || m == 1 || n == 1,
                        "{}: shapes {} and {} do not broadcast: sizes {} and {} meet on axis {}; they must be equal, "
                        "or one of them 1",
                        op, a, b, m, n, -back);
    out[out.rank() - back] = m == 1 ? n : m;
  }
  return out;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  for (int i = 0; i < from.rank(); ++i) {
    const std::int64_t have = from[i], want = to[to.rank() - from.rank() + i];
    if (have != want && have != 1) return false;
  }
  return true;
}

Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to) {
  Strides out = to;
  const int lead = to.rank() - from.rank();
  for (int i = 0; i < to.rank(); ++i) out[i] = i < lead || from[i - lead] == 1 ? 0 : strides[i - lead];
  return out;
}

}  // namespace tapehead
