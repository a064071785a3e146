// Exercise 12: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

// What is compared is the output and the three gradients.
using MaskedAttention = std::function<T(T, T, T, Mask)>;
inline std::function<Parts(T, T, T, Mask, T)> differentiated(const MaskedAttention& f) {
  return [f](T Q, T K, T V, Mask mask, T dO) -> Parts {
    Tape<double> tape;
    tape.watch({Q, K, V});
    const T out = f(Q, K, V, mask);
    if (!(out.shape() == dO.shape())) return {{"out", detach(out)}, {"dQ"}, {"dK"}, {"dV"}};
    if (!tape.knows(out))
      return {{"out", out}, {"dQ", {}, "no gradient"}, {"dK", {}, "no gradient"}, {"dV", {}, "no gradient"}};
    const auto grad = tape.backward(out, dO);
    return {{"out", detach(out)}, {"dQ", grad[Q]}, {"dK", grad[K]}, {"dV", grad[V]}};
  };
}
inline T scores(const T& Q, const T& K) {
  return matmul(Q, K.T()) / std::sqrt(static_cast<double>(Q.size(-1)));
}
inline T alive(const Mask& mask) { return max(to<double>(mask), -1, true); }

inline void wrong_answers(Question<Parts(T, T, T, Mask, T)>& q) {
  const auto mistake = [&](const char* name, const MaskedAttention& f) {
    q.mistake(name, differentiated(f));
  };
  const auto filled = [](double fill) {
    return [fill](T Q, T K, T V, Mask mask) {
      return matmul(softmax(where(mask, scores(Q, K), scalar(fill)), -1), V);
    };
  };
  const char* nan =
      "the row without a key is NaN: softmax computes -inf - (-inf), and NaN times 0 is NaN too";
  mistake(nan, filled(-inf));
  mistake(
      "the NaN is removed after softmax, but -inf was added to the scores: in the backward pass, 0 times NaN "
      "is NaN",
      [](T Q, T K, T V, Mask mask) {
        const T A = softmax(scores(Q, K) + where(mask, scalar(0.0), scalar(-inf)), -1);
        return matmul(where(mask, A, scalar(0.0)), V);
      });
  mistake(nan, [](T Q, T K, T V, Mask mask) {
    return matmul(softmax(where(mask, scores(Q, K), scalar(-inf)), -1) * alive(mask), V);
  });
  mistake("the NaN is removed from the output: the output is right, but the gradients are not",
          [](T Q, T K, T V, Mask mask) {
            const T out = matmul(softmax(where(mask, scores(Q, K), scalar(-inf)), -1), V);
            return where(eq(out, out), out, scalar(0.0));
          });
  for (const double fill : {-1e4, -1e9, -1e30, std::numeric_limits<double>::lowest()})
    mistake(
        "forbidden scores are filled with a large negative number: the row without a key then attends to all "
        "keys evenly",
        filled(fill));
  for (const double fill : {-1e4, -1e9})
    mistake(
        "forbidden scores are filled with a large negative number, but a score can be lower still; use -inf",
        [=](T Q, T K, T V, Mask mask) { return filled(fill)(Q, K, V, mask) * alive(mask); });
  mistake("forbidden scores are filled with 0, but e^0 = 1 is a weight like any other; use -inf", filled(0));
  mistake("the mask came after softmax: the remaining weights of a row no longer sum to one",
          [](T Q, T K, T V, Mask mask) { return matmul(softmax(scores(Q, K), -1) * to<double>(mask), V); });
  mistake("the scale is missing",
          [](T Q, T K, T V, Mask mask) { return attention(Q, K, V, {.mask = mask, .scale = 1.0}).out; });
  mistake("true and false are exchanged: true = may attend",
          [](T Q, T K, T V, Mask mask) { return attention(Q, K, V, {.mask = ~mask}).out; });
  mistake("the mask is not used", [](T Q, T K, T V, Mask) { return attention(Q, K, V).out; });
  mistake(
      "the row without a key has a gradient: its scores are open, and its weights are not multiplied by 0",
      [](T Q, T K, T V, Mask mask) {
        const Mask shown = mask | eq(alive(mask), scalar(0.0));
        return matmul(softmax(where(shown, scores(Q, K), scalar(-inf)), -1), V);
      });
  mistake(
      "the gradients of Q and K are lost: values were taken out of their tensors, where the tape cannot "
      "follow",
      [](T Q, T K, T V, Mask mask) { return attention(detach(Q), detach(K), V, {.mask = mask}).out; });
  mistake("all gradients are lost: values were taken out of their tensors, where the tape cannot follow",
          [](T Q, T K, T V, Mask mask) {
            return attention(detach(Q), detach(K), detach(V), {.mask = mask}).out;
          });
  q.wrong("", differentiated(
                  [](T Q, T K, T V, Mask mask) { return attention(Q, K, V, {.mask = mask}).out + 1e-3; }));
}

}  // namespace exercise
