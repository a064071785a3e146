#pragma once
// Elementwise operations, and those whose result is elements of their input, as plain loops beside the
// library's calls.
#include <algorithm>

#include "ops/random_graphs_kinds.hpp"

namespace graphs {

inline bool one_allowed(Chooser& c, Node& n) {
  n.in = {c.any()};
  const auto& data = c.program[u(n.in[0])].value.data;
  return n.kind->allowed == nullptr || std::all_of(data.begin(), data.end(), n.kind->allowed);
}
inline bool two_broadcasting(Chooser& c, Node& n) {
  n.in = {c.any(), c.any()};
  Shape shape = c.shape_of(n.in[0]);
  if (c.one_in(2) || !(broadcasts_to(shape, c.shape_of(n.in[1])) || broadcasts_to(c.shape_of(n.in[1]), shape))) {
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (c.one_in(3)) shape[axis] = 1;
    while (shape.rank() > 0 && c.one_in(3)) shape = shape.without(0);
    n.in[1] = c.leaf(shape);
  }
  if (c.one_in(2)) std::swap(n.in[0], n.in[1]);
  const auto& second = c.program[u(n.in[1])].value.data;
  return n.kind->allowed == nullptr || std::all_of(second.begin(), second.end(), n.kind->allowed);
}

inline Kind elementwise(const std::string& name, double (*f)(double), Tensor<double> (*call)(const Tensor<double>&),
                        bool (*allowed)(double) = nullptr, const std::string& source = "") {
  return {name,
          source.empty() ? name + "($a)" : source,
          one_allowed,
          [f](const Node&, const In& in) {
            Array y = *in[0];
            for (double& v : y.data) v = f(v);
            return y;
          },
          [call](const Node&, const Xs& x) { return call(x[0]); },
          allowed};
}
inline Kind binary(const std::string& name, double (*f)(double, double),
                   Tensor<double> (*call)(const Tensor<double>&, const Tensor<double>&), const std::string& source,
                   bool (*allowed)(double) = nullptr) {
  return {name,
          source,
          two_broadcasting,
          [f](const Node&, const In& in) {
            Array y(broadcast_shapes("", in[0]->shape, in[1]->shape));
            each(y.shape, [&](const Index& at) { y(at) = f(in[0]->seen(at), in[1]->seen(at)); });
            return y;
          },
          [call](const Node&, const Xs& x) { return call(x[0], x[1]); },
          allowed};
}
// A view, or anything whose result is elements of its input: from(node, input shape, index) says which one,
// or an empty index for 0.
using From = Index (*)(const Node&, const Shape&, const Index&);
using ResultShape = Shape (*)(const Node&, const Shape&);
inline Kind picking(const std::string& name, const std::string& source, Kind::Propose propose, ResultShape shape,
                    From from, Tensor<double> (*call)(const Node&, const Tensor<double>&)) {
  return {name, source, propose,
          [shape, from](const Node& n, const In& in) {
            Array y(shape(n, in[0]->shape));
            each(y.shape, [&](const Index& at) {
              const Index source_at = from(n, in[0]->shape, at);
              y(at) = source_at.empty() && in[0]->shape.rank() > 0 ? 0 : (*in[0])(source_at);
            });
            return y;
          },
          [call](const Node& n, const Xs& x) { return call(n, x[0]); }};
}
inline bool above_tenth(double v) { return v > 0.1; }
inline bool below_three(double v) { return v < 3; }
inline bool away_from_zero(double v) { return std::abs(v) > 0.2; }

inline std::vector<Kind> elementwise_kinds() {
  using T = Tensor<double>;
  return {
      elementwise(
          "neg", [](double v) { return -v; }, [](const T& x) { return -x; }, nullptr, "-$a"),
      elementwise(
          "exp", [](double v) { return std::exp(v); }, [](const T& x) { return exp(x); }, below_three),
      elementwise(
          "log", [](double v) { return std::log(v); }, [](const T& x) { return log(x); }, above_tenth),
      elementwise(
          "sqrt", [](double v) { return std::sqrt(v); }, [](const T& x) { return sqrt(x); }, above_tenth),
      elementwise(
          "abs", [](double v) { return std::abs(v); }, [](const T& x) { return abs(x); }),
      elementwise(
          "tanh", [](double v) { return std::tanh(v); }, [](const T& x) { return tanh(x); }),
      elementwise(
          "erf", [](double v) { return std::erf(v); }, [](const T& x) { return erf(x); }),
      elementwise(
          "sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }, [](const T& x) { return sigmoid(x); }),
      elementwise(
          "relu", [](double v) { return v > 0 ? v : 0; }, [](const T& x) { return relu(x); }),
      elementwise(
          "gelu", [](double v) { return v * (1 + std::erf(v / std::sqrt(2.0))) / 2; },
          [](const T& x) { return gelu(x); }),
      elementwise(
          "silu", [](double v) { return v / (1 + std::exp(-v)); }, [](const T& x) { return silu(x); }),
      elementwise(
          "clamp", [](double v) { return std::min(std::max(v, -0.5), 0.75); },
          [](const T& x) { return clamp(x, -0.5, 0.75); }, nullptr, "clamp($a, -0.5, 0.75)"),
      elementwise(
          "square", [](double v) { return v * v; }, [](const T& x) { return pow(x, 2); }, nullptr, "pow($a, 2)"),
      elementwise(
          "cube", [](double v) { return v * v * v; }, [](const T& x) { return pow(x, 3); }, nullptr, "pow($a, 3)"),
      elementwise(
          "power", [](double v) { return std::pow(v, 1.5); }, [](const T& x) { return pow(x, 1.5); }, above_tenth,
          "pow($a, 1.5)"),
      elementwise(
          "one_minus", [](double v) { return 1 - v; }, [](const T& x) { return 1 - x; }, nullptr, "1 - $a"),
      elementwise(
          "halved", [](double v) { return v / 2; }, [](const T& x) { return x / 2; }, nullptr, "$a / 2"),
      elementwise(
          "plus_two", [](double v) { return v + 2; }, [](const T& x) { return x + 2; }, nullptr, "$a + 2"),
      binary(
          "add", [](double a, double b) { return a + b; }, [](const T& a, const T& b) { return a + b; }, "$a + $b"),
      binary(
          "sub", [](double a, double b) { return a - b; }, [](const T& a, const T& b) { return a - b; }, "$a - $b"),
      binary(
          "mul", [](double a, double b) { return a * b; }, [](const T& a, const T& b) { return a * b; }, "$a * $b"),
      binary(
          "div", [](double a, double b) { return a / b; }, [](const T& a, const T& b) { return a / b; }, "$a / $b",
          away_from_zero),
      binary(
          "maximum", [](double a, double b) { return a > b ? a : b; },
          [](const T& a, const T& b) { return maximum(a, b); }, "maximum($a, $b)"),
      binary(
          "minimum", [](double a, double b) { return a < b ? a : b; },
          [](const T& a, const T& b) { return minimum(a, b); }, "minimum($a, $b)"),
  };
}

inline std::vector<Kind> view_kinds() {
  using T = Tensor<double>;
  const auto same = [](const Node&, const Shape& s) { return s; };
  return {
      kind(
          "reshape", "reshape($a, {$*})",
          [](Chooser& c, Node& n) {
            n.in = {c.any()};
            std::int64_t rest = c.shape_of(n.in[0]).numel();
            while (rest > 1 && n.ints.size() < 3) {
              const std::int64_t factor = 1 + c.below(rest);
              if (rest % factor == 0) n.ints.push_back(factor), rest /= factor;
            }
            n.ints.push_back(rest);
            return true;
          },
          [](const Node& n, const In& in) {
            Array y{Shape(n.ints)};
            y.data = in[0]->data;
            return y;
          },
          [](const Node& n, const Xs& x) { return reshape(x[0], Shape(n.ints)); }),
      picking(
          "transpose", "transpose($a, $0, $1)",
          [](Chooser& c, Node& n) {
            return one_axis(c, n) && (n.ints.push_back(c.below(c.shape_of(n.in[0]).rank())), true);
          },
          [](const Node& n, const Shape& s) {
            return s.replaced(axis_of(n), s[static_cast<int>(n.ints[1])])
                .replaced(static_cast<int>(n.ints[1]), s[axis_of(n)]);
          },
          [](const Node& n, const Shape&, const Index& at) {
            Index from = at;
            std::swap(from[u(n.ints[0])], from[u(n.ints[1])]);
            return from;
          },
          [](const Node& n, const T& x) { return transpose(x, axis_of(n), static_cast<int>(n.ints[1])); }),
      picking(
          "permute", "permute($a, {$*})",
          [](Chooser& c, Node& n) {
            n.in = {c.any()};
            for (int i = 0; i < c.shape_of(n.in[0]).rank(); ++i) n.ints.insert(n.ints.begin() + c.below(i + 1), i);
            return true;
          },
          [](const Node& n, const Shape& s) {
            Shape y = s;
            for (std::size_t i = 0; i < n.ints.size(); ++i) y[static_cast<int>(i)] = s[static_cast<int>(n.ints[i])];
            return y;
          },
          [](const Node& n, const Shape&, const Index& at) {
            Index from = at;
            for (std::size_t i = 0; i < n.ints.size(); ++i) from[u(n.ints[i])] = at[i];
            return from;
          },
          [](const Node& n, const T& x) { return permute(x, as_axes(n.ints)); }),
      picking(
          "slice", "slice($a, $0, $1, $2, $3)",
          [](Chooser& c, Node& n) {
            if (!one_axis(c, n)) return false;
            const std::int64_t size = c.shape_of(n.in[0])[axis_of(n)], start = c.below(size + 1);
            n.ints.insert(n.ints.end(), {start, start + c.below(size - start + 1), 1 + c.below(3)});
            return true;
          },
          [](const Node& n, const Shape& s) {
            return s.replaced(axis_of(n), (n.ints[2] - n.ints[1] + n.ints[3] - 1) / n.ints[3]);
          },
          [](const Node& n, const Shape&, const Index& at) {
            return with(at, axis_of(n), n.ints[1] + at[u(n.ints[0])] * n.ints[3]);
          },
          [](const Node& n, const T& x) { return slice(x, axis_of(n), n.ints[1], n.ints[2], n.ints[3]); }),
      picking(
          "select", "select($a, $0, $1)",
          [](Chooser& c, Node& n) {
            return full_axis(c, n) && (n.ints.push_back(c.below(c.shape_of(n.in[0])[axis_of(n)])), true);
          },
          [](const Node& n, const Shape& s) { return s.without(axis_of(n)); },
          [](const Node& n, const Shape&, const Index& at) { return inserted(at, axis_of(n), n.ints[1]); },
          [](const Node& n, const T& x) { return select(x, axis_of(n), n.ints[1]); }),
      picking(
          "flip", "flip($a, $0)", one_axis, same,
          [](const Node& n, const Shape& s, const Index& at) {
            return with(at, axis_of(n), s[axis_of(n)] - 1 - at[u(n.ints[0])]);
          },
          [](const Node& n, const T& x) { return flip(x, axis_of(n)); }),
      picking(
          "unsqueeze", "unsqueeze($a, $0)",
          [](Chooser& c, Node& n) {
            n.in = {c.any()};
            n.ints = {c.below(c.shape_of(n.in[0]).rank() + 1)};
            return true;
          },
          [](const Node& n, const Shape& s) { return s.with(axis_of(n), 1); },
          [](const Node& n, const Shape&, const Index& at) { return without(at, axis_of(n)); },
          [](const Node& n, const T& x) { return unsqueeze(x, axis_of(n)); }),
      picking(
          "squeeze", "squeeze($a, $0)",
          [](Chooser& c, Node& n) { return one_axis(c, n) && c.shape_of(n.in[0])[axis_of(n)] == 1; },
          [](const Node& n, const Shape& s) { return s.without(axis_of(n)); },
          [](const Node& n, const Shape&, const Index& at) { return inserted(at, axis_of(n), 0); },
          [](const Node& n, const T& x) { return squeeze(x, axis_of(n)); }),
      picking(
          "broadcast_to", "broadcast_to($a, {$*})",
          [](Chooser& c, Node& n) {
            n.in = {c.any()};
            for (std::int64_t size : c.shape_of(n.in[0])) n.ints.push_back(size == 1 ? c.below(4) : size);
            while (n.ints.size() < 4 && c.one_in(2)) n.ints.insert(n.ints.begin(), 1 + c.below(3));
            return true;
          },
          [](const Node& n, const Shape&) { return Shape(n.ints); },
          [](const Node&, const Shape& s, const Index& at) {
            Index from(at.end() - s.rank(), at.end());
            for (int i = 0; i < s.rank(); ++i) from[u(i)] = s[i] == 1 ? 0 : from[u(i)];
            return from;
          },
          [](const Node& n, const T& x) { return broadcast_to(x, Shape(n.ints)); }),
      picking(
          "contiguous", "contiguous($a)", any_input, same,
          [](const Node&, const Shape&, const Index& at) { return at; },
          [](const Node&, const T& x) { return contiguous(x); }),
      picking(
          "tril", "tril($a, $0)",
          [](Chooser& c, Node& n) {
            n.in = {c.any()};
            n.ints = {c.below(5) - 2};
            return c.shape_of(n.in[0]).rank() >= 2;
          },
          same,
          [](const Node& n, const Shape&, const Index& at) {
            return at.back() <= at[at.size() - 2] + n.ints[0] ? at : Index();
          },
          [](const Node& n, const T& x) { return tril(x, n.ints[0]); }),
      picking(
          "gather", "gather($a, $0, $i)", [](Chooser& c, Node& n) { return indexed(c, n, false); },
          [](const Node& n, const Shape&) { return n.constant_shape; },
          [](const Node& n, const Shape&, const Index& at) {
            Array index(n.constant_shape);
            return with(at, axis_of(n), n.constants[index.flat(at)]);
          },
          [](const Node& n, const T& x) { return gather(x, axis_of(n), index_of(n)); }),
      picking(
          "index_select", "index_select($a, $0, $i)", [](Chooser& c, Node& n) { return indexed(c, n, true); },
          [](const Node& n, const Shape& s) { return s.replaced(axis_of(n), n.constant_shape[0]); },
          [](const Node& n, const Shape&, const Index& at) {
            return with(at, axis_of(n), n.constants[u(at[u(n.ints[0])])]);
          },
          [](const Node& n, const T& x) { return index_select(x, axis_of(n), index_of(n)); }),
      picking(
          "embedding", "embedding($i, $a)", [](Chooser& c, Node& n) { return indexed(c, n, true) && n.ints[0] == 0; },
          [](const Node& n, const Shape& s) { return s.replaced(0, n.constant_shape[0]); },
          [](const Node& n, const Shape&, const Index& at) { return with(at, 0, n.constants[u(at[0])]); },
          [](const Node& n, const T& x) { return embedding(index_of(n), x); }),
      picking(
          "masked_fill", "masked_fill($a, $m, 0)",
          [](Chooser& c, Node& n) { return any_input(c, n) && c.shape_of(n.in[0]).rank() > 0 && masked(c, n); }, same,
          [](const Node& n, const Shape&, const Index& at) {
            Array mask(n.constant_shape);
            mask.data.assign(n.constants.begin(), n.constants.end());
            return mask.seen(at) != 0 ? Index() : at;
          },
          [](const Node& n, const T& x) { return masked_fill(x, mask_of(n), 0); }),
  };
}

}  // namespace graphs
