#pragma once
// Random programs of operations: what they are made of, and how a step is drawn. A plain interpreter that
// loops over index tuples runs them beside the library, of which it knows nothing but the names.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tapehead/tensor/tensor.hpp"

namespace graphs {

using tapehead::Shape;
using tapehead::Tensor;
using Index = std::vector<std::int64_t>;

/// Numbers in row-major order.
struct Array {
  explicit Array(const Shape& s = {}) : shape(s), data(static_cast<std::size_t>(s.numel())) {}
  std::size_t flat(const Index& at) const {
    std::int64_t i = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) i = i * shape[axis] + at[static_cast<std::size_t>(axis)];
    return static_cast<std::size_t>(i);
  }
  double& operator()(const Index& at) { return data[flat(at)]; }
  double operator()(const Index& at) const { return data[flat(at)]; }
  /// As if broadcast: from the right, index 0 on axes of size 1.
  double seen(const Index& at) const {
    Index own(static_cast<std::size_t>(shape.rank()));
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::int64_t want = at[at.size() - own.size() + i];
      own[i] = shape[static_cast<int>(i)] == 1 ? 0 : want;
    }
    return (*this)(own);
  }
  Shape shape;
  std::vector<double> data;
};

/// f(index) for every index tuple of a shape, in row-major order.
template <class F> void each(const Shape& shape, const F& f) {
  if (shape.numel() == 0) return;
  Index at(static_cast<std::size_t>(shape.rank()));
  for (;;) {
    f(static_cast<const Index&>(at));
    int axis = shape.rank() - 1;
    for (; axis >= 0 && ++at[static_cast<std::size_t>(axis)] == shape[axis]; --axis)
      at[static_cast<std::size_t>(axis)] = 0;
    if (axis < 0) return;
  }
}

struct Kind;

/// One step: a leaf with its values, or an operation on earlier steps.
struct Node {
  const Kind* kind = nullptr;  // none: a leaf
  std::vector<int> in;         // earlier nodes
  Index ints;                  // axes, sizes, bounds
  Shape constant_shape;        // of an index or a mask
  Index constants;
  std::string text;  // an equation
  Array value;       // at the leaves' values, by the interpreter
};
/// The last node is the result.
using Program = std::vector<Node>;

/// Draws a step. It may put new leaves into the program first.
class Chooser {
 public:
  Chooser(Program& p, std::mt19937_64& r) : program(p), random_(r) {}
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  double real() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  /// A node, more often a late one.
  int any() { return static_cast<int>(std::max({below(size()), below(size()), below(size()), below(size())})); }
  int leaf(const Shape& shape);
  Shape shape();
  const Shape& shape_of(int node) const { return program[static_cast<std::size_t>(node)].value.shape; }
  std::int64_t size() const { return static_cast<std::int64_t>(program.size()); }

  Program& program;

 private:
  std::mt19937_64& random_;
};

struct Kind {
  using Propose = bool (*)(Chooser&, Node&);
  using Interpret = Array(const Node&, const std::vector<const Array*>&);
  using Call = Tensor<double>(const Node&, const std::vector<Tensor<double>>&);

  std::string name;
  std::string source;  // C++: $a $b are inputs, $0 $1 integers, $* all of them, $i an index, $m a mask, $t the text
  Propose propose;
  std::function<Interpret> interpret;
  std::function<Call> call;
  bool (*allowed)(double) = nullptr;  // what elementwise kinds ask of each element
};

inline int Chooser::leaf(const Shape& shape) {
  Node node;
  node.value = Array(shape);
  for (double& v : node.value.data) v = (0.1 + 1.4 * real()) * (one_in(2) ? 1 : -1);
  program.push_back(node);
  return static_cast<int>(size()) - 1;
}

inline Shape Chooser::shape() {
  static constexpr std::int64_t sizes[] = {1, 1, 2, 2, 3, 3, 3, 4, 5, 7};
  Shape s;
  for (std::int64_t rank = below(4); s.rank() < rank;) s = s.with(0, one_in(40) ? 0 : sizes[below(10)]);
  return s;
}

}  // namespace graphs
