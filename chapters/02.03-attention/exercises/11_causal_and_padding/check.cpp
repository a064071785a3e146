#include "checker.hpp"

namespace exercise {

void causal_and_padding(Checker& check, Mask (*answer)(std::int64_t, const std::vector<std::int64_t>&)) {
  using Lengths = std::vector<std::int64_t>;
  const auto by = [](const std::function<bool(std::int64_t i, std::int64_t j, std::int64_t n)>& rule) {
    return [rule](std::int64_t L, const Lengths& lengths) {
      Buffer<bool> mask({static_cast<std::int64_t>(lengths.size()), L, L});
      std::int64_t at = 0;
      for (const auto n : lengths)
        for (std::int64_t i = 0; i < L; ++i)
          for (std::int64_t j = 0; j < L; ++j) mask[at++] = rule(i, j, n);
      return Mask(std::move(mask));
    };
  };
  Question<Mask, std::int64_t, Lengths> q(check, "visible", answer, {"L", "lengths"});
  q.right(by([](auto i, auto j, auto n) { return j <= i && j < n; }));
  q.mistake("combined with \"or\": both conditions have to hold",
            by([](auto i, auto j, auto n) { return j <= i || j < n; }));
  q.mistake("the padding is not hidden", by([](auto i, auto j, auto) { return j <= i; }));
  q.mistake("the future is not hidden", by([](auto, auto j, auto n) { return j < n; }));
  q.mistake("a token does not see itself: j <= i, not j < i",
            by([](auto i, auto j, auto n) { return j < i && j < n; }));
  q.mistake("the causal triangle is transposed: this sees the future and not the past",
            by([](auto i, auto j, auto n) { return j >= i && j < n; }));
  q.mistake("padding is applied to the queries (rows); it is keys that must not be seen",
            by([](auto i, auto j, auto n) { return j <= i && i < n; }));
  q.mistake("one key too many: positions count from 0, so real ones are below the length",
            by([](auto i, auto j, auto n) { return j <= i && j <= n; }));
  q.mistake("true and false are exchanged: true = may attend",
            by([](auto i, auto j, auto n) { return !(j <= i && j < n); }));
  q.mistake("the padding is taken to be at the start", [=](std::int64_t L, const Lengths& lengths) {
    return by([L](auto i, auto j, auto n) { return j <= i && j >= L - n; })(L, lengths);
  });
  q.input(4, {3, 2});
  q.input(3, {1, 3, 2});
  q.input(5, {4});
  q.input(1, {1});
  q.input(3, {0, 2});
  q.ask();
}

}  // namespace exercise
