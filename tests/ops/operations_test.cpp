// What holds for every operation, asked of each. An operation that is missing from the table
// (operations.hpp) or without its formula fails here; one without golden cases in golden_operations_test.cpp.
#include "ops/operations.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "threads.hpp"

using namespace tapehead;
using testing::message;

namespace {

// Operations that tests define have names that begin with "test: ".
bool of_the_library(const Op* op) { return std::string(op->name).rfind("test: ", 0) != 0; }

template <class T> const Operation::Function<T>& function(const Operation& op) {
  if constexpr (std::is_same_v<T, double>)
    return op.f;
  else
    return op.in_float;
}
template <class T> std::vector<Tensor<T>> inputs(const Operation& op) {
  std::vector<Tensor<T>> list;
  for (const auto& x : op.inputs) list.push_back(contiguous(to<T>(x)));
  return list;
}

// The result and the gradients of all inputs, for a fixed dy.
template <class T> std::vector<Tensor<T>> run(const Operation::Function<T>& f, const std::vector<Tensor<T>>& x,
                                              const Tensor<T>* arriving = nullptr) {
  Tape<T> tape;
  tape.watch(x);
  const Tensor<T> y = f(x);
  const auto grad = tape.backward(y, arriving != nullptr ? *arriving : to<T>(NumpyRandom(7).randn(y.shape())));
  std::vector<Tensor<T>> all{y};
  for (const auto& each : x) all.push_back(grad[each]);
  return all;
}
template <class T>
std::vector<Tensor<T>> run(const Operation& op, const std::vector<Tensor<T>>& x, const Tensor<T>* arriving = nullptr) {
  return run<T>(function<T>(op), x, arriving);
}

template <class T> bool same_bits(const std::vector<Tensor<T>>& a, const std::vector<Tensor<T>>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto u = a[i].to_vector(), v = b[i].to_vector();
    if (a[i].shape() != b[i].shape() || (!u.empty() && std::memcmp(u.data(), v.data(), u.size() * sizeof(T)) != 0))
      return false;
  }
  return true;
}

// The same values, stored otherwise.
template <class T> Tensor<T> turned(const Tensor<T>& x) {
  std::vector<int> reversed;
  for (int axis = x.rank(); axis-- > 0;) reversed.push_back(axis);
  return permute(contiguous(permute(x, reversed)), reversed);
}
template <class T> Tensor<T> reversed(const Tensor<T>& x) {
  Tensor<T> y = x;
  for (int axis = 0; axis < x.rank(); ++axis) y = flip(y, axis);
  y = contiguous(y);
  for (int axis = 0; axis < x.rank(); ++axis) y = flip(y, axis);
  return y;
}
// Every other element of something larger that is NaN elsewhere.
template <class T> Tensor<T> sliced(const Tensor<T>& x) {
  Tensor<T> y = x;
  Tensor<T> known = ones_like(x);
  for (int axis = 0; axis < x.rank(); ++axis) {
    const Shape wider = y.shape().replaced(axis, 2 * y.shape()[axis] + 1);
    y = unslice(y, wider, axis, 1, 2), known = unslice(known, wider, axis, 1, 2);
  }
  y = masked_fill(y, eq(known, zeros_like(known)), std::numeric_limits<T>::quiet_NaN());
  for (int axis = 0; axis < x.rank(); ++axis) y = slice(y, axis, 1, y.size(axis), 2);
  return y;
}

template <class T> void check_layouts(const Operation& op) {
  const std::vector<Tensor<T>> plain = inputs<T>(op);
  const auto expected = run<T>(op, plain);
  const std::map<std::string, Tensor<T> (*)(const Tensor<T>&)> layouts{
      {"transposed", turned<T>}, {"flipped", reversed<T>}, {"sliced", sliced<T>}};
  for (const auto& entry : layouts) {
    const std::string& name = entry.first;
    const auto layout = entry.second;
    CAPTURE(name);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      CAPTURE(i);
      auto views = plain;
      views[i] = layout(plain[i]);
      CHECK(same_bits(run<T>(op, views), expected));
    }
    const Tensor<T> dy = to<T>(NumpyRandom(7).randn(expected[0].shape())), arriving = layout(dy);
    CHECK_MESSAGE(same_bits(run<T>(op, plain, &arriving), expected), "with dy " << name);
  }
  for (std::size_t i = 0; i < plain.size(); ++i)
    for (int axis = 0; axis < plain[i].rank(); ++axis) {
      CAPTURE(i);
      CAPTURE(axis);
      auto views = plain, copies = plain;
      views[i] = broadcast_to(slice(plain[i], axis, 0, 1), plain[i].shape());
      copies[i] = contiguous(views[i]);
      CHECK_MESSAGE(same_bits(run<T>(op, views), run<T>(op, copies)), "broadcast");
    }
}

}  // namespace

TEST_CASE("every operation has its formula, its pullback, a name of its own") {
  std::set<std::string> names;
  int count = 0;
  for (const Op* op : all_operations()) {
    if (!of_the_library(op)) continue;
    CAPTURE(op->name);
    CHECK(names.insert(op->name).second);
    CHECK(std::strlen(op->formula) > 0);
    CHECK(std::strlen(op->pullback) > 0);
    CHECK(std::strlen(op->shapes) > 0);
    ++count;
  }
  CHECK(count > 60);
}

TEST_CASE("every operation is in the table") {
  std::set<std::string> in_table;
  for (const Operation& op : operations()) in_table.insert(op.name);
  for (const Op* op : all_operations()) {
    if (!of_the_library(op)) continue;
    CAPTURE(op->name);
    CHECK_MESSAGE(in_table.count(op->name) == 1, "add it to tests/ops/operations.hpp");
  }
}

TEST_CASE(
    "every operation's first and second derivatives agree with differences; those of a fused kernel, as far "
    "as it has any") {
  for (const Operation& op : operations()) {
    CAPTURE(op.name);
    const std::vector<Named<double>> named(op.inputs.begin(), op.inputs.end());
    if (op.derivatives > 0) {
      const auto report = gradcheck(op.f, named, {.order = op.derivatives});
      CHECK_MESSAGE(report, report.text());
    }
    if (op.derivatives == 2) continue;
    const auto report = gradcheck(op.f, named, {.order = op.derivatives + 1});
    CHECK_FALSE(report);
    CHECK_MESSAGE(report.text().find("gradcheck: the tape cannot differentiate this: backward: in record ") == 0,
                  report.text());
  }
}

TEST_CASE("one tensor in two roles: as input and as upstream gradient, as first and as second input") {
  int upstream = 0, inputs = 0;
  for (const Operation& op : operations()) {
    if (op.derivatives < 2) continue;
    CAPTURE(op.name);
    const Tensor<double> x = op.inputs[0];
    // A norm's gradient with x arriving is nearly 0 by its definition, and its differences have no digits.
    const bool vanishes = op.name.find("_norm") != std::string::npos;
    if (!vanishes && op.inputs.size() == 1 && op.f({x}).shape() == x.shape()) {
      const auto twice = [&](const Tensor<double>& v) {
        Tape<double> tape;
        tape.watch(v);
        return tape.backward(op.f({v}), v)[v];
      };
      const auto report = gradcheck(twice, {x}, {.may_be_zero = true});
      CHECK_MESSAGE(report, report.text());
      ++upstream;
    }
    if (op.inputs.size() == 2 && op.inputs[1].shape() == x.shape() && !vanishes) {
      const auto report = gradcheck(
          [&](const Tensor<double>& v) {
            return op.f({v, v});
          },
          {x}, {.order = 2, .may_be_zero = true});
      CHECK_MESSAGE(report, report.text());
      ++inputs;
    }
  }
  CHECK((upstream > 20 && inputs > 8));
}

TEST_CASE("every operation appends one record, and a way back to each input that is watched, to no other") {
  for (const Operation& op : operations()) {
    CAPTURE(op.name);
    for (std::size_t watched = 0; watched <= op.inputs.size(); ++watched) {  // each alone; all in the end
      Tape<double> tape;
      const bool all = watched == op.inputs.size();
      all ? tape.watch(op.inputs) : tape.watch(op.inputs[watched]);
      const std::int64_t before = tape.size();
      op.f(op.inputs);
      if (op.records == 1) CHECK(tape.size() == before + 1);
      const auto& last = tape.node(tape.size() - 1);
      REQUIRE(last.op != nullptr);
      CHECK(last.op->name == op.name);
      int edges = 0;
      for (const auto* edge = last.edges; edge != nullptr; edge = edge->next) ++edges;
      if (op.records == 1) CHECK(edges == (all ? static_cast<int>(op.inputs.size()) : 1));
    }
    Tape<double> tape;
    op.f(op.inputs);
    CHECK(tape.size() == 0);
  }
}

TEST_CASE("every operation gives the same bits for a view and for its contiguous copy, forward and backward") {
  for (const Operation& op : operations()) {
    CAPTURE(op.name);
    if (op.derivatives == 0) continue;
    check_layouts<double>(op);
    check_layouts<float>(op);
  }
}

TEST_CASE("every operation in float is the one in double, to a few roundings") {
  for (const Operation& op : operations()) {
    CAPTURE(op.name);
    if (op.derivatives == 0) continue;
    const auto exact = run<double>(op, inputs<double>(op));
    const auto rounded = run<float>(op, inputs<float>(op));
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double largest = exact[i].numel() == 0 ? 0 : max(abs(exact[i])).item();
      CHECK(allclose(to<double>(rounded[i]), exact[i], 0, 2e-5 * std::max(1.0, largest)));
    }
  }
}

TEST_CASE_TEMPLATE("every elementwise operation takes the shapes (), (0,) and (2, 0), one element, and NaN", T, float,
                   double) {
  int count = 0;
  for (const Operation& op : operations()) {
    if (!op.elementwise) continue;
    CAPTURE(op.name);
    ++count;
    const auto shaped = [&](const Shape& shape) {
      std::vector<Tensor<T>> list;
      while (list.size() < op.inputs.size()) list.push_back(full<T>(shape, T(0.7)));
      return list;
    };
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{2, 0}, Shape{1}, Shape{1, 1}}) {
      const auto all = run<T>(op, shaped(shape));
      for (const auto& each : all) CHECK(each.shape() == shape);
    }
    if (op.inputs.size() == 2) {
      const auto all = run<T>(op, {full<T>({0, 3}, T(0.7)), full<T>({3}, T(0.7))});
      CHECK(all[0].shape() == Shape{0, 3});
      CHECK(equal(all[2], zeros<T>({3})));
    }
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      auto x = shaped({3});
      x[i] = Tensor<T>{T(0.7), std::numeric_limits<T>::quiet_NaN(), T(0.7)};
      const auto y = function<T>(op)(x).to_vector(), good = function<T>(op)(shaped({3})).to_vector();
      CHECK((y[0] == good[0] && std::isnan(y[1]) && y[2] == good[2]));
    }
  }
  CHECK(count > 20);
}

TEST_CASE("operations: the same bits on 1, 2 and 5 threads") {
  NumpyRandom rng(9);
  static const Tensor<std::int64_t> index = rng.randint(0, 70, {2000}), columns = rng.randint(0, 70, {2000, 3});
  struct Row {
    const char* name;
    std::vector<Tensor<double>> inputs;
    Operation::Function<double> f;
  };
  using X = Tensor<double>;
  const std::vector<Row> large{
      {"layer_norm",
       {rng.randn({2000, 70}), rng.randn({70}), rng.randn({70})},
       [](X x, X weight, X bias) { return layer_norm(x, weight, bias); }},
      {"rms_norm", {rng.randn({2000, 70}), rng.randn({70})}, [](X x, X weight) { return rms_norm(x, weight); }},
      {"cross_entropy", {rng.randn({2000, 70})}, [](X x) { return cross_entropy(x, index); }},
      {"embedding", {rng.randn({70, 100})}, [](X x) { return embedding(index, x); }},
      {"gather", {rng.randn({2000, 70})}, [](X x) { return gather(x, 1, columns); }},
      {"rope", {rng.randn({2000, 70})}, [](X x) { return rope(x, index); }},
      {"cumsum", {rng.randn({2000, 70})}, [](X x) { return cumsum(x, 0); }},
      {"matmul", {rng.randn({300, 200}), rng.randn({200, 150})}, [](X a, X b) { return matmul(a, b); }},
      {"softmax", {rng.randn({2000, 70})}, [](X x) { return softmax(x, -1); }},
      {"sum", {rng.randn({2000, 70})}, [](X x) { return sum(exp(x) * x); }},
      {"var", {rng.randn({2000, 70})}, [](X x) { return var(x, 0); }},
  };
  for (const Row& row : large) {
    CAPTURE(row.name);
    const auto on = [&](int threads) {
      const testing::Threads chosen(threads);
      return run<double>(row.f, row.inputs);
    };
    const auto alone = on(1);
    for (int threads : {2, 5}) CHECK(same_bits(on(threads), alone));
  }
}

TEST_CASE("reductions: more rows than go one by one") {
  NumpyRandom rng(8);
  const auto x = rng.randn({4'097, 3}), sums = sum(x, 1), most = max(x, 1);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    const double a = x.at({i, 0}), b = x.at({i, 1}), c = x.at({i, 2});
    wrong += std::abs(sums.at({i}) - (a + b + c)) > 1e-15 || most.at({i}) != std::max({a, b, c});
  }
  CHECK(wrong == 0);
}

TEST_CASE("tril, triu: diagonals outside the matrix, as far as numbers go") {
  const Tensor<double> x{{1, 2, 3}, {4, 5, 6}};
  const auto none = zeros<double>({2, 3});
  for (std::int64_t far : {std::int64_t{3}, std::numeric_limits<std::int64_t>::max()}) {
    CHECK((equal(tril(x, far), x) && equal(triu(x, far), none)));
    CHECK((equal(tril(x, -far), none) && equal(triu(x, -far), x)));
  }
}

TEST_CASE("every operation's third derivatives agree with differences") {
  for (const Operation& op : operations()) {
    if (op.derivatives < 2) continue;
    CAPTURE(op.name);
    const auto gradient = [&op](const std::vector<Tensor<double>>& x) {
      Tape<double> tape;
      tape.watch(x);
      const auto y = op.f(x);
      const auto grad = tape.backward(y, cos(arange<double>(static_cast<double>(y.numel()))).reshape(y.shape()));
      auto total = scalar(0.0);
      for (const auto& each : x)
        total =
            total + sum(grad[each] * sin(arange<double>(static_cast<double>(each.numel())) + 1).reshape(each.shape()));
      return total;
    };
    const auto report = gradcheck(gradient, std::vector<Named<double>>(op.inputs.begin(), op.inputs.end()),
                                  {.order = 2, .may_be_zero = true});
    CHECK_MESSAGE(report, report.text());
  }
}
