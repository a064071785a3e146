// Exercise 11: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

using Lengths = std::vector<std::int64_t>;
// The mask by a rule: may query i attend to key j, in a sequence with n real tokens of L?
using Rule = std::function<bool(std::int64_t i, std::int64_t j, std::int64_t n, std::int64_t L)>;
inline std::function<Mask(std::int64_t, Lengths)> by(const Rule& rule) {
  return [rule](std::int64_t L, const Lengths& lengths) {
    Buffer<bool> mask({static_cast<std::int64_t>(lengths.size()), L, L});
    std::int64_t at = 0;
    for (const auto n : lengths)
      for (std::int64_t i = 0; i < L; ++i)
        for (std::int64_t j = 0; j < L; ++j) mask[at++] = rule(i, j, n, L);
    return Mask(std::move(mask));
  };
}

inline void wrong_answers(Question<Mask(std::int64_t, Lengths)>& q) {
  q.mistake("the conditions are combined with \"or\"; both have to hold",
            by([](auto i, auto j, auto n, auto) { return j <= i || j < n; }));
  q.mistake("the padding is not hidden", by([](auto i, auto j, auto, auto) { return j <= i; }));
  q.mistake("the future is not hidden", by([](auto, auto j, auto n, auto) { return j < n; }));
  q.mistake("a token does not see itself: j <= i, not j < i",
            by([](auto i, auto j, auto n, auto) { return j < i && j < n; }));
  q.mistake("the causal triangle is transposed: a query sees the future and not the past",
            by([](auto i, auto j, auto n, auto) { return j >= i && j < n; }));
  q.mistake("a query sees one token of the future: j <= i, not j <= i + 1",
            by([](auto i, auto j, auto n, auto) { return j <= i + 1 && j < n; }));
  q.mistake("padding hides the queries (rows); it is keys (columns) that must not be seen",
            by([](auto i, auto j, auto n, auto) { return j <= i && i < n; }));
  q.mistake("one key too many is seen: positions count from 0, so those of real tokens are below the length",
            by([](auto i, auto j, auto n, auto) { return j <= i && j <= n; }));
  q.mistake("the last real token is hidden: positions below the length are real",
            by([](auto i, auto j, auto n, auto) { return j <= i && j < n - 1; }));
  q.mistake("true and false are exchanged: true = may attend",
            by([](auto i, auto j, auto n, auto) { return !(j <= i && j < n); }));
  q.mistake("the padding is expected at the start; it is at the end",
            by([](auto i, auto j, auto n, auto L) { return j <= i && j >= L - n; }));
  q.mistake("every sequence gets the mask of the first: use lengths[b]", [](std::int64_t L, Lengths lengths) {
    std::fill(lengths.begin(), lengths.end(), lengths[0]);
    return by([](auto i, auto j, auto n, auto) { return j <= i && j < n; })(L, lengths);
  });
  q.mistake("the result has no batch axis; it should be (B, L, L)", [](std::int64_t L, Lengths lengths) {
    return by([](auto i, auto j, auto n, auto) { return j <= i && j < n; })(L, {lengths[0]})[0];
  });
  q.mistake("everything may be attended to", by([](auto, auto, auto, auto) { return true; }));
  q.wrong("", by([](auto i, auto j, auto n, auto) { return (j <= i && j < n) || i == 2; }));
}

}  // namespace exercise
