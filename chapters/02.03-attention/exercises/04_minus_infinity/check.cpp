#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  const auto answer = check.function<T()>("a_row_that_breaks");
  auto& q =
      check.question("a_row_that_breaks", {}, std::function<Parts()>([=] { return properties(answer()); }));
  q.right([] { return properties({-inf, -inf}); });
  wrong_row(q);

  auto& w = check.question<T(const T&, const Mask&)>("masked_weights", {"scores", "allowed"});
  w.right([](T S, Mask allowed) { return softmax(where(allowed, S, scalar(-inf)), -1, EmptyRows::zero); });
  w.input(T{{2, 7, 1}, {0.5, -1, 0.25}}, Mask{{true, false, true}, {true, true, false}});
  w.input(T{{3, 1, 2}, {1, 2, 0.5}}, Mask{{false, false, false}, {true, true, true}});
  w.input(draw({3, 5}), Mask{{true, true, false, true, true},
                             {true, false, true, true, false},
                             {false, true, true, true, true}});
  w.input(draw({4, 3}), draw.mask({4, 3}, 0.6));
  w.input(T{{800, 0}, {0, 0}}, Mask{{false, true}, {true, true}});  // the largest score is a forbidden one
  w.input(T{{1000, 998}, {-1000, -1002}}, Mask{{true, true}, {true, true}});
  w.input(T{{-3e12, -3e12}, {0, 5}},
          Mask{{true, false}, {false, false}});  // below any "large negative number"
  w.input(draw({3, 3}), Mask{{false, false, false}, {true, false, true}, {false, false, false}});
  wrong_weights(w);
}
