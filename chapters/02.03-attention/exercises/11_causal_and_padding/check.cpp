#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& q = check.question<Mask(std::int64_t, const std::vector<std::int64_t>&)>("visible", {"L", "lengths"});
  q.right(by([](auto i, auto j, auto n, auto) { return j <= i && j < n; }));
  q.input(4, {3, 2});
  q.input(3, {1, 3, 2});
  q.input(5, {4});
  q.input(1, {1});
  q.input(3, {0, 2});
  const auto random = [&](std::int64_t most) {
    return static_cast<std::int64_t>(check.draw.weights({2}).at({0}) * static_cast<double>(most + 1));
  };
  for (const std::int64_t L : {6, 7}) q.input(L, {random(L), L, random(L)});
  wrong_answers(q);
}
