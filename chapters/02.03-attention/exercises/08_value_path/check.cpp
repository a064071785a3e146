#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  auto& q = check.question<T(const T&, const T&)>("values_gradient", {"A", "dO"});
  q.right([](T A, T dO) { return matmul(A.T(), dO); });
  q.input(draw.weights({3, 3}), draw({3, 3}));
  q.input(draw.weights({2, 3}), draw({2, 4}));
  q.input(draw.weights({4, 1}), draw({4, 2}));
  q.input(draw.weights({3, 5}), draw({3, 3}));
  wrong_values(q);

  auto& r = check.question<T(const T&, const T&)>("weights_gradient", {"dO", "V"});
  r.right([](T dO, T V) { return matmul(dO, V.T()); });
  r.input(draw({3, 3}), draw({3, 3}));
  r.input(draw({2, 4}), draw({3, 4}));
  r.input(draw({1, 2}), draw({5, 2}));
  wrong_weights(r);
}
