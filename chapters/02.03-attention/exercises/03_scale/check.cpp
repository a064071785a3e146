#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& r = check.question<T()>("raw_weights");
  r.within(0.5e-4);
  r.right([] { return weights_at(1); });
  wrong_raw(r);

  auto& s = check.question<T()>("scaled_weights");
  s.within(0.5e-4);
  s.right([] { return weights_at(6); });
  wrong_scaled(s);

  auto& j = check.question<T(const T&)>("softmax_jacobian", {"a"});
  j.right(jacobian_of);
  for (const std::int64_t n : {3, 2, 5}) j.input(check.draw.weights({n}));
  j.input({1, 0, 0});
  wrong_jacobian(j);

  auto& t = check.question<double()>("times_larger");
  t.within(0.5);
  t.right([] { return largest(6) / largest(1); });
  wrong_times(t);
}
