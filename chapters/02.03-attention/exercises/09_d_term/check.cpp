#include "checker.hpp"

namespace exercise {

void d_term(Checker& check, T (*from_weights)(const T&, const T&), T (*from_output)(const T&, const T&)) {
  Question<T, T, T> a(check, "d_from_weights", from_weights, {"A", "dA"});
  Question<T, T, T> o(check, "d_from_output", from_output, {"dO", "O"});
  for (auto* q : {&a, &o}) {
    q->right([](auto& x, auto& y) { return sum(x * y, -1, true); });
    q->mistake("the axis is gone: D is (n_q, 1); sum(..., -1, true) keeps it",
               [](auto& x, auto& y) { return sum(x * y, -1); });
    q->mistake("one number for everything: every query has its own D", [](auto& x, auto& y) {
      return full<double>({x.size(0), 1}, sum(x * y).item());
    });
    q->mistake("wrong axis: D sums along each row", [](auto& x, auto& y) { return mT(sum(x * y, 0, true)); });
    q->mistake("the mean where the sum belongs", [](auto& x, auto& y) { return mean(x * y, -1, true); });
    q->mistake("a product of matrices: D needs only its diagonal",
               [](auto& x, auto& y) { return matmul(x, y.T()); });
    q->mistake("the first is not used: D is weighted", [](auto&, auto& y) { return sum(y, -1, true); });
    q->mistake("the second is not used", [](auto& x, auto&) { return sum(x, -1, true); });
  }
  Draw draw(9);
  for (const std::int64_t n : {3, 2, 5, 1}) {
    const T A = draw.weights({n, n == 3 ? 3 : 4}), V = draw({A.size(1), 2}), dO = draw({n, 2});
    a.input(A, matmul(dO, V.T()));
    o.input(dO, matmul(A, V));
  }
  a.ask();
  o.ask();
}

}  // namespace exercise
