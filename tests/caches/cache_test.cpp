// Caches: whatever way a sequence is cut into chunks, what decode() gives is those rows of attention over all
// of it.
#include "tapehead/caches/cache.hpp"

#include <cmath>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

// The same sums in another order: a few ε.
template <class T> bool close(const Tensor<T>& a, const Tensor<T>& b) {
  constexpr double tolerance = sizeof(T) == 4 ? 3e-6 : 1e-13;
  return a.shape() == b.shape() && allclose(a, b, tolerance, tolerance);
}

// All ways to write n as a sum of positive numbers in order.
std::vector<std::vector<std::int64_t>> splits(std::int64_t n) {
  std::vector<std::vector<std::int64_t>> all;
  for (unsigned cuts = 0; cuts < 1u << (n - 1); ++cuts) {
    all.push_back({1});
    for (std::int64_t i = 0; i + 1 < n; ++i)
      if (cuts >> i & 1)
        all.back().push_back(1);
      else
        ++all.back().back();
  }
  return all;
}

// Appends and decodes chunk by chunk; the outputs, put together again.
template <class Cache, class T> Tensor<T> decoded(Cache cache, const std::vector<std::int64_t>& chunks,
                                                  const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                                  const AttentionOptions<T>& options = {}) {
  std::vector<Tensor<T>> out;
  std::int64_t at = 0;
  for (std::int64_t n : chunks) {
    const auto part = [&](const Tensor<T>& x) { return slice(x, -2, at, at + n); };
    cache.append(part(k), part(v));
    out.push_back(decode(part(q), cache, options));
    at += n;
  }
  return cat(out, -2);
}

template <class T> struct Sequences {
  Tensor<T> q, k, v;
  Sequences(const Shape& q_lead, const Shape& lead, std::int64_t L, std::int64_t d, std::int64_t dv, int seed = 1) {
    TorchRandom rng(seed);
    const auto rows = [L](const Shape& s, std::int64_t width) { return s.with(s.rank(), L).with(s.rank() + 1, width); };
    q = rng.randn<T>(rows(q_lead, d)), k = rng.randn<T>(rows(lead, d)), v = rng.randn<T>(rows(lead, dv));
  }
};

}  // namespace

TEST_CASE("KVCache: every split of a sequence gives the full forward pass") {
  struct Kind {
    Shape q_lead, lead;
    std::int64_t d, dv;
  };
  for (const Kind& kind :
       {Kind{{}, {}, 3, 5}, Kind{{2}, {2}, 4, 4}, Kind{{2, 3}, {2, 3}, 5, 2}, Kind{{2, 6}, {2, 2}, 17, 19}}) {
    const Sequences<double> s(kind.q_lead, kind.lead, 7, kind.d, kind.dv);
    const auto whole = attention(s.q, s.k, s.v, {.causal = true, .enable_gqa = kind.q_lead.rank() > 0});
    for (const auto& chunks : splits(7)) {
      CAPTURE(chunks.size());
      CHECK(close(decoded(KVCache<double>(kind.lead, 9, kind.d, kind.dv), chunks, s.q, s.k, s.v), whole.out));
    }
  }
}

TEST_CASE("KVCache: long sequences in float, few queries and many") {
  const Sequences<float> s({2, 4}, {2, 2}, 1100, 64, 48);
  const auto whole = attention(s.q, s.k, s.v, {.causal = true, .enable_gqa = true}).out;
  for (const auto& chunks :
       std::vector<std::vector<std::int64_t>>{{1099, 1}, {1, 1093, 6}, {500, 8, 3, 588, 1}, {1100}})
    CHECK(close(decoded(KVCache<float>({2, 2}, 1100, 64, 48), chunks, s.q, s.k, s.v), whole));
}

TEST_CASE("KVCache: scale, bias, mask and strided inputs") {
  const Sequences<double> s({2, 4}, {2, 2}, 9, 6, 3);
  KVCache<double> cache({2, 2}, 9, 6, 3);
  cache.append(mT(contiguous(mT(s.k))), mT(contiguous(mT(s.v))));
  CHECK(equal(cache.keys(), s.k));
  CHECK(equal(cache.values(), s.v));
  const auto last = mT(contiguous(mT(slice(s.q, -2, 7, 9))));
  for (double scale : {0.0, -1.0, 0.3})
    CHECK(close(decode(last, cache, {.scale = scale}),
                slice(attention(s.q, s.k, s.v, {.causal = true, .scale = scale, .enable_gqa = true}).out, -2, 7, 9)));
  const auto bias = NumpyRandom(5).randn({4, 9, 9});
  const auto mask = padding_mask({4, 9}, 9);
  const auto whole = attention(s.q, s.k, s.v, {.mask = mask, .bias = bias, .causal = true, .enable_gqa = true}).out;
  CHECK(close(decode(last, cache, {.mask = mask, .bias = slice(bias, 1, 7, 9)}), slice(whole, -2, 7, 9)));
}

TEST_CASE("KVCache: the new tokens stand behind the history, in prefill too") {
  const auto column = [](std::initializer_list<double> v) {
    return from_vector(std::vector<double>(v), {static_cast<std::int64_t>(v.size()), 1});
  };
  KVCache<double> cache({}, 5, 1);
  cache.append(zeros<double>({3, 1}), column({1, 2, 3}));
  CHECK(decode(zeros<double>({3, 1}), cache).to_vector() == std::vector<double>{1, 1.5, 2});
  cache.append(zeros<double>({1, 1}), column({4}));
  CHECK(decode(zeros<double>({1, 1}), cache).item() == 2.5);
  cache.truncate(3);
  cache.append(zeros<double>({2, 1}), column({4, 5}));
  CHECK(decode(zeros<double>({2, 1}), cache).to_vector() == std::vector<double>{2.5, 3});
}

TEST_CASE("KVCache: past its capacity nothing is written") {
  KVCache<float> cache({1, 2}, 4, 3);
  const auto rows = TorchRandom(1).randn({1, 2, 5, 3});
  cache.append(slice(rows, 2, 0, 4), slice(rows, 2, 1, 5));
  const auto keys = cache.keys().to_vector();
  CHECK(message<ValueError>([&] { cache.append(slice(rows, 2, 0, 1), slice(rows, 2, 0, 1)); }) ==
        "KVCache.append: 1 more tokens behind 4 exceed the capacity of 4; make the cache with a larger one, "
        "truncate() it, or use a "
        "SlidingKVCache"sv);
  CHECK(cache.length() == 4);
  CHECK(cache.keys().to_vector() == keys);
  CHECK(equal(cache.values(), slice(rows, 2, 1, 5)));
  cache.append(slice(rows, 2, 0, 0), slice(rows, 2, 0, 0));  // no tokens are always room enough
  CHECK(cache.length() == 4);
}

TEST_CASE("KVCache: a view that was handed out never changes") {
  const auto rows = [](double from, std::int64_t n) {
    return arange<double>(from, from + static_cast<double>(n)).reshape({n, 1});
  };
  KVCache<double> cache({}, 8, 1);
  cache.append(rows(0, 3), rows(10, 3));
  const auto early = cache.keys();
  cache.append(rows(3, 2), rows(13, 2));
  CHECK(early.data() == cache.keys().data());  // appending moves nothing
  const auto late = cache.keys();
  cache.truncate(2);
  cache.append(rows(70, 4), rows(80, 4));  // would overwrite rows that `late` shows
  CHECK(early.to_vector() == std::vector<double>{0, 1, 2});
  CHECK(late.to_vector() == std::vector<double>{0, 1, 2, 3, 4});
  CHECK(cache.keys().to_vector() == std::vector<double>{0, 1, 70, 71, 72, 73});
  CHECK(cache.values().to_vector() == std::vector<double>{10, 11, 80, 81, 82, 83});
}

TEST_CASE("KVCache: rows that nobody sees are used again") {
  KVCache<double> cache({}, 4, 1);
  cache.append(ones<double>({3, 1}), ones<double>({3, 1}));
  const double* where = cache.keys().data();
  cache.truncate(1);
  cache.append(zeros<double>({3, 1}), zeros<double>({3, 1}));
  CHECK(cache.keys().data() == where);
  CHECK(cache.keys().to_vector() == std::vector<double>{1, 0, 0, 0});
}

TEST_CASE("KVCache: copies share their rows and part ways") {
  const auto one = [](double x) { return full<double>({1, 1}, x); };
  KVCache<double> a({}, 4, 1);
  a.append(one(1), one(1));
  KVCache<double> b = a, c = a;
  a.append(one(2), one(2));
  b.append(one(3), one(3));
  b.append(one(4), one(4));
  c.append(one(5), one(5));
  a.append(one(6), one(6));
  CHECK(a.keys().to_vector() == std::vector<double>{1, 2, 6});
  CHECK(b.keys().to_vector() == std::vector<double>{1, 3, 4});
  CHECK(c.keys().to_vector() == std::vector<double>{1, 5});
  CHECK(a.keys().data() != b.keys().data());
}

TEST_CASE("KVCache: copies go on in threads of their own") {
  KVCache<double> prompt({}, 40, 1);
  prompt.append(zeros<double>({8, 1}), zeros<double>({8, 1}));
  std::vector<KVCache<double>> copies(4, prompt);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < copies.size(); ++i)
    threads.emplace_back([&cache = copies[i], token = static_cast<double>(i + 1)] {
      for (int step = 0; step < 32; ++step) cache.append(full<double>({1, 1}, token), full<double>({1, 1}, token));
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < copies.size(); ++i) {
    CHECK(sum(copies[i].keys()).item() == 32 * static_cast<double>(i + 1));
    CHECK(sum(copies[i].values()).item() == 32 * static_cast<double>(i + 1));
  }
}

TEST_CASE("KVCache: what a tape knows is refused, a query of a tape is not") {
  const Sequences<double> s({}, {}, 3, 2, 2);
  KVCache<double> cache({}, 3, 2);
  Tape<double> tape;
  tape.watch({s.q, s.k});
  CHECK(message<GradientError>([&] { cache.append(s.k, s.v); }) ==
        "KVCache.append: a tape knows k, and what goes through a cache has no gradient; append detach(x) to "
        "say that none is wanted, or "
        "decode outside the tape's scope"sv);
  CHECK(message<GradientError>([&] { cache.append(detach(s.q), s.q); }).rfind("KVCache.append: a tape knows v", 0) ==
        0);
  CHECK(cache.length() == 0);
  cache.append(detach(s.k), s.v);
  const auto grad = tape.backward(sum(decode(s.q, cache)));
  const auto by_hand = attention_backward(detach(s.q), detach(s.k), s.v, ones<double>({3, 2}), {.causal = true});
  CHECK(close(grad[s.q], by_hand.dQ));
  CHECK(equal(grad[s.k], zeros<double>({3, 2})));
}

TEST_CASE("KVCache: errors") {
  KVCache<double> cache({2, 4}, 3, 5, 6);
  const auto k = zeros<double>({2, 4, 1, 5}), v = zeros<double>({2, 4, 1, 6});
  CHECK(message<ShapeError>([&] { cache.append(v, v); }) ==
        "KVCache.append: k (2, 4, 1, 6) and v (2, 4, 1, 6); this cache takes k (…, n, 5) and v (…, n, "
        "6) with leading axes (2, 4)"sv);
  CHECK(message<ShapeError>([&] { cache.append(k, zeros<double>({2, 4, 2, 6})); }) != "[nothing was thrown]"sv);
  CHECK(message<ShapeError>([&] { cache.append(zeros<double>({4, 1, 5}), v); }) != "[nothing was thrown]"sv);
  cache.append(k, v);
  CHECK(message<ValueError>([&] {
          decode(zeros<double>({2, 4, 2, 5}), cache);
        }) == "decode: 2 queries and 1 tokens in the cache; append the keys and values of the new tokens first"sv);
  CHECK(message<ShapeError>([&] {
          decode(zeros<double>({2, 6, 1, 5}), cache);
        }) ==
        "decode: q (2, 6, 1, 5) on a cache of (2, 4) with keys of width 5; q is (…, n, width), its last "
        "leading axis (the heads) the "
        "cache's or a multiple of it"sv);
  CHECK(message<ShapeError>([&] { decode(zeros<double>({1, 4, 1, 5}), cache); }) != "[nothing was thrown]"sv);
  CHECK(message<ShapeError>([&] { decode(zeros<double>({2, 4, 1, 4}), cache); }) != "[nothing was thrown]"sv);
  CHECK(message<ValueError>([&] { cache.truncate(2); }) == "KVCache.truncate: to 2 tokens of 1; it must be 0 to 1"sv);
  CHECK(message<ShapeError>([&] { KVCache<float>({}, -1, 4); }) ==
        "KVCache: capacity -1, key width 4, value width 0; none may be negative"sv);
  CHECK(message<ShapeError>([&] {
          KVCache<float>({1, 1, 1, 1, 1}, 1, 4);
        }) == "KVCache: leading axes (1, 1, 1, 1, 1); at most 4 go before (length, width)"sv);
}

TEST_CASE("KVCache and SlidingKVCache: sinks, for few queries and many, with a gradient where a tape watches") {
  const Sequences<double> s({2, 6}, {2, 2}, 12, 4, 3);
  const auto sinks = NumpyRandom(3).randn({6});
  const AttentionOptions<double> options{.sinks = sinks};
  const auto whole = attention(s.q, s.k, s.v, {.sinks = sinks, .causal = true, .enable_gqa = true}).out;
  const auto near =
      attention(s.q, s.k, s.v, {.mask = sliding_window_mask(12, 4), .sinks = sinks, .causal = true, .enable_gqa = true})
          .out;
  for (const auto& chunks :
       std::vector<std::vector<std::int64_t>>{{12}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {5, 2, 1, 4}, {10, 2}}) {
    CHECK(close(decoded(KVCache<double>({2, 2}, 12, 4, 3), chunks, s.q, s.k, s.v, options), whole));
    CHECK(close(decoded(SlidingKVCache<double>({2, 2}, 4, 4, 3), chunks, s.q, s.k, s.v, options), near));
  }
  KVCache<double> cache({2, 2}, 12, 4, 3);
  cache.append(s.k, s.v);
  const auto last = slice(s.q, -2, 11, 12);
  CHECK(close(decode(last, cache, {.sinks = zeros<double>({1})}), decode(last, cache, {.sinks = zeros<double>({6})})));
  CHECK(message<ShapeError>([&] { decode(last, cache, {.sinks = zeros<double>({5})}); }) != "[nothing was thrown]"sv);
  const auto gradient = [&](const auto& f) {
    Tape<double> tape;
    tape.watch(sinks);
    return tape.backward(sum(f()))[sinks];
  };
  CHECK(close(gradient([&] { return decode(last, cache, options); }),
              gradient([&] { return attention(last, s.k, s.v, {.sinks = sinks, .enable_gqa = true}).out; })));
}

TEST_CASE_TEMPLATE("KVCache: scores of every finite size are told apart as attention tells them", T, float, double) {
  constexpr T largest = std::numeric_limits<T>::max(), smallest = std::numeric_limits<T>::lowest();
  const auto column = [](std::vector<T> x) { return from_vector(x, {static_cast<std::int64_t>(x.size()), 1}); };
  const auto q = ones<T>({1, 1});
  for (T score : {T(-1e7), T(1e10), T(-1e20), T(1e30), largest, smallest})
    for (T other : {score, T(0), largest, smallest, std::nextafter(score, T(0))}) {
      const auto k = column({score, other}), v = column({1, 3});
      const auto expected = attention(q, k, v).out.item();
      CAPTURE(score);
      CAPTURE(other);
      for (int extra : {0, 700}) {  // one chunk of keys, and several
        KVCache<T> cache({}, 2 + extra, 1);
        PagedKVCache<T> paged({.blocks = 200, .block_size = 4, .key_width = 1});
        const auto sequence = paged.add();
        const auto pad_k = full<T>({extra, 1}, smallest), pad_v = zeros<T>({extra, 1});
        for (const auto& [key, value] : {std::pair(pad_k, pad_v), std::pair(k, v)}) {
          cache.append(key, value);
          paged.append(sequence, unsqueeze(key, 0), unsqueeze(value, 0));
        }
        if (extra > 0 && (score == smallest && other == smallest)) continue;  // the padding takes part too
        CHECK(decode(q, cache).item() == doctest::Approx(expected).epsilon(1e-6));
        CHECK(decode(unsqueeze(q, 0), paged, sequence).item() == doctest::Approx(expected).epsilon(1e-6));
      }
    }
}

TEST_CASE("KVCache and SlidingKVCache: every length, window and size is checked before anything changes") {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max(), least = -huge - 1;
  KVCache<double> cache({2}, 3, 1);
  cache.append(ones<double>({2, 2, 1}), ones<double>({2, 2, 1}));
  for (std::int64_t length : {std::int64_t{-1}, std::int64_t{3}, huge, least})
    CHECK(message<ValueError>([&] { cache.truncate(length); }).starts_with("KVCache.truncate: to "));
  CHECK(equal(cache.keys(), ones<double>({2, 2, 1})));
  for (std::int64_t size : {std::int64_t{-1}, huge, least}) {
    CHECK(message<ShapeError>([&] { KVCache<double>({2}, size, 1); }) != "[nothing was thrown]"sv);
    CHECK(message<ShapeError>([&] { KVCache<double>({2}, 1, size); }) != "[nothing was thrown]"sv);
    CHECK(message<ShapeError>([&] { KVCache<double>({2}, 1, 1, size); }) != "[nothing was thrown]"sv);
  }
  for (std::int64_t window : {std::int64_t{-1}, std::int64_t{0}, huge, huge / 2 + 1, least})
    CHECK(message<ValueError>([&] { SlidingKVCache<double>({2}, window, 1); }).starts_with("SlidingKVCache: window "));
  CHECK(message([&] { SlidingKVCache<double>({2}, huge / 2, 1); }) != "[nothing was thrown]"sv);
}

TEST_CASE("KVCache: accessors of temporaries give values of their own") {
  const auto make = [] { return KVCache<double>({2, 3}, 4, 5); };
  std::vector<std::int64_t> lead;
  for (std::int64_t n : make().lead()) lead.push_back(n);
  CHECK(lead == std::vector<std::int64_t>{2, 3});
  const auto& rows = SlidingKVCache<double>({2, 3}, 4, 5).rows();
  CHECK(rows.capacity() == 8);
  const auto& keys = make().keys();
  CHECK(keys.shape() == Shape{2, 3, 0, 5});
}

TEST_CASE("SlidingKVCache: every split gives attention under the window's mask") {
  const Sequences<double> s({2, 4}, {2, 2}, 8, 3, 5);
  for (std::int64_t window : {1, 2, 3, 7, 8, 20}) {
    const auto whole = attention(s.q, s.k, s.v, {.mask = sliding_window_mask(8, window), .enable_gqa = true}).out;
    for (const auto& chunks : splits(8))
      CHECK(close(decoded(SlidingKVCache<double>({2, 2}, window, 3, 5), chunks, s.q, s.k, s.v), whole));
  }
}

TEST_CASE("SlidingKVCache: the window counts the current token") {
  SlidingKVCache<double> cache({}, 2, 1);
  std::vector<double> out;
  for (int i = 1; i <= 4; ++i) {
    cache.append(zeros<double>({1, 1}), full<double>({1, 1}, i));
    out.push_back(decode(zeros<double>({1, 1}), cache).item());
  }
  CHECK(out == std::vector<double>{1, 1.5, 2.5, 3.5});
}

TEST_CASE("SlidingKVCache: its memory does not grow, and its views do not change") {
  SlidingKVCache<float> cache({2}, 5, 3);
  const auto row = [](float x) { return full<float>({2, 1, 3}, x); };
  std::vector<Tensor<float>> seen;
  for (int i = 0; i < 100; ++i) {
    cache.append(row(static_cast<float>(i)), row(static_cast<float>(-i)));
    CHECK(cache.rows().capacity() == 10);
    if (i >= 90) seen.push_back(cache.keys());
  }
  CHECK(cache.length() == 100);
  CHECK(cache.kept() == 5);
  for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i].at({1, -1, 2}) == static_cast<float>(90 + i));
  CHECK(seen[0].at({0, 0, 0}) == 86);
  const std::vector<double> fifties(50, 1);
  cache.append(zeros<float>({2, 50, 3}), zeros<float>({2, 50, 3}));  // a chunk longer than the window
  CHECK(cache.kept() == 54);
  cache.append(row(1), row(1));
  CHECK(cache.kept() == 5);
}

TEST_CASE("SlidingKVCache: keys that were dropped are not attended to in silence") {
  SlidingKVCache<double> cache({}, 3, 1);
  const auto rows = zeros<double>({4, 1});
  cache.append(rows, rows);
  cache.append(slice(rows, 0, 0, 2), slice(rows, 0, 0, 2));
  CHECK(message<ValueError>([&] { decode(slice(rows, 0, 0, 3), cache); }) ==
        "decode: 3 queries in a window of 3, and 4 keys kept of 6: the first of them should see more; decode "
        "each chunk before the "
        "next is appended"sv);
  CHECK(message<ValueError>([&] { SlidingKVCache<double>({}, 0, 1); }) ==
        "SlidingKVCache: window 0; it counts the current token, so it is 1 or more"sv);
}
