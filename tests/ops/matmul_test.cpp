#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;

TEST_CASE("matmul: matmul with a one-dimensional operand") {
  const Tensor<double> A{{1, 2}, {3, 4}}, b{5, 6}, u{5, 6}, B{{1, 2, 3}, {4, 5, 6}};
  Tape<double> tape;
  tape.watch({A, b, u, B});
  const auto first = tape.backward(sum(matmul(A, b)));
  CHECK(equal(first[A], Tensor<double>{{5, 6}, {5, 6}}));
  CHECK(equal(first[b], Tensor<double>{4, 6}));
  const auto second = tape.backward(matmul(u, B), {1, 10, 100});
  CHECK(equal(second[u], Tensor<double>{321, 654}));
  CHECK(equal(second[B], Tensor<double>{{5, 50, 500}, {6, 60, 600}}));
  NumpyRandom rng(3);  // sizes that happen to match, and that do not
  for (std::int64_t k : {1, 2, 3})
    for (const Shape& left : {Shape{k}, Shape{2, k}, Shape{3, 2, k}, Shape{k, k}})
      for (const Shape& right : {Shape{k}, Shape{k, 2}, Shape{3, k, 2}, Shape{k, k}}) {
        const auto report = gradcheck([](auto x, auto y) { return matmul(x, y); }, {rng.randn(left), rng.randn(right)});
        CHECK_MESSAGE(report, left.str() << " @ " << right.str() << ": " << report.text());
      }
}
