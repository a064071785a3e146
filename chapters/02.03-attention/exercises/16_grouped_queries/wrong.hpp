// Exercise 16: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

// Attention in which query head h takes the keys and the values of the heads that `key` and `value` pick.
using Pick = std::function<std::int64_t(std::int64_t h, std::int64_t Hq, std::int64_t Hkv)>;
inline std::function<T(T, T, T)> by(const Pick& key, const Pick& value, double power = 0.5, int axis = -1) {
  return [=](T Q, T K, T V) {
    const double scale = std::pow(static_cast<double>(Q.size(-1)), -power);
    std::vector<T> heads;
    for (std::int64_t h = 0; h < Q.size(0); ++h) {
      const T Kh = K[key(h, Q.size(0), K.size(0))], Vh = V[value(h, Q.size(0), K.size(0))];
      heads.push_back(matmul(softmax(matmul(Q[h], Kh.T()) * scale, axis), Vh));
    }
    return stack<double>(heads);
  };
}

inline void wrong_answers(Question<T(T, T, T)>& q) {
  const Pick group = [](auto h, auto Hq, auto Hkv) { return h / (Hq / Hkv); };
  const Pick turn = [](auto h, auto, auto Hkv) { return h % Hkv; };
  const Pick first = [](auto, auto, auto) { return 0; };
  const Pick by_heads = [](auto h, auto, auto Hkv) { return h / Hkv; };
  const Pick reversed = [](auto h, auto Hq, auto Hkv) { return Hkv - 1 - h / (Hq / Hkv); };
  const Pick size = [](auto h, auto Hq, auto Hkv) { return h % (Hq / Hkv); };
  q.mistake("the key heads are assigned in turn, h % Hkv; neighbours should share one, h / (Hq / Hkv)",
            by(turn, turn));
  q.mistake("every query head uses key head 0", by(first, first));
  // May be an index past the end: then the library throws.
  q.mistake("h is divided by Hkv, the number of key heads; divide by the size of a group, Hq / Hkv",
            by(by_heads, by_heads));
  q.mistake("h is divided by Hkv, the number of key heads; divide by the size of a group, Hq / Hkv",
            by([=](auto h, auto, auto Hkv) { return std::min(h / Hkv, Hkv - 1); },
               [](auto h, auto, auto Hkv) { return std::min(h / Hkv, Hkv - 1); }));
  q.mistake("the key head is h modulo the size of a group; divide h by the size of a group", by(size, size));
  q.mistake("query head h uses key head h, but there are fewer key heads",
            by([](auto h, auto, auto) { return h; }, [](auto h, auto, auto) { return h; }));
  q.mistake("the key heads are in reverse order", by(reversed, reversed));
  q.mistake("the keys are not grouped as the values are: h % Hkv", by(turn, group));
  q.mistake("the values are not grouped as the keys are: h % Hkv", by(group, turn));
  q.mistake("the values are all those of head 0", by(group, first));
  q.mistake("the keys are all those of head 0", by(first, group));
  q.mistake("the scale is missing", by(group, group, 0));
  q.mistake("the scores are divided by d_k; divide by its square root", by(group, group, 1));
  q.mistake("the scale is the square root of L; it should be that of d_k", [=](T Q, T K, T V) {
    const double factor = std::sqrt(static_cast<double>(Q.size(2)) / static_cast<double>(Q.size(1)));
    return by(group, group)(Q * factor, K, V);
  });
  q.mistake("the key heads are averaged, but each group has its own", [](T Q, T K, T V) {
    return attention(Q, mean(K, 0, true), mean(V, 0, true), {.enable_gqa = true}).out;
  });
  q.mistake("wrong axis: softmax runs along the keys, the last axis", by(group, group, 0.5, 0));
  q.mistake("the heads are joined along the wrong axis: it should be (Hq, L, d_v)", [=](T Q, T K, T V) {
    const T right = by(group, group)(Q, K, V);
    std::vector<T> heads;
    for (std::int64_t h = 0; h < right.size(0); ++h) heads.push_back(right[h]);
    return cat<double>(heads, 0);
  });
  q.mistake("the attention is causal, but no mask was asked for",
            [](T Q, T K, T V) { return attention(Q, K, V, {.causal = true, .enable_gqa = true}).out; });
  q.wrong("Most likely: every number is 0", [](T Q, T, T V) {
    return zeros<double>({Q.size(0), Q.size(1), V.size(2)});
  });
  q.wrong("", [=](T Q, T K, T V) { return by(group, group)(Q, K, V) * 0.5 + 1; });
}

}  // namespace exercise
