#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  auto& q = check.question("decode_step", {"Q", "K", "V"},
                           sequence(check.function<T(Cache&, const T&, const T&, const T&)>("decode_step")));
  q.right([](T Q, T K, T V) { return attention(Q, K, V, {.causal = true}).out; });
  q.input(draw({3, 2}), draw({3, 2}), draw({3, 2}));
  q.input(draw({1, 3}), draw({1, 3}), draw({1, 1}));
  q.input(draw({5, 3}), draw({5, 3}), draw({5, 4}));
  q.input({{900, 0}, {0, 900}}, {{2, 1}, {-1, 3}}, {{1, 2}, {3, 4}});
  wrong_answers(q);
}
