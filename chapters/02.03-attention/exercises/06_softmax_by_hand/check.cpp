#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  auto& q = check.question<T(const T&)>("softmax_by_hand", {"x"});
  q.right([](T x) { return softmax(x, -1); });
  q.input(draw({2, 3}));
  q.input(draw({3, 3}));
  q.input(draw({4, 1}));
  q.input(draw({5, 7}) * 10);
  q.input({{1000, 1001}, {-2000, -2002}});
  q.input({{1000, 0}, {0, 1000}});  // the mean or the minimum is not enough
  q.input({{0, 1000, 999, 2}, {3000, 1, 2, 3000}});
  wrong_answers(q);
}
