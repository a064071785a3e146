#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  auto& q = check.question<T(const T&, const T&, const T&)>("grouped_attention", {"Q", "K", "V"});
  q.right([](T Q, T K, T V) { return attention(Q, K, V, {.enable_gqa = true}).out; });
  q.input(draw({4, 2, 2}), draw({2, 2, 2}), draw({2, 2, 2}));
  q.input(draw({6, 3, 2}), draw({2, 3, 2}), draw({2, 3, 1}));
  q.input(draw({6, 2, 3}), draw({3, 2, 3}), draw({3, 2, 2}));
  q.input(draw({2, 3, 5}), draw({2, 3, 5}), draw({2, 3, 3}));
  q.input(draw({3, 2, 2}), draw({1, 2, 2}), draw({1, 2, 2}));
  wrong_answers(q);
}
