// The lowest rung: operations from broadcasting, sums and maxima.
#include "tapehead/attention/composed.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "attention/rungs.hpp"

using namespace tapehead;
using namespace rungs;
using testing::message;

TEST_CASE("composed: matmul and softmax are the operations of the same names, values and gradients") {
  NumpyRandom rng(5);
  const Tensor<double> A = rng.randn({2, 3, 4}), B = rng.randn({2, 4, 5}), dC = rng.randn({2, 3, 5});
  Tape<double> tape;
  tape.watch({A, B});
  auto slow = tape.backward(composed::matmul(A, B), dC), fast = tape.backward(matmul(A, B), dC);
  CHECK(close(composed::matmul(A, B), matmul(A, B)));
  CHECK(close(slow[A], fast[A]));
  CHECK(close(slow[B], fast[B]));
  for (int axis : {0, 1, -1}) {
    const Tensor<double> dA = rng.randn({2, 3, 4});
    CHECK(close(composed::softmax(A, axis), softmax(A, axis)));
    CHECK(close(tape.backward(composed::softmax(A, axis), dA)[A], tape.backward(softmax(A, axis), dA)[A]));
  }
}

TEST_CASE("composed: third order, with one tensor as queries, keys and values; a query without keys") {
  NumpyRandom rng(9);
  const Tensor<double> x = rng.randn({3, 2}), u = rng.randn({3, 2}), w = rng.randn({3, 2});
  const auto f = [&](const auto& t) { return sum(composed::attention(t, t, t) * w); };
  CHECK(third_order_error(f, x, u) < 1e-6);
  CHECK(close(along(f, x, u, 3), along([&](const auto& t) { return sum(attention(t, t, t).out * w); }, x, u, 3)));
  const Tensor<bool> none = full<bool>({3, 3}, false);
  CHECK(composed::attention(x, x, x, none).to_vector() == std::vector<double>(6, 0.0));
  CHECK(std::isnan(composed::attention(x, x, x, none, EmptyRows::nan).at({0, 0})));
}
