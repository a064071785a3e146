#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  auto& p = check.question<RowGradients(const T&, const T&, const T&, const T&, double, double)>(
      "flash_backward_row", {"q", "K", "V", "dO", "lse", "D"});
  // With the tape. The keys of other blocks are constants that add to numerator and denominator of the
  // output.
  p.right([](T q, T K, T V, T dO, double lse, double D) -> RowGradients {
    Tape<double> tape;
    tape.watch({q, K, V});
    const T e = exp(matmul(K, q) / std::sqrt(static_cast<double>(q.size(0))) - lse);
    const T numerator = matmul(e, matmul(V, dO)), denominator = sum(e);
    const double others = D - numerator.item(), others_sum = 1 - denominator.item();
    const auto grad = tape.backward((numerator + others) / (denominator + others_sum));
    return {grad[q], grad[K], grad[V]};
  });
  // n of the keys are in this block, and `others` in other blocks, which count in lse and D.
  const auto give = [&](std::int64_t n, std::int64_t others, std::int64_t d_k, std::int64_t d_v,
                        double times) {
    const T q = draw({d_k}) * times, K = draw({n + others, d_k}), V = draw({n + others, d_v}),
            dO = draw({d_v});
    const T s = matmul(K, q) / std::sqrt(static_cast<double>(d_k));
    p.input(q, K.slice(0, 0, n), V.slice(0, 0, n), dO, logsumexp(s, 0).item(),
            sum(dO * matmul(softmax(s, -1), V)).item());
  };
  give(3, 0, 2, 2, 1);
  give(3, 2, 2, 2, 1);
  give(2, 3, 5, 1, 1);
  give(5, 1, 3, 4, 1);
  give(4, 0, 2, 3, 800);
  const T K{{2, 1}, {1, 3}}, V{{1, 2}, {3, -1}};  // the scores are above 1000
  p.input({900, 10}, K, V, {1, -1}, logsumexp(matmul(K, T{900, 10}) / std::sqrt(2.0), 0).item(), -1);
  wrong_answers(p);
}
