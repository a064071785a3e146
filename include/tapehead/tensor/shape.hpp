#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace tapehead {

inline constexpr int max_rank = 6;

/// The sizes of a tensor's axes (or their strides), outermost first: at most six numbers, kept in place.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : Shape(sizes.begin(), sizes.end()) {}
  explicit Shape(const std::vector<std::int64_t>& sizes) : Shape(sizes.data(), sizes.data() + sizes.size()) {}
  /// Throws ShapeError when there are more than max_rank sizes.
  Shape(const std::int64_t* first, const std::int64_t* last);

  int rank() const { return rank_; }
  /// The size of axis 0 … rank - 1. Throws IndexError for any other; Tensor::size(-1) counts from the end.
  std::int64_t operator[](int axis) const { return sizes_[checked(axis)]; }
  std::int64_t& operator[](int axis) { return sizes_[checked(axis)]; }
  const std::int64_t* begin() const { return sizes_; }
  const std::int64_t* end() const { return sizes_ + rank_; }

  /// The number of elements. Throws ShapeError, naming `op`, on a negative size, or where the count passes
  /// 2^63 - 1.
  std::int64_t numel(const char* op = "shape") const;
  /// "(2, 3)", "(5,)", "()": as NumPy writes them.
  std::string str() const;

  /// This shape with one more size before `axis` (0 … rank), or without the size at `axis`.
  Shape with(int axis, std::int64_t size) const;
  Shape without(int axis) const;
  /// This shape with the size at `axis` replaced.
  Shape replaced(int axis, std::int64_t size) const;

  friend bool operator==(const Shape& a, const Shape& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  int checked(int axis) const {
    if (static_cast<unsigned>(axis) >= static_cast<unsigned>(rank_)) [[unlikely]]
      raise_axis(axis);
    return axis;
  }
  [[noreturn]] void raise_axis(int axis) const;
  std::int64_t sizes_[max_rank] = {};
  int rank_ = 0;
};

/// Strides are counted in elements; 0 on a broadcast axis, negative on a flipped one.
using Strides = Shape;

/// Strides of a shape stored row after row, the last axis without gaps.
Strides row_major(const Shape& shape);
bool is_row_major(const Shape& shape, const Strides& strides);

/// Maps an axis -rank … rank-1 to 0 … rank-1; throws IndexError naming `op` and `shape`.
int normalize_axis(const char* op, int axis, const Shape& shape);

/// The axes a reduction runs over: all of them when none is named, one, or a list.
class Axes {
 public:
  Axes() = default;
  Axes(int axis) : list_{axis}, all_(false) {}
  Axes(std::initializer_list<int> axes) : list_(axes), all_(axes.size() == 0) {}
  explicit Axes(std::vector<int> axes) : list_(std::move(axes)), all_(false) {}

  /// One bool an axis of `shape`: reduced or not. Throws IndexError on an axis outside the shape and
  /// ValueError on one named twice.
  std::vector<bool> mask(const char* op, const Shape& shape) const;

 private:
  std::vector<int> list_;
  bool all_ = true;
};

/// The shape that both broadcast to, aligned from the right (NumPy's rule: equal, or one of them 1).
/// Throws ShapeError naming `op` and both shapes.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);
/// True where `from` broadcasts to exactly `to`.
bool broadcasts_to(const Shape& from, const Shape& to);
/// Strides that walk a tensor of this shape as if it had the larger shape `to`: 0 on each repeated axis.
Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to);

}  // namespace tapehead
