#include "checker.hpp"

namespace exercise {

void softmax_by_hand(Checker& check, T (*answer)(const T&)) {
  Draw draw(6);
  Question<T, T> q(check, "softmax_by_hand", answer, {"x"});
  q.right([](auto& x) { return softmax(x, -1); });
  q.mistake("wrong axis: each row is to sum to one, not each column", [](auto& x) { return softmax(x, 0); });
  q.mistake("the sum runs over the whole matrix; each row has its own", [](auto& x) {
    const T e = exp(x - max(x));
    return e / sum(e);
  });
  q.mistake("the largest score was not subtracted: exp overflows, and inf / inf is NaN", [](auto& x) {
    const T e = exp(x);
    return e / sum(e, -1, true);
  });
  q.mistake("one largest score for the whole matrix: rows far below it become 0 / 0", [](auto& x) {
    const T e = exp(x - max(x));
    return e / sum(e, -1, true);
  });
  q.mistake("not yet divided by the sum of each row", [](auto& x) { return exp(x - max(x, -1, true)); });
  q.mistake("the scores themselves are divided by their sum: exp is missing",
            [](auto& x) { return x / sum(x, -1, true); });
  q.mistake("sum and max without `true` lose their axis, and line up with the columns", [](auto& x) {
    const T e = exp(x - max(x, -1));
    return e / sum(e, -1);
  });
  q.mistake("this is the logarithm of the softmax", [](auto& x) { return log_softmax(x, -1); });
  q.input(draw({2, 3}));
  q.input(draw({3, 3}));
  q.input(T{{1000, 1001}, {-2000, -2002}});
  q.input(draw({4, 1}));
  q.input(draw({5, 7}) * 10);
  q.ask();
}

}  // namespace exercise
