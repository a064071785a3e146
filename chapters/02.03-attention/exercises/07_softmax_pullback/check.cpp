#include "checker.hpp"

namespace exercise {

void softmax_pullback(Checker& check, T (*answer)(const T&, const T&)) {
  Draw draw(7);
  Question<T, T, T> q(check, "softmax_pullback", answer, {"y", "dy"});
  q.right([](auto& y, auto& dy) {  // by the Jacobian of each row
    std::vector<T> rows;
    for (std::int64_t i = 0; i < y.size(0); ++i)
      rows.push_back(matmul(eye<double>(y.size(1)) * y[i] - unsqueeze(y[i], 1) * y[i], dy[i]));
    return stack<double>(rows);
  });
  q.mistake("forgot the D term: y ⊙ dy alone would hold if each weight depended on its own score only",
            [](auto& y, auto& dy) { return y * dy; });
  q.mistake("the sum inside D is of dy alone; it has to be weighted, of y ⊙ dy",
            [](auto& y, auto& dy) { return y * (dy - sum(dy, -1, true)); });
  q.mistake("D is the mean of y ⊙ dy; it is the sum: y are weights already",
            [](auto& y, auto& dy) { return y * (dy - mean(y * dy, -1, true)); });
  q.mistake("the factor y in front is missing", [](auto& y, auto& dy) { return dy - sum(y * dy, -1, true); });
  q.mistake("D is subtracted outside the product: y ⊙ dy - D",
            [](auto& y, auto& dy) { return y * dy - sum(y * dy, -1, true); });
  q.mistake("wrong sign before D", [](auto& y, auto& dy) { return y * (dy + sum(y * dy, -1, true)); });
  q.mistake("one D for the whole matrix; each row has its own",
            [](auto& y, auto& dy) { return y * (dy - sum(y * dy)); });
  q.mistake("wrong axis: D sums along a row, the axis of the softmax",
            [](auto& y, auto& dy) { return y * (dy - sum(y * dy, 0, true)); });
  q.mistake("D without `true` loses its axis, and lines up with the columns",
            [](auto& y, auto& dy) { return y * (dy - sum(y * dy, -1)); });
  q.mistake("only the diagonal of the Jacobian: y (1 - y) dy is the gradient of a sigmoid",
            [](auto& y, auto& dy) { return y * (1 - y) * dy; });
  q.input(draw.weights({2, 3}), draw({2, 3}));
  q.input(draw.weights({3, 3}), draw({3, 3}));
  q.input(draw.weights({1, 4}), draw({1, 4}));
  q.input(draw.weights({5, 2}), draw({5, 2}));
  q.input(T{{1, 0, 0}, {0.5, 0.5, 0}}, draw({2, 3}));
  q.ask();
}

}  // namespace exercise
