#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  auto& q = check.question<T(const T&, const T&)>("blend", {"a", "V"});
  q.right([](T a, T V) { return matmul(a, V); });
  q.input({0.5, 0.3, 0.2}, {{0, 0}, {10, 0}, {0, 10}});
  for (const std::int64_t n : {3, 4, 7}) q.input(draw.weights({n}), draw({n, n == 4 ? 2 : n}));
  wrong_blend(q);

  auto& p = check.question<bool(const T&, const T&)>("reachable", {"point", "V"});
  p.right(inside);
  p.input({12, 0.5}, {{0, 0}, {10, 0}, {0, 10}});
  p.input({2, 3}, {{0, 0}, {10, 0}, {0, 10}});
  p.input({2, 3}, {{0, 0}, {0, 10}, {10, 0}});
  p.input({8, 8}, {{0, 0}, {10, 0}, {0, 10}});
  p.input({4, 4}, {{0, 0}, {10, 0}, {0, 10}});
  p.input({-1, -1}, {{0, 0}, {0, 10}, {10, 0}});
  p.input({1010, 1000.5}, {{1000, 1000}, {1030, 1000}, {1000, 1002}});
  for (int made = 0; made < 30;) {
    const T V = draw({3, 2}), x = made % 2 == 0 ? round(matmul(draw.weights({3}), V), 2) : draw({2});
    const T w = weights_of(x, V);
    if (std::abs(w.at({3})) < 0.1 || min(abs(w)).item() < 0.02)
      continue;  // too flat, or too close to an edge
    p.input(x, V);
    ++made;
  }
  wrong_reachable(p);
}
