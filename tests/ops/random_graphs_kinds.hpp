#pragma once
// What the kinds of operations share: index tuples with an axis changed, and how steps are proposed.
#include <cmath>

#include "ops/random_graphs.hpp"
#include "tapehead/tapehead.hpp"

namespace graphs {

using namespace tapehead;
using Ints = std::vector<std::int64_t>;
using In = std::vector<const Array*>;
using Xs = std::vector<Tensor<double>>;

/// A kind whose functions capture nothing: as pointers, which compile faster than three std::function.
inline Kind kind(const char* name, const char* source, Kind::Propose propose, Kind::Interpret* interpret,
                 Kind::Call* call) {
  return {name, source, propose, interpret, call};
}

inline int axis_of(const Node& n) { return static_cast<int>(n.ints[0]); }
inline std::size_t u(std::int64_t i) { return static_cast<std::size_t>(i); }
inline Tensor<std::int64_t> index_of(const Node& n) { return from_vector(n.constants, n.constant_shape); }
inline Tensor<bool> mask_of(const Node& n) { return to<bool>(index_of(n)); }
inline std::vector<int> as_axes(const Ints& ints) { return std::vector<int>(ints.begin(), ints.end()); }

inline Index with(Index at, int axis, std::int64_t i) { return at[u(axis)] = i, at; }
inline Index without(Index at, int axis) { return at.erase(at.begin() + axis), at; }
inline Index inserted(Index at, int axis, std::int64_t i) { return at.insert(at.begin() + axis, i), at; }

inline bool any_input(Chooser& c, Node& n) { return n.in = {c.any()}, true; }
inline bool one_axis(Chooser& c, Node& n) {
  n.in = {c.any()};
  const int rank = c.shape_of(n.in[0]).rank();
  if (rank == 0) return false;
  n.ints = {c.below(rank)};
  return true;
}
inline bool full_axis(Chooser& c, Node& n) { return one_axis(c, n) && c.shape_of(n.in[0])[axis_of(n)] > 0; }
inline bool last_axis(Chooser& c, Node& n) {
  return full_axis(c, n) && (n.ints = {c.shape_of(n.in[0]).rank() - 1}, c.shape_of(n.in[0])[axis_of(n)] > 0);
}

inline bool masked(Chooser& c, Node& n) {
  n.constant_shape = c.shape_of(n.in[0]);
  for (int axis = 0; axis < n.constant_shape.rank(); ++axis)
    if (c.one_in(3)) n.constant_shape[axis] = 1;
  for (std::int64_t i = n.constant_shape.numel(); i-- > 0;) n.constants.push_back(c.below(2));
  return true;
}
// A one-dimensional index along the axis, or one of x's rank.
inline bool indexed(Chooser& c, Node& n, bool rows) {
  if (!full_axis(c, n)) return false;
  const Shape& shape = c.shape_of(n.in[0]);
  const int axis = axis_of(n);
  n.constant_shape = rows ? Shape{c.below(5)} : shape.replaced(axis, c.below(5));
  for (std::int64_t i = n.constant_shape.numel(); i-- > 0;) n.constants.push_back(c.below(shape[axis]));
  return true;
}

}  // namespace graphs
