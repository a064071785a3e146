#include "wrong.hpp"

void exercise::check(Check& check) {
  auto& draw = check.draw;
  const auto blocks = [&](const std::vector<std::int64_t>& sizes, std::int64_t d_k, std::int64_t d_v) {
    Blocks all;
    for (const auto n : sizes) all.push_back({draw({n, d_k}), draw({n, d_v})});
    return all;
  };
  auto& q = check.question("flash_row", {"q", "blocks"},
                           watched(check.function<T(const T&, const Blocks&)>("flash_row")));
  q.right([](T x, Blocks b) { return result(whole(x, b, scale(x)), once); });
  q.input(draw({3}), blocks({2, 2, 1}, 3, 2));
  q.input(draw({2}), blocks({3}, 2, 4));
  q.input(draw({5}), blocks({1, 4, 3}, 5, 1));
  q.input({1, 2}, {{{{900, 400}, {-300, 100}}, {{1, 2}, {3, 4}}}, {{{901, 400}}, {{5, -6}}}});
  q.input({1, 1},
          {{{{-900, 0}}, {{1, 2}}}, {{{900, 0}, {899, 1}}, {{3, -4}, {5, 6}}}, {{{-901, 2}}, {{7, 8}}}});
  q.input({1, 1}, {{{{900, 0}}, {{1, 2}}}, {{{-900, 0}, {-899, 1}}, {{3, -4}, {5, 6}}}});
  wrong_answers(q);
}
