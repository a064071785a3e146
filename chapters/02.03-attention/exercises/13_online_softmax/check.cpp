#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  auto& q = check.question("add_score", {"scores, one after the other"},
                           fold(check.function<Running(Running, double)>("add_score")));
  q.right(whole);
  q.input({0.5, 2.0, -1.0});
  q.input({3.0});
  q.input({-inf, -inf, 1.0, -inf, 2.5});
  q.input({-inf, -inf});
  q.input({1000, 1001.5, 999, 1003});
  q.input({-5, -1200, -4, -3});
  q.input({2, 2, 1, 2});
  q.input(draw({9}));
  wrong_add(q);

  auto& p = check.question("merge", {"scores of a", "scores of b"},
                           both(check.function<Running(Running, Running)>("merge")));
  p.right([](T a, T b) { return whole(cat<double>({a, b})); });
  p.input({1, 2}, {0.5, 3.5});
  p.input({4, 2}, {0.5, -1, 3});
  p.input(zeros<double>({0}), {1.5, 2});
  p.input({1.5, 2}, zeros<double>({0}));
  p.input({-inf}, {-inf, -inf});
  p.input({1000, 1002}, {999.5});
  p.input({-2000}, {3, 900});
  p.input({2, 1}, {0, 2});
  p.input(draw({4}), draw({3}));
  wrong_merge(p);
}
