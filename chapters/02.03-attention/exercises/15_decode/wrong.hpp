// Exercise 15: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

using Step = std::function<T(Cache&, const T&, const T&, const T&)>;
// All outputs of a sequence that is fed token by token.
inline std::function<T(T, T, T)> sequence(const Step& step) {
  return [step](T Q, T K, T V) {
    Cache cache{zeros<double>({0, K.size(1)}), zeros<double>({0, V.size(1)})};
    std::vector<T> rows;
    for (std::int64_t i = 0; i < Q.size(0); ++i) rows.push_back(step(cache, Q[i], K[i], V[i]));
    return stack<double>(rows);
  };
}
inline void keep(Cache& c, const T& k, const T& v) {
  c.K = cat<double>({c.K, unsqueeze(k, 0)}), c.V = cat<double>({c.V, unsqueeze(v, 0)});
}
inline T attend(const Cache& c, const T& q, double scale) {
  return matmul(softmax(matmul(c.K, q) * scale, -1), c.V);
}
inline double over_root(std::int64_t d) { return 1 / std::sqrt(static_cast<double>(d)); }

inline void wrong_answers(Question<T(T, T, T)>& q) {
  const auto mistake = [&](const char* name, const Step& step) { q.mistake(name, sequence(step)); };
  mistake("the token does not see itself: its key and value join the cache before it attends",
          [](auto& c, auto& x, auto& k, auto& v) {
            const T out = attend(c, x, over_root(x.numel()));
            keep(c, k, v);
            return out;
          });
  const char* alone =
      "each token sees itself alone: store the new key and value in cache.K and cache.V, and attend to all "
      "of them";
  mistake(alone, [](auto& c, auto&, auto& k, auto& v) {
    c.K = unsqueeze(k, 0), c.V = unsqueeze(v, 0);
    return v;
  });
  mistake(alone, [](auto& c, auto& x, auto& k, auto& v) {
    Cache now = c;
    keep(now, k, v);
    return attend(now, x, over_root(x.numel()));
  });
  mistake("the new value does not stay in the cache: keys and values no longer fit together",
          [](auto& c, auto& x, auto& k, auto& v) {
            Cache now = c;
            keep(now, k, v);
            c.K = now.K;
            return attend(now, x, over_root(x.numel()));
          });
  mistake("the scale is missing", [](auto& c, auto& x, auto& k, auto& v) {
    keep(c, k, v);
    return attend(c, x, 1);
  });
  mistake("the scores are divided by d_k; divide by its square root", [](auto& c, auto& x, auto& k, auto& v) {
    keep(c, k, v);
    return attend(c, x, 1.0 / static_cast<double>(x.numel()));
  });
  mistake("the scale is the square root of the number of tokens; it should be that of d_k",
          [](auto& c, auto& x, auto& k, auto& v) {
            keep(c, k, v);
            return attend(c, x, over_root(c.K.size(0)));
          });
  mistake("new keys join in front and new values behind: they no longer belong together",
          [](auto& c, auto& x, auto& k, auto& v) {
            c.K = cat<double>({unsqueeze(k, 0), c.K}), c.V = cat<double>({c.V, unsqueeze(v, 0)});
            return attend(c, x, over_root(x.numel()));
          });
  mistake("the new token's key is used in place of its query", [](auto& c, auto& x, auto& k, auto& v) {
    keep(c, k, v);
    return attend(c, k, over_root(x.numel()));
  });
  mistake("the query is stored in the cache in place of the key", [](auto& c, auto& x, auto&, auto& v) {
    keep(c, x, v);
    return attend(c, x, over_root(x.numel()));
  });
  mistake("this is the mean of the cached values: softmax and scores are missing",
          [](auto& c, auto&, auto& k, auto& v) {
            keep(c, k, v);
            return mean(c.V, 0);
          });
  mistake("the largest score is not subtracted: exp overflows", [](auto& c, auto& x, auto& k, auto& v) {
    keep(c, k, v);
    const T e = exp(matmul(c.K, x) * over_root(x.numel()));
    return matmul(e / sum(e), c.V);
  });
  mistake(alone, [](auto& c, auto&, auto& k, auto& v) {
    keep(c, k, v);
    return v;
  });
  q.mistake("every token sees the future: is something left over from an earlier sequence?",
            [](T Q, T K, T V) { return attention(Q, K, V).out; });
  q.wrong("Most likely: every number is 0", sequence([](auto& c, auto&, auto& k, auto& v) {
            keep(c, k, v);
            return zeros_like(v);
          }));
  q.wrong("", sequence([](auto& c, auto& x, auto& k, auto& v) {  // forgets all but the last two tokens
            keep(c, k, v);
            const auto from = std::max<std::int64_t>(0, c.K.size(0) - 2);
            return attend({c.K.slice(0, from, c.K.size(0)), c.V.slice(0, from, c.V.size(0))}, x,
                          over_root(x.numel()));
          }));
}

}  // namespace exercise
