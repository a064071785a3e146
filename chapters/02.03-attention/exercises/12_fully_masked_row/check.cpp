#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  const auto answer = check.function<T(const T&, const T&, const T&, const Mask&)>("masked_attention");
  auto& q = check.question("masked_attention", {"Q", "K", "V", "mask", "dO"},
                           std::function<Parts(T, T, T, Mask, T)>(differentiated(answer)));
  q.right(differentiated([](T Q, T K, T V, Mask mask) { return attention(Q, K, V, {.mask = mask}).out; }));
  q.input(draw({2, 2}), draw({3, 2}), draw({3, 2}), Mask{{true, false, true}, {false, false, false}},
          draw({2, 2}));
  q.input(draw({3, 4}), draw({3, 4}), draw({3, 1}), causal_mask(3), draw({3, 1}));
  q.input(draw({4, 3}), draw({2, 3}), draw({2, 5}),
          Mask{{false, false}, {true, true}, {false, true}, {false, false}}, draw({4, 5}));
  // All allowed scores are far below what is often used in place of -inf.
  q.input({{1e10, 1e10}, {1, 2}}, {{-1e10, -1e10}, {1, 1}}, draw({2, 2}), Mask{{true, false}, {false, false}},
          draw({2, 2}));
  wrong_answers(q);
}
