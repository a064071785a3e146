#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& a = check.question<T(const T&, const T&)>("d_from_weights", {"A", "dA"});
  auto& o = check.question<T(const T&, const T&)>("d_from_output", {"dO", "O"});
  for (const std::int64_t n : {3, 2, 5, 1}) {
    const T A = check.draw.weights({n, n == 3 ? 3 : 4}), V = check.draw({A.size(1), 2}),
            dO = check.draw({n, 2});
    a.input(A, matmul(dO, V.T()));
    o.input(dO, matmul(A, V));
  }
  for (auto* q : {&a, &o}) {
    q->right([](T x, T y) { return sum(x * y, -1, true); });
    wrong_answers(*q);
  }
  wrong_from_weights(a);
  wrong_from_output(o);
}
