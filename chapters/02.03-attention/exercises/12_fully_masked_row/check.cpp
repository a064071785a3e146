#include "checker.hpp"
#include "tapehead/autograd/tape.hpp"

namespace exercise {

void fully_masked_row(Checker& check, T (*answer)(const T&, const T&, const T&, const Mask&)) {
  using Function = std::function<T(const T&, const T&, const T&, const Mask&)>;
  // What is compared is the output and the three gradients.
  const auto differentiated = [](const Function& f) {
    return [f](const T& Q, const T& K, const T& V, const Mask& mask, const T& dO) -> Parts {
      Tape<double> tape;
      tape.watch({Q, K, V});
      const T out = f(Q, K, V, mask);
      if (!(out.shape() == dO.shape())) return {{"out", out}, {"dQ", {}}, {"dK", {}}, {"dV", {}}};
      const auto grad = tape.backward(out, dO);
      return {{"out", detach(out)}, {"dQ", grad[Q]}, {"dK", grad[K]}, {"dV", grad[V]}};
    };
  };
  const auto scores = [](const T& Q, const T& K) {
    return matmul(Q, K.T()) / std::sqrt(static_cast<double>(Q.size(-1)));
  };
  const auto filled = [=](double with) {
    return differentiated([=](auto& Q, auto& K, auto& V, auto& mask) {
      return matmul(softmax(where(mask, scores(Q, K), scalar(with)), -1), V);
    });
  };
  Question<Parts, T, T, T, Mask, T> q(check, "masked_attention", differentiated(answer),
                                      {"Q", "K", "V", "mask", "dO"});
  q.right(differentiated(
      [](auto& Q, auto& K, auto& V, auto& mask) { return attention(Q, K, V, {.mask = mask}).out; }));
  q.mistake("the row without a key is NaN: -inf - (-inf)", filled(-inf));
  q.mistake(
      "the NaN is removed after softmax, but -inf was added to the scores: going back, 0 times NaN is NaN",
      differentiated([=](auto& Q, auto& K, auto& V, auto& mask) {
        const T A = softmax(scores(Q, K) + where(mask, scalar(0.0), scalar(-inf)), -1);
        return matmul(where(mask, A, scalar(0.0)), V);
      }));
  q.mistake("the NaN is removed from the output: the output is clean, the gradient is not",
            differentiated([=](auto& Q, auto& K, auto& V, auto& mask) {
              const T out = matmul(softmax(where(mask, scores(Q, K), scalar(-inf)), -1), V);
              return where(eq(out, out), out, scalar(0.0));
            }));
  q.mistake("filled with a large negative number: the row without a key attends to all evenly", filled(-1e9));
  q.mistake("forbidden scores are filled with 0: e^0 = 1 is a weight like any other; use -inf", filled(0));
  q.mistake("the mask came after softmax: the rows that are left do not sum to one",
            differentiated([=](auto& Q, auto& K, auto& V, auto& mask) {
              return matmul(softmax(scores(Q, K), -1) * to<double>(mask), V);
            }));
  q.mistake("the scale is missing", differentiated([](auto& Q, auto& K, auto& V, auto& mask) {
              return attention(Q, K, V, {.mask = mask, .scale = 1.0}).out;
            }));
  q.mistake("the gradient is lost: values were taken out of their tensors, where the tape cannot follow",
            differentiated([](auto& Q, auto& K, auto& V, auto& mask) {
              return attention(detach(Q), detach(K), V, {.mask = mask}).out;
            }));
  Draw draw(12);
  q.input(draw({2, 2}), draw({3, 2}), draw({3, 2}), Mask{{true, false, true}, {false, false, false}},
          draw({2, 2}));
  q.input(draw({3, 4}), draw({3, 4}), draw({3, 1}), causal_mask(3), draw({3, 1}));
  q.input(draw({4, 3}), draw({2, 3}), draw({2, 5}),
          Mask{{false, false}, {true, true}, {false, true}, {false, false}}, draw({4, 5}));
  q.ask();
}

}  // namespace exercise
