#include "checker.hpp"

namespace exercise {

void grouped_queries(Checker& check, T (*answer)(const T&, const T&, const T&)) {
  using Pick = std::function<std::int64_t(std::int64_t h, std::int64_t Hq, std::int64_t Hkv)>;
  const auto by = [](const Pick& key, const Pick& value, double power) {
    return [=](const T& Q, const T& K, const T& V) {
      const double scale = std::pow(static_cast<double>(Q.size(-1)), -power);
      std::vector<T> heads;
      for (std::int64_t h = 0; h < Q.size(0); ++h) {
        const T Kh = K[key(h, Q.size(0), K.size(0))], Vh = V[value(h, Q.size(0), K.size(0))];
        heads.push_back(matmul(softmax(matmul(Q[h], Kh.T()) * scale, -1), Vh));
      }
      return stack<double>(heads);
    };
  };
  const Pick group = [](auto h, auto Hq, auto Hkv) { return h / (Hq / Hkv); };
  const Pick turn = [](auto h, auto, auto Hkv) { return h % Hkv; };
  const Pick first = [](auto, auto, auto) { return 0; };
  const Pick group_size = [](auto h, auto, auto Hkv) { return std::min(h / Hkv, Hkv - 1); };

  Question<T, T, T, T> q(check, "grouped_attention", answer, {"Q", "K", "V"});
  q.right([](auto& Q, auto& K, auto& V) { return attention(Q, K, V, {.enable_gqa = true}).out; });
  q.mistake("the key heads are dealt out in turn, h % Hkv: neighbours are to share one, h / (Hq / Hkv)",
            by(turn, turn, 0.5));
  q.mistake("every query head uses key head 0", by(first, first, 0.5));
  q.mistake("h is divided by Hkv, the number of key heads; divide by the size of a group, Hq / Hkv",
            by(group_size, group_size, 0.5));
  q.mistake("the keys are not grouped as the values are: h % Hkv", by(turn, group, 0.5));
  q.mistake("the values are not grouped as the keys are: h % Hkv", by(group, turn, 0.5));
  q.mistake("the values are all those of head 0", by(group, first, 0.5));
  q.mistake("the scale is missing", by(group, group, 0));
  q.mistake("divided by d_k, not by its root", by(group, group, 1));
  q.mistake("the key heads are averaged: each group keeps its own", [](auto& Q, auto& K, auto& V) {
    return attention(Q, mean(K, 0, true), mean(V, 0, true), {.enable_gqa = true}).out;
  });
  q.mistake("wrong axis: softmax runs along the keys, the last axis", [=](auto& Q, auto& K, auto& V) {
    std::vector<T> heads;
    for (std::int64_t h = 0; h < Q.size(0); ++h) {
      const auto g = group(h, Q.size(0), K.size(0));
      heads.push_back(
          matmul(softmax(matmul(Q[h], K[g].T()) / std::sqrt(static_cast<double>(Q.size(-1))), 0), V[g]));
    }
    return stack<double>(heads);
  });
  Draw draw(16);
  q.input(draw({4, 2, 2}), draw({2, 2, 2}), draw({2, 2, 2}));
  q.input(draw({6, 3, 2}), draw({2, 3, 2}), draw({2, 3, 1}));
  q.input(draw({6, 2, 3}), draw({3, 2, 3}), draw({3, 2, 2}));
  q.input(draw({2, 3, 5}), draw({2, 3, 5}), draw({2, 3, 3}));
  q.input(draw({3, 2, 2}), draw({1, 2, 2}), draw({1, 2, 2}));
  q.ask();
}

}  // namespace exercise
