#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  auto& q = check.question<Backward(const T&, const T&, const T&, const T&)>("backward_by_hand",
                                                                             {"Q", "K", "V", "dO"});
  q.right([](T Q, T K, T V, T dO) -> Backward {
    Tape<double> tape;
    tape.watch({Q, K, V});
    const T S = matmul(Q, K.T()) / std::sqrt(static_cast<double>(Q.size(-1))), A = softmax(S, -1);
    tape.watch({S, A});
    const auto grad = tape.backward(matmul(A, V), dO);
    return {grad[V], grad[A], grad[S], grad[Q], grad[K]};
  });
  q.input(draw({3, 2}), draw({3, 2}), draw({3, 2}), draw({3, 2}));
  q.input(draw({2, 3}), draw({4, 3}), draw({4, 2}), draw({2, 2}));
  q.input(draw({5, 7}), draw({3, 7}), draw({3, 1}), draw({5, 1}));
  q.input(draw({2, 2}) * 40, draw({2, 2}) * 40, draw({2, 2}), draw({2, 2}));
  wrong_answers(q);
}
