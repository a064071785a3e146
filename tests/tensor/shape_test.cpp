#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::has;
using testing::message;

TEST_CASE("shape: element counts that do not fit throw before anything is allocated") {
  CHECK(Shape{4740, 840, 840}.numel() == 3'344'544'000);
  const auto before = memory_use();
  const std::int64_t large = std::int64_t{1} << 62;
  for (const Shape& shape : {Shape{large + 2}, Shape{std::int64_t{1} << 32, std::int64_t{1} << 32}, Shape{-1},
                             Shape{2, -3}, Shape{3, large, 5}, Shape{large, 2, 2, 2}}) {
    CAPTURE(shape.str());
    CHECK_THROWS_AS(zeros<float>(shape), ShapeError);
    CHECK_THROWS_AS(Buffer<double>{shape}, ShapeError);
  }
  CHECK_THROWS_AS(broadcast_to(scalar(1.0f), {large, 4}), ShapeError);
  CHECK_THROWS_AS(one_hot(zeros<std::int64_t>({4}), large), ShapeError);
  CHECK_THROWS_AS(unslice(zeros<float>({1}), {large + 2}, 0, 0), ShapeError);
  CHECK(memory_use().bytes == before.bytes);
  CHECK(memory_use().blocks == before.blocks);
  CHECK(zeros<float>({0, large, 4}).numel() == 0);
}

TEST_CASE("shape: negative axes, axes named twice, and reshaping what is not contiguous") {
  const auto x = arange<double>(6).reshape({2, 3});
  CHECK(equal(x.T().reshape({6}), Tensor<double>{0, 3, 1, 4, 2, 5}));
  CHECK(has(message<ValueError>([&] { sum(x, {0, -2}); }), "sum: axis -2 is named twice for shape (2, 3)"));
  CHECK(equal(permute(x, {-1, -2}), x.T()));
  CHECK_THROWS_AS(permute(x, {0, -2}), ValueError);
  using F = Tensor<double> (*)(const Tensor<double>&, int);
  static const Tensor<std::int64_t> index{0, 1};
  const std::vector<F> along{[](const auto& v, int a) { return sum(v, a); },
                             [](const auto& v, int a) { return mean(v, a, true); },
                             [](const auto& v, int a) { return max(v, a); },
                             [](const auto& v, int a) { return var(v, a); },
                             [](const auto& v, int a) { return norm(v, a); },
                             [](const auto& v, int a) { return softmax(v, a); },
                             [](const auto& v, int a) { return log_softmax(v, a); },
                             [](const auto& v, int a) { return logsumexp(v, a); },
                             [](const auto& v, int a) { return cumsum(v, a); },
                             [](const auto& v, int a) { return flip(v, a); },
                             [](const auto& v, int a) { return v.slice(a, 0, 1); },
                             [](const auto& v, int a) { return v.select(a, -1); },
                             [](const auto& v, int a) {
                               return cat(std::vector{v, v}, a);
                             },
                             [](const auto& v, int a) { return topk(v, 2, a).values; },
                             [](const auto& v, int a) { return v.transpose(a, 0); },
                             [](const auto& v, int a) { return index_select(v, a, index); },
                             [](const auto& v, int a) { return to<double>(argmax(v, a)); },
                             [](const auto& v, int a) { return split(v, 1, a)[0]; },
                             [](const auto& v, int a) {
                               return gather(v, a, zeros<std::int64_t>({2, 2, 2}));
                             }};
  const auto y = NumpyRandom(5).randn({2, 3, 4});
  for (std::size_t i = 0; i < along.size(); ++i) {
    CAPTURE(i);
    for (int axis : {0, 1, 2}) CHECK(equal(along[i](y, axis), along[i](y, axis - 3)));
    for (int axis : {3, -4, 1'000'000}) CHECK_THROWS_AS(along[i](y, axis), IndexError);
  }
}

TEST_CASE("shape: an axis that there is not is refused, for reading and for writing") {
  Shape s{2, 3};
  CHECK(s[1] == 3);
  s[1] = 5;
  CHECK(s == Shape{2, 5});
  CHECK(message<IndexError>([&] { s[-1]; }) ==
        "shape: (2, 5) has no axis -1; axes are counted from 0, and x.size(-1) counts from the end"sv);
  for (int axis : {2, 6, 7, -1000, 1'000'000}) {
    CHECK_THROWS_AS(s[axis], IndexError);
    CHECK_THROWS_AS(s[axis] = 1, IndexError);
  }
  CHECK_THROWS_AS(Shape()[0], IndexError);
}

TEST_CASE("shape: equal where rank and sizes are") {
  CHECK(Shape{} == Shape{});
  CHECK(Shape{2, 3} == Shape{2, 3});
  for (const Shape& other : {Shape{}, Shape{2}, Shape{3, 2}, Shape{2, 3, 1}, Shape{1, 2, 3}})
    CHECK_FALSE(Shape{2, 3} == other);
  CHECK(Shape{0, 3}.str() == "(0, 3)"sv);
  CHECK(Shape{5}.str() == "(5,)"sv);
  CHECK(Shape{}.str() == "()"sv);
}

TEST_CASE("shape: strides of rows, and of what is broadcast") {
  CHECK(row_major({2, 3, 4}) == Strides{12, 4, 1});
  CHECK(row_major({2, 0, 4}) == Strides{0, 0, 0});
  CHECK(is_row_major({2, 1, 4}, {4, 77, 1}));
  CHECK_FALSE(is_row_major({2, 4}, {1, 2}));
  CHECK(broadcast_shapes("f", {3, 1}, {2, 1, 4}) == Shape{2, 3, 4});
  CHECK(broadcast_shapes("f", {0}, {1}) == Shape{0});
  CHECK(broadcasts_to({}, {2, 3}));
  CHECK(broadcasts_to({1, 3}, {2, 3}));
  CHECK_FALSE(broadcasts_to({2, 3}, {3}));
  CHECK_FALSE(broadcasts_to({2}, {2, 3}));
  CHECK(broadcast_strides({3, 1}, {1, 1}, {2, 3, 4}) == Strides{0, 1, 0});
  CHECK(Axes({0, -1}).mask("f", {2, 3, 4}) == std::vector<bool>{true, false, true});
  CHECK(Axes().mask("f", {2, 3}) == std::vector<bool>{true, true});
}
