#pragma once
// Operations along an axis, products, and those of several inputs, as plain loops beside the library's calls.
#include <algorithm>
#include <map>

#include "ops/random_graphs_kinds.hpp"

namespace graphs {

// Axis and keepdims.
inline bool reduction(Chooser& c, Node& n) { return full_axis(c, n) && (n.ints.push_back(c.below(2)), true); }

// f of the values along an axis.
inline Kind reducing(const std::string& name, double (*f)(const std::vector<double>&),
                     Tensor<double> (*call)(const Tensor<double>&, int, bool), const std::string& source = "") {
  return {name, source.empty() ? name + "($a, $0, $1)" : source, reduction,
          [f](const Node& n, const In& in) {
            const int axis = axis_of(n);
            Array y(n.ints[1] != 0 ? in[0]->shape.replaced(axis, 1) : in[0]->shape.without(axis));
            each(in[0]->shape.replaced(axis, 1), [&](const Index& at) {
              std::vector<double> line;
              for (std::int64_t i = 0; i < in[0]->shape[axis]; ++i) line.push_back((*in[0])(with(at, axis, i)));
              y(n.ints[1] != 0 ? at : without(at, axis)) = f(line);
            });
            return y;
          },
          [call](const Node& n, const Xs& x) { return call(x[0], axis_of(n), n.ints[1] != 0); }};
}
// f turns the values along an axis into as many others.
inline Kind along(const std::string& name, Kind::Propose propose,
                  std::vector<double> (*f)(const std::vector<double>&, const Node&),
                  Tensor<double> (*call)(const Node&, const Tensor<double>&), const std::string& source) {
  return {name, source, propose,
          [f](const Node& n, const In& in) {
            Array y = *in[0];
            const int axis = axis_of(n);
            each(in[0]->shape.replaced(axis, 1), [&](const Index& at) {
              std::vector<double> line;
              for (std::int64_t i = 0; i < in[0]->shape[axis]; ++i) line.push_back((*in[0])(with(at, axis, i)));
              line = f(line, n);
              for (std::int64_t i = 0; i < in[0]->shape[axis]; ++i) y(with(at, axis, i)) = line[u(i)];
            });
            return y;
          },
          [call](const Node& n, const Xs& x) { return call(n, x[0]); }};
}

inline double total(const std::vector<double>& v) {
  double sum = 0;
  for (double each : v) sum += each;
  return sum;
}
inline double log_sum_exp(const std::vector<double>& v) {
  double sum = 0;
  for (double each : v) sum += std::exp(each);
  return std::log(sum);
}
inline std::vector<double> normalised(const std::vector<double>& v, bool centred) {
  const double n = static_cast<double>(v.size()), mean = centred ? total(v) / n : 0;
  double squares = 0;
  for (double each : v) squares += (each - mean) * (each - mean);
  std::vector<double> y;
  for (double each : v) y.push_back((each - mean) / std::sqrt(squares / n + 0.1));
  return y;
}
inline std::vector<Kind> line_kinds() {
  using T = Tensor<double>;
  using V = std::vector<double>;
  return {
      reducing("sum", total, [](const T& x, int axis, bool keep) { return sum(x, axis, keep); }),
      reducing(
          "mean", [](const V& v) { return total(v) / static_cast<double>(v.size()); },
          [](const T& x, int axis, bool keep) { return mean(x, axis, keep); }),
      reducing(
          "max", [](const V& v) { return *std::max_element(v.begin(), v.end()); },
          [](const T& x, int axis, bool keep) { return max(x, axis, keep); }),
      reducing(
          "min", [](const V& v) { return *std::min_element(v.begin(), v.end()); },
          [](const T& x, int axis, bool keep) { return min(x, axis, keep); }),
      reducing("logsumexp", log_sum_exp, [](const T& x, int axis, bool keep) { return logsumexp(x, axis, keep); }),
      reducing(
          "var",
          [](const V& v) {
            const double n = static_cast<double>(v.size()), mean = total(v) / n;
            double squares = 0;
            for (double each : v) squares += (each - mean) * (each - mean);
            return squares / n;
          },
          [](const T& x, int axis, bool keep) { return var(x, axis, 0, keep); }, "var($a, $0, 0, $1)"),
      along(
          "softmax", full_axis,
          [](const V& v, const Node&) {
            V y;
            for (double each : v) y.push_back(std::exp(each - log_sum_exp(v)));
            return y;
          },
          [](const Node& n, const T& x) { return softmax(x, axis_of(n)); }, "softmax($a, $0)"),
      along(
          "log_softmax", full_axis,
          [](const V& v, const Node&) {
            V y;
            for (double each : v) y.push_back(each - log_sum_exp(v));
            return y;
          },
          [](const Node& n, const T& x) { return log_softmax(x, axis_of(n)); }, "log_softmax($a, $0)"),
      along(
          "cumsum", one_axis,
          [](const V& v, const Node&) {
            V y = v;
            for (std::size_t i = 1; i < y.size(); ++i) y[i] += y[i - 1];
            return y;
          },
          [](const Node& n, const T& x) { return cumsum(x, axis_of(n)); }, "cumsum($a, $0)"),
      along(
          "layer_norm", last_axis, [](const V& v, const Node&) { return normalised(v, true); },
          [](const Node&, const T& x) { return layer_norm(x, {}, {}, 0.1); }, "layer_norm($a, {}, {}, 0.1)"),
      along(
          "rms_norm", last_axis, [](const V& v, const Node&) { return normalised(v, false); },
          [](const Node&, const T& x) { return rms_norm(x, {}, 0.1); }, "rms_norm($a, {}, 0.1)"),
      along(
          "sorted", full_axis,
          [](const V& v, const Node&) {
            V y = v;
            std::sort(y.begin(), y.end(), std::greater<>());
            return y;
          },
          [](const Node& n, const T& x) { return topk(x, x.size(axis_of(n)), axis_of(n)).values; },
          "topk($a, $a.size($0), $0).values"),
      along(
          "rope",
          [](Chooser& c, Node& n) {
            return last_axis(c, n) && c.shape_of(n.in[0])[axis_of(n)] % 2 == 0 && (n.ints.push_back(c.below(9)), true);
          },
          [](const V& v, const Node& n) {
            V y = v;
            const std::size_t half = v.size() / 2;
            for (std::size_t i = 0; i < half; ++i) {
              const double angle =
                  static_cast<double>(n.ints[1]) * std::pow(100.0, -static_cast<double>(i) / static_cast<double>(half));
              y[i] = v[i] * std::cos(angle) - v[i + half] * std::sin(angle);
              y[i + half] = v[i + half] * std::cos(angle) + v[i] * std::sin(angle);
            }
            return y;
          },
          [](const Node& n, const T& x) { return rope(x, scalar(n.ints[1]), 100); },
          "rope($a, scalar<std::int64_t>($1), 100)"),
  };
}

// A product by letters, as in einsum: one equation for matmul in all its forms.
inline Array contracted(const std::string& equation, const Array& a, const Array& b) {
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  const std::string in_a = equation.substr(0, comma), in_b = equation.substr(comma + 1, arrow - comma - 1),
                    out = equation.substr(arrow + 2);
  std::map<char, std::int64_t> sizes;
  for (std::size_t i = 0; i < in_a.size(); ++i) sizes[in_a[i]] = a.shape[static_cast<int>(i)];
  for (std::size_t i = 0; i < in_b.size(); ++i) sizes[in_b[i]] = b.shape[static_cast<int>(i)];
  std::string letters;
  Shape all, result;
  for (const auto& [letter, size] : sizes) letters += letter, all = all.with(all.rank(), size);
  for (char letter : out) result = result.with(result.rank(), sizes[letter]);
  Array y(result);
  each(all, [&](const Index& at) {
    const auto part = [&](const std::string& names) {
      Index own;
      for (char name : names) own.push_back(at[letters.find(name)]);
      return own;
    };
    y(part(out)) += a(part(in_a)) * b(part(in_b));
  });
  return y;
}

inline bool propose_matmul(Chooser& c, Node& n) {
  const int a = c.any();
  const Shape& s = c.shape_of(a);
  if (s.rank() == 0 || s.rank() > 4) return false;
  const std::string batch = std::string("BCDE").substr(0, u(std::max(0, s.rank() - 2)));
  const std::string rows = s.rank() > 1 ? "i" : "";
  const bool column = c.one_in(3),
             shared = c.one_in(2);  // the right operand: a vector; without a batch of its own
  Shape other{s[s.rank() - 1]};
  if (!column) other = other.with(1, 1 + c.below(3));
  for (int axis = static_cast<int>(batch.size()); !column && !shared && axis-- > 0;) other = other.with(0, s[axis]);
  n.in = {a, c.leaf(other)};
  n.text = batch + rows + "k," + (column || shared ? "" : batch) + (column ? "k" : "kj") + "->" + batch + rows +
           (column ? "" : "j");
  return true;
}

inline bool scatter_inputs(Chooser& c, Node& n, bool rows) {
  if (!indexed(c, n, rows)) return false;
  n.in.push_back(c.leaf(rows ? c.shape_of(n.in[0]).replaced(axis_of(n), n.constant_shape[0]) : n.constant_shape));
  return true;
}

inline std::vector<Kind> joint_kinds() {
  const auto product = [](const Node& n, const In& in) { return contracted(n.text, *in[0], *in[1]); };
  const auto add_at = [](const Node& n, const In& in) {
    Array y = *in[0], index(n.constant_shape);
    each(in[1]->shape, [&](const Index& at) {
      y(with(at, axis_of(n),
             n.constants[n.constant_shape.rank() == 1 && n.text == "rows" ? u(at[u(n.ints[0])]) : index.flat(at)])) +=
          (*in[1])(at);
    });
    return y;
  };
  return {
      kind("matmul", "matmul($a, $b)", propose_matmul, product,
           [](const Node&, const Xs& x) { return matmul(x[0], x[1]); }),
      kind(
          "scatter_add", "scatter_add($a, $0, $i, $b)", [](Chooser& c, Node& n) { return scatter_inputs(c, n, false); },
          add_at, [](const Node& n, const Xs& x) { return scatter_add(x[0], axis_of(n), index_of(n), x[1]); }),
      kind(
          "index_add", "index_add($a, $0, $i, $b)",
          [](Chooser& c, Node& n) { return n.text = "rows", scatter_inputs(c, n, true); }, add_at,
          [](const Node& n, const Xs& x) { return index_add(x[0], axis_of(n), index_of(n), x[1]); }),
      kind(
          "cat", "cat<double>({$a, $b}, $0)",
          [](Chooser& c, Node& n) {
            if (!one_axis(c, n)) return false;
            n.in.push_back(c.one_in(2) ? n.in[0] : c.leaf(c.shape_of(n.in[0]).replaced(axis_of(n), c.below(3))));
            return true;
          },
          [](const Node& n, const In& in) {
            const int axis = axis_of(n);
            const std::int64_t first = in[0]->shape[axis];
            Array y(in[0]->shape.replaced(axis, first + in[1]->shape[axis]));
            each(y.shape, [&](const Index& at) {
              y(at) = at[u(axis)] < first ? (*in[0])(at) : (*in[1])(with(at, axis, at[u(axis)] - first));
            });
            return y;
          },
          [](const Node& n, const Xs& x) { return cat(x, axis_of(n)); }),
      kind(
          "stack", "stack<double>({$a, $b}, $0)",
          [](Chooser& c, Node& n) {
            n.in = {c.any()};
            n.in.push_back(c.one_in(2) ? n.in[0] : c.leaf(c.shape_of(n.in[0])));
            n.ints = {c.below(c.shape_of(n.in[0]).rank() + 1)};
            return true;
          },
          [](const Node& n, const In& in) {
            Array y(in[0]->shape.with(axis_of(n), 2));
            each(y.shape, [&](const Index& at) { y(at) = (*in[u(at[u(n.ints[0])])])(without(at, axis_of(n))); });
            return y;
          },
          [](const Node& n, const Xs& x) { return stack(x, axis_of(n)); }),
      kind(
          "where", "where($m, $a, $b)",
          [](Chooser& c, Node& n) {
            return any_input(c, n) && masked(c, n) && (n.in.push_back(c.leaf(c.shape_of(n.in[0]))), true);
          },
          [](const Node& n, const In& in) {
            Array y = *in[0], mask(n.constant_shape);
            mask.data.assign(n.constants.begin(), n.constants.end());
            each(y.shape, [&](const Index& at) { y(at) = mask.seen(at) != 0 ? (*in[0])(at) : (*in[1])(at); });
            return y;
          },
          [](const Node& n, const Xs& x) { return where(mask_of(n), x[0], x[1]); }),
      kind(
          "dropout", "dropout($a, 0.2, $m)", [](Chooser& c, Node& n) { return any_input(c, n) && masked(c, n); },
          [](const Node& n, const In& in) {
            Array y = *in[0], mask(n.constant_shape);
            mask.data.assign(n.constants.begin(), n.constants.end());
            each(y.shape, [&](const Index& at) { y(at) = mask.seen(at) != 0 ? y(at) / 0.8 : 0; });
            return y;
          },
          [](const Node& n, const Xs& x) { return dropout(x[0], 0.2, mask_of(n)); }),
      kind(
          "cross_entropy",
          "cross_entropy($a, $i, {.ignore_index = 0, .label_smoothing = 0.1, .reduction = Reduction::none})",
          [](Chooser& c, Node& n) {
            if (!last_axis(c, n)) return false;
            n.constant_shape = c.shape_of(n.in[0]).without(axis_of(n));
            for (std::int64_t i = n.constant_shape.numel(); i-- > 0;)
              n.constants.push_back(c.below(c.shape_of(n.in[0])[axis_of(n)]));
            return true;
          },
          [](const Node& n, const In& in) {
            Array y(n.constant_shape);
            const int axis = axis_of(n);
            each(y.shape, [&](const Index& at) {
              std::vector<double> line;
              for (std::int64_t i = 0; i < in[0]->shape[axis]; ++i) line.push_back((*in[0])(inserted(at, axis, i)));
              const std::int64_t target = n.constants[y.flat(at)];
              const double log_sum = log_sum_exp(line);
              for (std::size_t i = 0; target != 0 && i < line.size(); ++i)
                y(at) += (log_sum - line[i]) * ((i == u(target) ? 0.9 : 0) + 0.1 / static_cast<double>(line.size()));
            });
            return y;
          },
          [](const Node& n, const Xs& x) {
            return cross_entropy(x[0], index_of(n),
                                 {.ignore_index = 0, .label_smoothing = 0.1, .reduction = Reduction::none});
          }),
      kind(
          "mse_loss", "mse_loss($a, $b)",
          [](Chooser& c, Node& n) { return any_input(c, n) && (n.in.push_back(c.leaf(c.shape_of(n.in[0]))), true); },
          [](const Node&, const In& in) {
            Array y{Shape{}};
            for (std::size_t i = 0; i < in[0]->data.size(); ++i)
              y.data[0] += std::pow(in[0]->data[i] - in[1]->data[i], 2);
            y.data[0] /= static_cast<double>(in[0]->data.size());
            return y;
          },
          [](const Node&, const Xs& x) { return mse_loss(x[0], x[1]); }),
  };
}

}  // namespace graphs
