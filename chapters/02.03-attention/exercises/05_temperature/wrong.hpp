// Exercise 05: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

// The steps of attention with a temperature, each of which can be replaced by a wrong one.
struct Tempered {
  std::function<double(double root, double tau)> scale = [](double root, double tau) { return root * tau; };
  std::function<T(const T& S, const std::optional<Mask>&)> masked =
      [](const T& S, const std::optional<Mask>& mask) { return mask ? where(*mask, S, scalar(-inf)) : S; };
  std::function<T(const T& S)> weights = [](const T& S) { return softmax(S, -1); };
  std::function<void(double tau)> refuse = [](double tau) {
    if (!(tau > 0)) throw ValueError("the temperature is not above 0");
  };
};
using TemperedFunction = std::function<Attention<double>(T, T, T, std::optional<Mask>, double)>;

inline TemperedFunction tempered(const Tempered& step) {
  return [step](T Q, T K, T V, std::optional<Mask> mask, double tau) -> Attention<double> {
    step.refuse(tau);
    const T S = matmul(Q, K.T()) / step.scale(std::sqrt(static_cast<double>(Q.size(-1))), tau);
    const T A = step.weights(step.masked(S, mask));
    return {.out = matmul(A, V), .weights = A};
  };
}

inline void wrong_attention(Question<Attention<double>(T, T, T, std::optional<Mask>, double)>& q) {
  const auto filled = [](double fill) {
    return tempered({.masked = [fill](const T& S, const std::optional<Mask>& mask) {
      return mask ? where(*mask, S, scalar(fill)) : S;
    }});
  };
  const auto refused = [](std::function<void(double)> refuse) {
    return tempered({.refuse = std::move(refuse)});
  };
  q.mistake("the scores are multiplied by tau; divide by it",
            tempered({.scale = [](double root, double tau) { return root / tau; }}));
  q.mistake("tau is not used", tempered({.scale = [](double root, double) { return root; }}));
  q.mistake("the scale is missing: divide by tau and by √d_k",
            tempered({.scale = [](double, double tau) { return tau; }}));
  q.mistake("the scores are divided by d_k; divide by its square root",
            tempered({.scale = [](double root, double tau) { return root * root * tau; }}));
  q.mistake("tau is inside the square root, √(tau d_k)",
            tempered({.scale = [](double root, double tau) { return root * std::sqrt(tau); }}));
  q.mistake("tau divides the weights; it has to divide the scores, before softmax",
            [](T Q, T K, T V, std::optional<Mask> mask, double tau) -> Attention<double> {
              if (!(tau > 0)) throw ValueError("");
              const T A =
                  tempered({.scale = [](double root, double) { return root; }})(Q, K, V, mask, 1).weights /
                  tau;
              return {.out = matmul(A, V), .weights = A};
            });
  q.mistake("tau divides the output; it has to divide the scores, before softmax",
            [](T Q, T K, T V, std::optional<Mask> mask, double tau) -> Attention<double> {
              if (!(tau > 0)) throw ValueError("");
              auto result = tempered({.scale = [](double root, double) { return root; }})(Q, K, V, mask, 1);
              return {.out = result.out / tau, .weights = result.weights};
            });
  q.mistake("wrong axis: softmax runs along the keys, the last axis",
            tempered({.weights = [](const T& S) { return softmax(S, 0); }}));
  q.mistake("the mask is not used",
            tempered({.masked = [](const T& S, const std::optional<Mask>&) { return S; }}));
  q.mistake("the mask came after softmax: the remaining weights of a row no longer sum to one",
            [](T Q, T K, T V, std::optional<Mask> mask, double tau) -> Attention<double> {
              T A = tempered({})(Q, K, V, {}, tau).weights;
              if (mask) A = A * to<double>(*mask);
              return {.out = matmul(A, V), .weights = A};
            });
  q.mistake("forbidden scores are filled with 0, but e^0 = 1 is a weight like any other; use -inf",
            filled(0));
  for (const double fill : {-100.0, -1e4, -1e9, -1e30})
    q.mistake(
        "forbidden scores are filled with a large negative number, but a score can be lower still; use -inf",
        filled(fill));
  q.wrong(
      "On this input it looks like this mistake: forbidden scores are filled with a large negative number, "
      "but a "
      "score can be lower still; use -inf",
      [=](T Q, T K, T V, std::optional<Mask> mask, double tau) {  // two mistakes at once
        if (tau <= 0) throw ValueError("");
        return tempered(
            {.masked = [](const T& S,
                          const std::optional<Mask>& m) { return m ? where(*m, S, scalar(-1e4)) : S; },
             .refuse = [](double) {}})(Q, K, V, mask, tau);
      });
  q.mistake("true and false of the mask are exchanged: true = may attend",
            tempered({.masked = [](const T& S, const std::optional<Mask>& mask) {
              return mask ? where(*mask, scalar(-inf), S) : S;
            }}));
  q.mistake("a tau that is not above 0 is accepted: throw a ValueError", refused([](double) {}));
  q.mistake("tau = 0 is accepted: throw a ValueError unless tau > 0", refused([](double tau) {
              if (!(tau >= 0)) throw ValueError("");
            }));
  q.mistake("tau = 0 and NaN are accepted: throw a ValueError unless tau > 0", refused([](double tau) {
              if (tau < 0) throw ValueError("");
            }));
  q.mistake("a negative tau is accepted: throw a ValueError unless tau > 0", refused([](double tau) {
              if (tau == 0) throw ValueError("");
            }));
  q.mistake("NaN is accepted, because tau <= 0 is false for NaN: `if (!(tau > 0))` refuses it too",
            refused([](double tau) {
              if (tau <= 0) throw ValueError("");
            }));
  q.mistake("the exception is not a ValueError: throw ValueError(\"...\")", refused([](double tau) {
              if (!(tau > 0)) throw std::invalid_argument("tau");
            }));
  q.mistake("what is thrown is not even an exception: throw ValueError(\"...\")", refused([](double tau) {
              if (!(tau > 0)) throw 1;
            }));
  q.mistake("weights and out are exchanged",
            [](T Q, T K, T V, std::optional<Mask> mask, double tau) -> Attention<double> {
              const auto right = tempered({})(Q, K, V, mask, tau);
              return {.out = right.weights, .weights = right.out};
            });
  q.wrong("", refused([](double tau) {
            if (!(tau > 0.9)) throw ValueError("");
          }));
}

inline void wrong_limits(Question<Limits()>& q) {
  q.mistake("the two limits are exchanged: a small tau makes the differences between scores large", [] {
    return Limits{Weights::even, Weights::one_hot};
  });
  q.mistake("tau changes the differences between the scores, so the weights change", [] {
    return Limits{Weights::unchanged, Weights::unchanged};
  });
  q.mistake("a large tau makes the differences between scores small", [] {
    return Limits{Weights::one_hot, Weights::unchanged};
  });
  q.mistake("a small tau makes the differences between scores large", [] {
    return Limits{Weights::unchanged, Weights::even};
  });
  q.wrong("", [] { return Limits{Weights::one_hot, Weights::one_hot}; });
}

}  // namespace exercise
