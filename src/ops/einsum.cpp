#include "tapehead/ops/einsum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/matmul.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace {

bool has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

// "ij,jk->ik" as its terms.
struct Equation {
  Equation(const std::string& equation, std::size_t operands) : text(equation) {
    std::string letters = equation;
    letters.erase(std::remove(letters.begin(), letters.end(), ' '), letters.end());
    const std::size_t arrow = letters.find("->");
    if (arrow == std::string::npos) fail("has no \"->\"; write the axes of the result after one");
    if (has(letters, '.')) fail("has \"...\"; write every axis as a letter");
    out = letters.substr(arrow + 2);
    std::string rest = letters.substr(0, arrow) + ",";
    for (std::size_t comma; (comma = rest.find(',')) != std::string::npos; rest = rest.substr(comma + 1))
      in.push_back(rest.substr(0, comma));
    if (in.size() != operands)
      fail(fmt::format("has {} terms before \"->\" for {} tensors", in.size(), operands));
    for (const std::string& term : in) check(term);
    check(out);
    for (char c : out)
      if (std::none_of(in.begin(), in.end(), [c](const std::string& term) { return has(term, c); }))
        fail(fmt::format("names '{}' in the result, and in no operand", c));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw ValueError(fmt::format("einsum: \"{}\" {}", text, what));
  }

  std::string text, out;
  std::vector<std::string> in;

 private:
  void check(const std::string& term) const {
    for (std::size_t i = 0; i < term.size(); ++i) {
      const char c = term[i];
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
        fail(fmt::format("has '{}', which is no letter", c));
      if (term.find(c, i + 1) != std::string::npos)
        fail(fmt::format("names '{}' twice in \"{}\"; a diagonal is not supported", c, term));
    }
  }
};

// A tensor whose axes go by letters.
template <class T>
struct Lettered {
  Tensor<T> x;
  std::string axes;

  void sum_out(const std::string& kept) {
    std::vector<int> gone;
    std::string left;
    for (std::size_t i = 0; i < axes.size(); ++i)
      has(kept, axes[i]) ? left.push_back(axes[i]) : gone.push_back(static_cast<int>(i));
    if (!gone.empty()) x = sum(x, Axes(gone));
    axes = left;
  }
  void order(const std::string& wanted) {
    if (axes == wanted) return;
    std::vector<int> from;
    for (char c : wanted) from.push_back(static_cast<int>(axes.find(c)));
    x = permute(x, from);
    axes = wanted;
  }
};

using Sizes = std::map<char, std::int64_t>;

template <class T>
Lettered<T> lettered(const Equation& e, std::size_t i, const Tensor<T>& x, Sizes& sizes) {
  const std::string& axes = e.in[i];
  if (static_cast<int>(axes.size()) != x.rank())
    throw ShapeError(fmt::format("einsum: \"{}\": \"{}\" has {} letters for shape {}; name each axis once",
                                 e.text, axes, axes.size(), x.shape().str()));
  for (int axis = 0; axis < x.rank(); ++axis) {
    const char c = axes[static_cast<std::size_t>(axis)];
    const auto [at, added] = sizes.emplace(c, x.shape()[axis]);
    if (!added && at->second != x.shape()[axis])
      throw ShapeError(fmt::format(
          "einsum: \"{}\": '{}' is {} in one operand and {} in the other (shape {}); they must be equal",
          e.text, c, at->second, x.shape()[axis], x.shape().str()));
  }
  return {x, axes};
}

// Reshaped so that each group of letters is one axis, where it is not already.
template <class T>
Tensor<T> grouped(const Tensor<T>& x, const std::vector<std::string>& groups, const Sizes& sizes) {
  Shape shape;
  for (const std::string& group : groups) {
    Shape together;
    for (char c : group) together = together.with(together.rank(), sizes.at(c));
    shape = shape.with(shape.rank(), together.numel());
  }
  return x.shape() == shape ? x : reshape(x, shape);
}

}  // namespace

template <class T>
Real<T> einsum(const std::string& equation, const Tensor<T>& a) {
  const Equation e(equation, 1);
  Sizes sizes;
  Lettered<T> A = lettered(e, 0, a, sizes);
  A.sum_out(e.out);
  A.order(e.out);
  return A.x;
}

// Every letter is one of: batch (in both and in the result), rows (a and the result), columns (b and the
// result), inner (in both, summed), or in one alone and summed away beforehand. What is left is a product of
// matrices.
template <class T>
Real<T> einsum(const std::string& equation, const Tensor<T>& a, const Tensor<T>& b) {
  const Equation e(equation, 2);
  if (static_cast<int>(e.out.size()) > max_rank)
    throw ShapeError(fmt::format("einsum: \"{}\": a result of {} axes; a tensor has at most {}", e.text,
                                 e.out.size(), max_rank));
  Sizes sizes;
  Lettered<T> A = lettered(e, 0, a, sizes), B = lettered(e, 1, b, sizes);
  A.sum_out(e.in[1] + e.out);
  B.sum_out(e.in[0] + e.out);
  std::string batch, rows, inner, columns;
  for (char c : A.axes) (!has(B.axes, c) ? rows : has(e.out, c) ? batch : inner).push_back(c);
  for (char c : B.axes)
    if (!has(A.axes, c)) columns.push_back(c);
  A.order(batch + rows + inner);
  B.order(batch + inner + columns);

  // Batch axes stay as they are while there is room for them.
  std::vector<std::string> batches;
  if (batch.size() > max_rank - 2)
    batches.push_back(batch);
  else
    for (char c : batch) batches.emplace_back(1, c);
  const auto groups = [&batches](const std::string& first, const std::string& second) {
    std::vector<std::string> all = batches;
    all.insert(all.end(), {first, second});
    return all;
  };
  const Tensor<T> C =
      matmul(grouped(A.x, groups(rows, inner), sizes), grouped(B.x, groups(inner, columns), sizes));
  Shape shape;
  for (char c : batch + rows + columns) shape = shape.with(shape.rank(), sizes.at(c));
  Lettered<T> out{C.shape() == shape ? C : reshape(C, shape), batch + rows + columns};
  out.order(e.out);
  return out.x;
}

#define TAPEHEAD_EINSUM(T)                                         \
  template Tensor<T> einsum(const std::string&, const Tensor<T>&); \
  template Tensor<T> einsum(const std::string&, const Tensor<T>&, const Tensor<T>&);
TAPEHEAD_EINSUM(float)
TAPEHEAD_EINSUM(double)

}  // namespace tapehead
