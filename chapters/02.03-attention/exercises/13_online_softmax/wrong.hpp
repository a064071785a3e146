// Exercise 13: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

using Add = std::function<Running(Running, double)>;
using Merge = std::function<Running(Running, Running)>;

inline Running whole(const T& scores) {
  const double m = scores.numel() == 0 ? -inf : max(scores).item();
  return {m, m == -inf ? 0 : sum(exp(scores - m)).item()};
}
inline std::function<Running(T)> fold(const Add& add) {
  return [add](T scores) {
    Running r;
    for (const double s : scores.to_vector()) r = add(r, s);
    return r;
  };
}
inline std::function<Running(T, T)> both(const Merge& f) {
  return [f](T a, T b) { return f(whole(a), whole(b)); };
}

// One step, of which the factor of the old sum and the new term can be replaced by wrong ones. Neither is
// asked for where it would be NaN.
using Factor = std::function<double(double old_max, double new_max)>;
inline double right_factor(double old_max, double new_max) { return std::exp(old_max - new_max); }
inline std::function<Running(T)> step(const Factor& factor, const Factor& term) {
  return fold([=](Running r, double s) -> Running {
    const double m = std::max(r.max, s);
    return {m, (r.sum == 0 ? 0 : r.sum * factor(r.max, m)) + (s == -inf ? 0 : term(s, m))};
  });
}
inline std::function<Running(T, T)> merged(const Factor& factor) {
  return both([=](Running a, Running b) -> Running {
    const double m = std::max(a.max, b.max);
    return {m, (a.sum == 0 ? 0 : a.sum * factor(a.max, m)) + (b.sum == 0 ? 0 : b.sum * factor(b.max, m))};
  });
}

inline void wrong_add(Question<Running(T)>& q) {
  const auto none = [](double, double) { return 1.0; };
  q.mistake("the old sum is not multiplied by exp(old max - new max) when the largest score changes",
            step(none, right_factor));
  q.mistake("every score counts 1, the old ones as well as the new one", step(none, none));
  q.mistake("the old sum is multiplied by exp(new max - old max); it should be exp(old max - new max)",
            step([](double old_max, double m) { return std::exp(m - old_max); }, right_factor));
  q.mistake(
      "the old sum is multiplied by exp(new max - old max), which is also NaN at the start; it should be "
      "exp(old max - new "
      "max)",
      fold([](Running r, double s) -> Running {
        const double m = std::max(r.max, s);
        return {m, r.sum * std::exp(m - r.max) + (m == -inf ? 0 : std::exp(s - m))};
      }));
  q.mistake("the result is NaN after a first score of -inf, because it computes -inf - (-inf)",
            fold([](Running r, double s) -> Running {
              const double m = std::max(r.max, s);
              return {m, r.sum * std::exp(r.max - m) + std::exp(s - m)};
            }));
  q.mistake("the new term is exp(score); subtract the largest score inside the exp",
            step(right_factor, [](double s, double) { return std::exp(s); }));
  q.mistake("the largest score is never subtracted: the sum is that of exp(score), and overflows",
            step(none, [](double s, double) { return std::exp(s); }));
  q.mistake("the new term is always 1, also if the score is not the largest", step(right_factor, none));
  q.mistake("the sum starts again when the largest score changes", fold([](Running r, double s) -> Running {
              if (s > r.max) return {s, 1};
              return {r.max, r.sum + (s == -inf ? 0 : std::exp(s - r.max))};
            }));
  q.mistake("a score that is not the largest is left out of the sum",
            fold([](Running r, double s) -> Running {
              if (s > r.max) return {s, (r.sum == 0 ? 0 : r.sum * std::exp(r.max - s)) + 1};
              return r;
            }));
  q.mistake("a score equal to the largest is not counted", fold([](Running r, double s) -> Running {
              if (s == r.max) return r;
              const double m = std::max(r.max, s);
              return {m, (r.sum == 0 ? 0 : r.sum * std::exp(r.max - m)) + (s == -inf ? 0 : std::exp(s - m))};
            }));
  q.mistake("the old sum is multiplied by exp(old max - score), also if the score is not the largest",
            fold([](Running r, double s) -> Running {
              const double m = std::max(r.max, s);
              return {m, (r.sum == 0  ? 0
                          : s == -inf ? r.sum
                                      : r.sum * std::exp(r.max - s)) +
                             (s == -inf ? 0 : std::exp(s - m))};
            }));
  q.mistake("a masked score, -inf, counts 1", fold([](Running r, double s) -> Running {
              const double m = std::max(r.max, s);
              return {m, (r.sum == 0 || m == -inf ? r.sum : r.sum * std::exp(r.max - m)) +
                             (s == -inf ? 1 : std::exp(s - m))};
            }));
  q.mistake(
      "max stays as it was: return the larger one", fold([](Running r, double s) -> Running {
        return {r.max == -inf ? s : r.max, r.sum + (s == -inf ? 0 : r.sum == 0 ? 1 : std::exp(s - r.max))};
      }));
  q.wrong("", step([](double, double) { return 0.5; }, right_factor));
}

inline void wrong_merge(Question<Running(T, T)>& q) {
  q.mistake("the sums are added as they are, but each is relative to its own largest score",
            merged([](double, double) { return 1.0; }));
  q.mistake("the result is NaN if both parts are empty or fully masked, because it computes -inf - (-inf)",
            both([](Running a, Running b) -> Running {
              const double m = std::max(a.max, b.max);
              return {m, a.sum * std::exp(a.max - m) + b.sum * std::exp(b.max - m)};
            }));
  q.mistake("this is right only if b has the largest score", both([](Running a, Running b) -> Running {
              return {b.max, b.max == -inf ? 0 : (a.sum == 0 ? 0 : a.sum * std::exp(a.max - b.max)) + b.sum};
            }));
  q.mistake("this is right only if a has the largest score", both([](Running a, Running b) -> Running {
              return {a.max, a.max == -inf ? 0 : a.sum + (b.sum == 0 ? 0 : b.sum * std::exp(b.max - a.max))};
            }));
  q.mistake("the factors are exp(new max - max); they should be exp(max - new max)",
            merged([](double old_max, double m) { return std::exp(m - old_max); }));
  q.mistake("the part with the smaller largest score is left out",
            both([](Running a, Running b) { return a.max >= b.max ? a : b; }));
  q.mistake("b's largest score is added as a single score: all of b's scores count",
            both([](Running a, Running b) -> Running {
              const double m = std::max(a.max, b.max);
              if (m == -inf) return {m, 0};
              return {m, a.sum * std::exp(a.max - m) + std::exp(b.max - m)};
            }));
  q.mistake("the sums are multiplied instead of added", both([](Running a, Running b) -> Running {
              const double m = std::max(a.max, b.max);
              if (m == -inf) return {m, 0};
              return {m, a.sum * std::exp(a.max - m) * b.sum * std::exp(b.max - m)};
            }));
  q.mistake("max is the sum of the two largest scores; take the larger one",
            both([](Running a, Running b) -> Running {
              const double m = std::max(a.max, b.max);
              if (m == -inf) return {m, 0};
              return {a.max + b.max, a.sum * std::exp(a.max - m) + b.sum * std::exp(b.max - m)};
            }));
  q.wrong("", both([](Running a, Running) { return a; }));
}

}  // namespace exercise
