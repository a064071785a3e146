#include "tapehead/ops/indexing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "values.hpp"

using namespace tapehead;
using testing::gradient;
using testing::message;
using Index = Tensor<std::int64_t>;

TEST_CASE_TEMPLATE("indexing: picking works for every element type", E, float, double, bool, std::int64_t) {
  const Tensor<E> x{{E(1), E(0), E(1)}, {E(0), E(1), E(0)}};
  CHECK(equal(gather(x, 1, Index{{2, 1}, {0, 0}}), Tensor<E>{{E(1), E(0)}, {E(0), E(0)}}));
  CHECK(
      equal(index_select(x, 0, Index{1, 0, 1}), Tensor<E>{{E(0), E(1), E(0)}, {E(1), E(0), E(1)}, {E(0), E(1), E(0)}}));
  CHECK(equal(one_hot<E>(Index{2, 0}, 3), Tensor<E>{{E(0), E(0), E(1)}, {E(1), E(0), E(0)}}));
}

TEST_CASE("indexing: gradients of repeated indices add up") {
  const Tensor<double> x{0.1}, weight{{0.5}, {1.5}, {2.5}};
  Tape<double> tape;
  tape.watch({{"x", x}, {"weight", weight}});
  CHECK(equal(tape.backward(gather(x, 0, Index{0, 0}), {0.2, 0.3})[x], Tensor<double>{0.5}));
  const auto rows = embedding(Index{1, 1, 2, 1}, weight);
  CHECK(equal(rows, Tensor<double>{{1.5}, {1.5}, {2.5}, {1.5}}));
  CHECK(
      equal(tape.backward(rows, Tensor<double>{{1}, {10}, {100}, {1000}})[weight], Tensor<double>{{0}, {1011}, {100}}));
}

TEST_CASE("indexing: sums of float are taken in double, whatever the order") {
  const Tensor<float> big{16777216.0f};
  CHECK(scatter_add(big, 0, zeros<std::int64_t>({4}), ones<float>({4})).item() == 16777220.0f);
  CHECK(index_add(big, 0, zeros<std::int64_t>({4}), ones<float>({4})).item() == 16777220.0f);
  CHECK(equal(cumsum(Tensor<float>{16777216.0f, 1.0f, 1.0f, 1.0f, 1.0f}, 0),
              Tensor<float>{16777216, 16777216, 16777218, 16777220, 16777220}));
}

TEST_CASE("indexing: along every axis, on a strided index and a strided tensor, against plain loops") {
  NumpyRandom rng(5);
  const auto x = rng.randn({4, 2, 3}).permute({1, 2, 0});  // (2, 3, 4)
  for (int axis : {0, 1, 2}) {
    const std::int64_t size = x.size(axis);
    const Index index = rng.randint(0, size, x.shape().replaced(axis, 10)).slice(axis, 0, 10, 2);
    const Index row = rng.randint(0, size, {10}).slice(0, 1, 10, 2);
    const auto picked = gather(x, axis, index), rows = index_select(x, axis, row);
    const auto src = rng.randn(index.shape());
    const auto scattered = scatter_add(x, axis, index, src), added = index_add(x, axis, row, src);
    std::vector<double> expected_scattered = x.to_vector(), expected_added = expected_scattered;
    for (std::int64_t i = 0; i < index.size(0); ++i)
      for (std::int64_t j = 0; j < index.size(1); ++j)
        for (std::int64_t k = 0; k < index.size(2); ++k) {
          const std::int64_t at = axis == 0 ? i : axis == 1 ? j : k, to = index.at({i, j, k}), line = row.at({at});
          CHECK(picked.at({i, j, k}) == x.at({axis == 0 ? to : i, axis == 1 ? to : j, axis == 2 ? to : k}));
          CHECK(rows.at({i, j, k}) == x.at({axis == 0 ? line : i, axis == 1 ? line : j, axis == 2 ? line : k}));
          const auto flat = [axis, i, j, k](std::int64_t p) {
            return static_cast<std::size_t>(((axis == 0 ? p : i) * 3 + (axis == 1 ? p : j)) * 4 + (axis == 2 ? p : k));
          };
          expected_scattered[flat(to)] += src.at({i, j, k});
          expected_added[flat(line)] += src.at({i, j, k});
        }
    CHECK(equal(scattered, from_vector(expected_scattered, x.shape())));
    CHECK(equal(added, from_vector(expected_added, x.shape())));
  }
}

TEST_CASE("indexing: many rows on several threads, the same as one after the other") {
  NumpyRandom rng(6);
  const Index index = rng.randint(0, 300, {2000});
  const auto src = rng.randn({2000, 64});
  std::vector<double> expected(300 * 64);
  for (std::int64_t i = 0; i < 2000; ++i)
    for (std::int64_t c = 0; c < 64; ++c) expected[static_cast<std::size_t>(index.at({i}) * 64 + c)] += src.at({i, c});
  CHECK(equal(index_add(zeros<double>({300, 64}), 0, index, src), from_vector(expected, {300, 64})));
}

TEST_CASE("indexing: topk orders by size, then by place; NaN is largest") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const auto top = topk(Tensor<double>{2, 7, 7, -inf, inf, 3}, 4);
  CHECK(equal(top.values, Tensor<double>{inf, 7, 7, 3}));
  CHECK(equal(top.indices, Index{4, 1, 2, 5}));
  CHECK(equal(topk(Tensor<double>{1, nan, inf, nan}, 3).indices, Index{1, 3, 2}));
  CHECK(topk(zeros<float>({2, 0}), 0).values.shape() == Shape{2, 0});
  CHECK(topk(Tensor<float>{1, 2}, 0).indices.shape() == Shape{0});
}

TEST_CASE("indexing: topk against sorting everything, along every axis") {
  NumpyRandom rng(7);
  const auto x = to<double>(rng.randint(0, 9, {5, 4, 6})).permute({2, 0, 1});  // many ties
  for (int axis : {0, 1, 2})
    for (std::int64_t k = 0; k <= x.size(axis); ++k) {
      const auto top = topk(x, k, axis);
      const auto lines = x.transpose(axis, 2), values = top.values.transpose(axis, 2);
      const auto indices = top.indices.transpose(axis, 2);
      for (std::int64_t i = 0; i < lines.size(0); ++i)
        for (std::int64_t j = 0; j < lines.size(1); ++j) {
          const auto line = lines[i][j].to_vector();
          std::vector<std::int64_t> order(line.size());
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(),
                           [&](auto a, auto b) { return line[std::size_t(a)] > line[std::size_t(b)]; });
          order.resize(std::size_t(k));
          CHECK(indices[i][j].to_vector() == order);
          for (std::int64_t n = 0; n < k; ++n) CHECK(values.at({i, j, n}) == line[std::size_t(order[std::size_t(n)])]);
        }
    }
}

TEST_CASE("indexing: empty and zero-dimensional") {
  const auto none = zeros<double>({0, 3});
  CHECK(gather(none, 0, zeros<std::int64_t>({0, 3})).shape() == Shape{0, 3});
  CHECK(gather(zeros<double>({2, 3}), 1, zeros<std::int64_t>({2, 0})).shape() == Shape{2, 0});
  CHECK(index_select(zeros<double>({2, 3}), 1, zeros<std::int64_t>({0})).shape() == Shape{2, 0});
  CHECK(equal(scatter_add(ones<double>({2}), 0, zeros<std::int64_t>({0}), zeros<double>({0})), ones<double>({2})));
  CHECK(
      equal(index_add(ones<double>({2, 3}), 0, zeros<std::int64_t>({0}), zeros<double>({0, 3})), ones<double>({2, 3})));
  CHECK(embedding(zeros<std::int64_t>({2, 0}), zeros<double>({5, 3})).shape() == Shape{2, 0, 3});
  CHECK(equal(embedding(scalar<std::int64_t>(1), Tensor<double>{{1, 2}, {3, 4}}), Tensor<double>{3, 4}));
  CHECK(cumsum(none, 0).shape() == Shape{0, 3});
  CHECK(equal(one_hot(scalar<std::int64_t>(1), 3), Index{0, 1, 0}));
  CHECK(one_hot(zeros<std::int64_t>({0}), 3).shape() == Shape{0, 3});
  CHECK(equal(cumsum(Index{{1, 2}, {3, 4}}, 1), Index{{1, 3}, {3, 7}}));
}

TEST_CASE("indexing: a tensor without elements may have axes of any size, and costs nothing") {
  const std::int64_t huge = std::int64_t{1} << 60;
  const auto wide = zeros<double>({0, huge}), tall = zeros<double>({huge, 0});
  const auto none = zeros<std::int64_t>({0});
  CHECK(index_select(wide, 0, none).shape() == Shape{0, huge});
  CHECK(index_select(tall, 0, Index{5, 5}).shape() == Shape{2, 0});
  CHECK(index_add(tall, 0, Index{5}, zeros<double>({1, 0})).shape() == Shape{huge, 0});
  CHECK(gather(wide, 1, zeros<std::int64_t>({0, 3})).shape() == Shape{0, 3});
  CHECK(scatter_add(wide, 1, zeros<std::int64_t>({0, 3}), zeros<double>({0, 3})).shape() == Shape{0, huge});
  CHECK(embedding(none, zeros<double>({huge, 0})).shape() == Shape{0, 0});
  CHECK(cumsum(wide, 0).shape() == Shape{0, huge});
  CHECK(cumsum(tall, 1).shape() == Shape{huge, 0});
  CHECK(topk(wide, 2).values.shape() == Shape{0, 2});
  CHECK(rope(zeros<double>({huge, 0}), scalar<std::int64_t>(1)).shape() == Shape{huge, 0});
  CHECK(layer_norm(wide).shape() == Shape{0, huge});
  CHECK(message<IndexError>([&] { index_select(wide, 0, Index{0}); }).find("index 0 into nothing") !=
        std::string::npos);
}

TEST_CASE("indexing: what it refuses") {
  const auto x = zeros<double>({2, 3});
  CHECK(message<IndexError>([&] { gather(x, 1, Index{{0}, {3}}); }) == "gather: index 3; it must be in 0 to 2"sv);
  CHECK(message<IndexError>([&] { gather(x, 1, Index{{-1}, {0}}); }) == "gather: index -1; it must be in 0 to 2"sv);
  CHECK(message<IndexError>([&] {
          gather(x, 2, Index{{0}, {0}});
        }) == "gather: axis 2 is out of range for shape (2, 3); it has axes -2 to 1"sv);
  CHECK(message<ShapeError>([&] {
          gather(x, 1, Index{0, 1});
        }) ==
        "gather: an index of shape (2,) for shape (2, 3) along axis 1; it needs the same rank, and on the "
        "other axes at most the tensor's sizes"sv);
  CHECK(message<ShapeError>([&] {
          gather(x, 1, zeros<std::int64_t>({3, 1}));
        }).find("at most the tensor's sizes") != std::string::npos);
  CHECK(message<ShapeError>([&] {
          scatter_add(x, 1, Index{{0}, {0}}, zeros<double>({2, 2}));
        }) == "scatter_add: a source of shape (2, 2) and an index of shape (2, 1); they must be equal"sv);
  CHECK(message<IndexError>([&] {
          scatter_add(x, 1, Index{{0}, {5}}, zeros<double>({2, 1}));
        }) == "scatter_add: index 5; it must be in 0 to 2"sv);
  CHECK(message<ShapeError>([&] { index_select(x, 0, Index{{0}}); }) ==
        "index_select: an index of shape (1, 1); it takes a one-dimensional one (gather takes any rank)"sv);
  CHECK(message<IndexError>([&] { index_select(x, 0, Index{2}); }) == "index_select: index 2; it must be in 0 to 1"sv);
  CHECK(message<IndexError>([&] {
          index_select(zeros<double>({0, 3}), 0, Index{0});
        }) == "index_select: index 0 into nothing: the axis has size 0"sv);
  CHECK(message<ShapeError>([&] {
          index_add(x, 0, Index{0, 1, 1}, zeros<double>({2, 3}));
        }) == "index_add: a source of shape (2, 3) for shape (2, 3) and 3 indices along axis 0; it must be (3, 3)"sv);
  CHECK(message<IndexError>([&] {
          index_add(x, 0, Index{-1}, zeros<double>({1, 3}));
        }) == "index_add: index -1; it must be in 0 to 1"sv);
  CHECK(message<IndexError>([&] { embedding(Index{7}, x); }) == "embedding: index 7; it must be in 0 to 1"sv);
  CHECK(message<ShapeError>([&] { embedding(Index{7}, scalar(1.0)); }).find("embedding: a zero-dimensional weight") ==
        0);
  CHECK(message<ValueError>([&] { topk(x, 4); }) == "topk: k 4 along axis 1 of shape (2, 3); it must be in 0 to 3"sv);
  CHECK(message<ValueError>([&] { topk(x, -1); }).find("topk: k -1") == 0);
  CHECK(message<ValueError>([&] { one_hot(Index{0}, -1); }) ==
        "one_hot: -1 classes; their number must not be negative"sv);
  CHECK(message<IndexError>([&] { one_hot(Index{3}, 3); }) == "one_hot: index 3; it must be in 0 to 2"sv);
  CHECK(message<IndexError>([&] { cumsum(scalar(1.0), 0); }) ==
        "cumsum: axis 0 of a zero-dimensional tensor, which has no axes"sv);
}

TEST_CASE("indexing: gradients of repeated indices accumulate") {
  CHECK(gradient(
            [](const auto& x) {
              return sum(gather(x, 0, Index{0, 0}) * Tensor<double>{0.2, 0.3});
            },
            Tensor<double>{0.1})
            .item() == 0.5);
  const auto rows = gradient(
      [](const auto& w) {
        return sum(embedding(Index{1, 1, 2, 1}, w) * Tensor<double>{{1}, {10}, {100}, {1000}});
      },
      zeros<double>({3, 1}));
  CHECK(equal(rows, Tensor<double>{{0}, {1011}, {100}}));
  NumpyRandom rng(4);
  for (std::int64_t n : {1, 7, 100}) {
    const auto index = rng.randint(0, 5, {n});
    std::vector<double> counts(5);
    for (std::int64_t i : index.to_vector()) ++counts[std::size_t(i)];
    const auto expected = from_vector(counts, {5});
    CHECK(equal(gradient([&](const auto& x) { return sum(gather(x, 0, index)); }, zeros<double>({5})), expected));
    CHECK(equal(gradient([&](const auto& x) { return sum(index_select(x, 0, index)); }, zeros<double>({5})), expected));
    CHECK(equal(gradient([&](const auto& x) { return sum(embedding(index, x)); }, zeros<double>({5})), expected));
  }
}
