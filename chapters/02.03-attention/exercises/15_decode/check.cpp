#include "checker.hpp"

namespace exercise {

void decode(Checker& check, T (*answer)(Cache&, const T&, const T&, const T&)) {
  using Step = std::function<T(Cache&, const T&, const T&, const T&)>;
  const auto sequence = [](const Step& step) {
    return [step](const T& Q, const T& K, const T& V) {
      Cache cache{zeros<double>({0, K.size(1)}), zeros<double>({0, V.size(1)})};
      std::vector<T> rows;
      for (std::int64_t i = 0; i < Q.size(0); ++i) rows.push_back(step(cache, Q[i], K[i], V[i]));
      return stack<double>(rows);
    };
  };
  const auto keep = [](Cache& c, const T& k, const T& v) {
    c.K = cat<double>({c.K, unsqueeze(k, 0)}), c.V = cat<double>({c.V, unsqueeze(v, 0)});
  };
  const auto attend = [](const Cache& c, const T& q, double scale) {
    return matmul(softmax(matmul(c.K, q) * scale, -1), c.V);
  };
  const auto scale = [](double d) { return 1 / std::sqrt(d); };

  Question<T, T, T, T> q(check, "decode_step", sequence(answer), {"Q", "K", "V"});
  q.right([](auto& Q, auto& K, auto& V) { return attention(Q, K, V, {.causal = true}).out; });
  q.mistake("the token does not see itself: its key and value join the cache before it attends",
            sequence([=](auto& c, auto& x, auto& k, auto& v) {
              const T out = attend(c, x, scale(static_cast<double>(x.numel())));
              keep(c, k, v);
              return out;
            }));
  q.mistake("the cache forgets: each token sees itself alone", sequence([](auto& c, auto&, auto& k, auto& v) {
              c.K = unsqueeze(k, 0), c.V = unsqueeze(v, 0);
              return v;
            }));
  q.mistake("the new value does not stay in the cache: keys and values no longer fit",
            sequence([=](auto& c, auto& x, auto& k, auto& v) {
              Cache now = c;
              keep(now, k, v);
              c.K = now.K;
              return attend(now, x, scale(static_cast<double>(x.numel())));
            }));
  q.mistake("the scale is missing", sequence([=](auto& c, auto& x, auto& k, auto& v) {
              keep(c, k, v);
              return attend(c, x, 1);
            }));
  q.mistake("the scale is the root of the number of tokens; it is that of d_k",
            sequence([=](auto& c, auto& x, auto& k, auto& v) {
              keep(c, k, v);
              return attend(c, x, scale(static_cast<double>(c.K.size(0))));
            }));
  q.mistake("new tokens join in front for keys and behind for values: they no longer belong together",
            sequence([=](auto& c, auto& x, auto& k, auto& v) {
              c.K = cat<double>({unsqueeze(k, 0), c.K}), c.V = cat<double>({c.V, unsqueeze(v, 0)});
              return attend(c, x, scale(static_cast<double>(x.numel())));
            }));
  q.mistake("the keys are attended with the key of the new token, not with its query",
            sequence([=](auto& c, auto& x, auto& k, auto& v) {
              keep(c, k, v);
              return attend(c, k, scale(static_cast<double>(x.numel())));
            }));
  q.mistake("every token sees the future: is something left over from an earlier sequence?",
            [](auto& Q, auto& K, auto& V) { return attention(Q, K, V).out; });
  Draw draw(15);
  q.input(draw({3, 2}), draw({3, 2}), draw({3, 2}));
  q.input(draw({1, 3}), draw({1, 3}), draw({1, 1}));
  q.input(draw({5, 3}), draw({5, 3}), draw({5, 4}));
  q.ask();
}

}  // namespace exercise
