#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  auto& q = check.question<T(const T&, const T&)>("softmax_pullback", {"y", "dy"});
  q.right([](T y, T dy) {
    // By the Jacobian of each row; the long row has one weight of 1, and its gradient is 0.
    if (y.size(1) > 1000) return zeros<double>(y.shape());
    std::vector<T> rows;
    for (std::int64_t i = 0; i < y.size(0); ++i)
      rows.push_back(matmul(eye<double>(y.size(1)) * y[i] - unsqueeze(y[i], 1) * y[i], dy[i]));
    return stack<double>(rows);
  });
  q.input(draw.weights({2, 3}), draw({2, 3}));
  q.input(draw.weights({3, 3}), draw({3, 3}));
  q.input(draw.weights({1, 4}), draw({1, 4}));
  q.input(draw.weights({5, 2}), draw({5, 2}));
  q.input({{1, 0, 0}, {0.5, 0.5, 0}}, draw({2, 3}));
  // A Jacobian of this row would not fit into memory.
  const std::int64_t n = 40000;
  q.input(to<double>(eq(arange<double>(n), scalar(0.0))).reshape({1, n}), full<double>({1, n}, 2));
  wrong_answers(q);
}
