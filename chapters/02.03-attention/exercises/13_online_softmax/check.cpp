#include "checker.hpp"

namespace exercise {

void online_softmax(Checker& check, Running (*add_score)(Running, double),
                    Running (*merge)(Running, Running)) {
  using Add = std::function<Running(Running, double)>;
  using Merge = std::function<Running(Running, Running)>;
  const auto whole = [](const T& scores) -> Running {
    const double m = scores.numel() == 0 ? -inf : max(scores).item();
    return {m, m == -inf ? 0 : sum(exp(scores - m)).item()};
  };
  const auto fold = [](const Add& add) {
    return [add](const T& scores) {
      Running r;
      for (const double s : scores.to_vector()) r = add(r, s);
      return r;
    };
  };
  const auto e = [](double x) { return std::exp(x); };
  Draw draw(13);

  Question<Running, T> q(check, "add_score", fold(add_score), {"scores, one after the other"});
  q.right(whole);
  q.mistake("the old sum is not multiplied by exp(old max - new max) when the largest score changes",
            fold([=](Running r, double s) -> Running {
              const double m = std::max(r.max, s);
              return {m, r.sum + (m == -inf ? 0 : e(s - m))};
            }));
  q.mistake("every score counts 1, the old ones as well as the new one",
            fold([](Running r, double s) -> Running {
              return {std::max(r.max, s), r.sum + (s == -inf ? 0 : 1)};
            }));
  q.mistake("the old sum is multiplied by exp(new max - old max): the wrong way round, and NaN at the start",
            fold([=](Running r, double s) -> Running {
              const double m = std::max(r.max, s);
              return {m, r.sum * e(m - r.max) + (m == -inf ? 0 : e(s - m))};
            }));
  q.mistake("the old sum is multiplied by exp(new max - old max): the wrong way round",
            fold([=](Running r, double s) -> Running {
              const double m = std::max(r.max, s);
              return {m, (r.sum == 0 ? 0 : r.sum * e(m - r.max)) + (m == -inf ? 0 : e(s - m))};
            }));
  q.mistake("NaN after a first score of -inf: -inf - (-inf)", fold([=](Running r, double s) -> Running {
              const double m = std::max(r.max, s);
              return {m, r.sum * e(r.max - m) + e(s - m)};
            }));
  q.mistake("the new term is exp(score) without the largest subtracted",
            fold([=](Running r, double s) -> Running {
              const double m = std::max(r.max, s);
              return {m, (r.sum == 0 ? 0 : r.sum * e(r.max - m)) + e(s)};
            }));
  q.mistake("the new term is always 1, also where the score is not the largest",
            fold([=](Running r, double s) -> Running {
              const double m = std::max(r.max, s);
              return {m, (r.sum == 0 ? 0 : r.sum * e(r.max - m)) + (s == -inf ? 0 : 1)};
            }));
  q.mistake("the sum starts anew when the largest score changes", fold([=](Running r, double s) -> Running {
              if (s > r.max) return {s, 1};
              return {r.max, r.sum + (s == -inf ? 0 : e(s - r.max))};
            }));
  q.input({0.5, 2.0, -1.0});
  q.input({3.0});
  q.input({-inf, -inf, 1.0, -inf, 2.5});
  q.input({-inf, -inf});
  q.input({1000, 1001.5, 999, 1003});
  q.input({-5, -1200, -4, -3});
  q.input(draw({9}));
  q.ask();

  const auto both = [=](const Merge& f) {
    return [=](const T& a, const T& b) { return f(whole(a), whole(b)); };
  };
  Question<Running, T, T> p(check, "merge", both(merge), {"scores of a", "scores of b"});
  p.right([=](auto& a, auto& b) { return whole(cat<double>({a, b})); });
  p.mistake("the sums are added as they are: each is relative to its own largest score",
            both([](Running a, Running b) -> Running {
              return {std::max(a.max, b.max), a.sum + b.sum};
            }));
  p.mistake("NaN where both parts are empty or wholly masked: -inf - (-inf)",
            both([=](Running a, Running b) -> Running {
              const double m = std::max(a.max, b.max);
              return {m, a.sum * e(a.max - m) + b.sum * e(b.max - m)};
            }));
  p.mistake("this takes b's scores to be the larger ones", both([=](Running a, Running b) -> Running {
              return {b.max, b.max == -inf ? 0 : a.sum * e(a.max - b.max) + b.sum};
            }));
  p.mistake("this takes a's scores to be the larger ones", both([=](Running a, Running b) -> Running {
              return {a.max, a.max == -inf ? 0 : a.sum + b.sum * e(b.max - a.max)};
            }));
  p.mistake("the factors are the wrong way round: exp(max - new max), not exp(new max - max)",
            both([=](Running a, Running b) -> Running {
              const double m = std::max(a.max, b.max);
              return {m, (a.sum == 0 ? 0 : a.sum * e(m - a.max)) + (b.sum == 0 ? 0 : b.sum * e(m - b.max))};
            }));
  p.input({1, 2}, {0.5, 3.5});
  p.input({4, 2}, {0.5, -1, 3});
  p.input(zeros<double>({0}), {1.5, 2});
  p.input({1.5, 2}, zeros<double>({0}));
  p.input({-inf}, {-inf, -inf});
  p.input({1000, 1002}, {999.5});
  p.ask();
}

}  // namespace exercise
