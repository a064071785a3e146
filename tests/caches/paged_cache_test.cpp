// The paged cache: the same numbers as a cache in one piece, and no block lost or held twice.
#include "tapehead/caches/paged_cache.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "caches/paged.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using paged::check_invariants;
using testing::message;

TEST_CASE("PagedKVCache: the numbers of a cache in one piece, for every block size") {
  const auto q = NumpyRandom(1).randn({6, 23, 4}), k = NumpyRandom(2).randn({2, 23, 4}),
             v = NumpyRandom(3).randn({2, 23, 3});
  const auto whole = attention(q, k, v, {.causal = true, .enable_gqa = true}).out;
  for (std::int64_t block_size : {1, 2, 5, 16, 64})
    for (std::int64_t chunk : {1, 2, 7, 23}) {
      PagedKVCache<double> cache(
          {.blocks = 30, .block_size = block_size, .heads = 2, .key_width = 4, .value_width = 3});
      const auto other = cache.add(), sequence = cache.add();
      std::vector<Tensor<double>> out;
      for (std::int64_t at = 0; at < 23; at += chunk) {
        const auto part = [&](const Tensor<double>& x) { return slice(x, 1, at, at + chunk); };
        cache.append(sequence, part(k), part(v));
        if (at % 4 == 0)
          cache.append(other, slice(part(k), 1, 0, 1), slice(part(v), 1, 0, 1));  // so that blocks interleave
        out.push_back(decode(part(q), cache, sequence));
      }
      CHECK(allclose(cat(out, 1), whole, 1e-13, 1e-13));
      CHECK(equal(cache.keys(sequence), k));
      CHECK(equal(cache.values(sequence), v));
      check_invariants(cache);
      cache.erase(other), cache.erase(sequence);
      CHECK(cache.free_blocks() == 30);
    }
}

TEST_CASE("PagedKVCache: a long sequence, read where it lies") {
  const auto q = TorchRandom(1).randn({8, 1, 64}), k = TorchRandom(2).randn({2, 1300, 64}),
             v = TorchRandom(3).randn({2, 1300, 64});
  PagedKVCache<float> paged({.blocks = 100, .block_size = 16, .heads = 2, .key_width = 64});
  KVCache<float> one_piece({2}, 1300, 64);
  const auto sequence = paged.add();
  paged.append(sequence, k, v);
  one_piece.append(k, v);
  CHECK(allclose(decode(q, paged, sequence), decode(q, one_piece), 3e-6, 3e-6));
}

TEST_CASE("PagedKVCache: a fork shares its blocks until one of the two writes") {
  PagedKVCache<double> cache({.blocks = 8, .block_size = 4, .key_width = 1});
  const auto rows = [](std::initializer_list<double> x) {
    return from_vector(std::vector<double>(x), {1, static_cast<std::int64_t>(x.size()), 1});
  };
  const auto a = cache.add();
  cache.append(a, rows({0, 1, 2, 3, 4, 5}), rows({0, 1, 2, 3, 4, 5}));
  const auto b = cache.fork(a), c = cache.fork(a, 5);
  CHECK(cache.free_blocks() == 6);
  CHECK(cache.blocks(b) == cache.blocks(a));
  CHECK(cache.blocks_needed(c, 1) == 1);
  cache.append(c, rows({90}), rows({90}));  // token 5 of c is not token 5 of a: the last block is copied
  CHECK(cache.blocks(c)[0] == cache.blocks(a)[0]);
  CHECK(cache.blocks(c)[1] != cache.blocks(a)[1]);
  cache.append(a, rows({6}), rows({6}));  // b still holds a's old block
  cache.append(b, rows({80, 81, 82}), rows({80, 81, 82}));
  CHECK(cache.keys(a).to_vector() == std::vector<double>{0, 1, 2, 3, 4, 5, 6});
  CHECK(cache.keys(b).to_vector() == std::vector<double>{0, 1, 2, 3, 4, 5, 80, 81, 82});
  CHECK(cache.values(c).to_vector() == std::vector<double>{0, 1, 2, 3, 4, 90});
  check_invariants(cache);
  cache.erase(a);
  CHECK(cache.keys(b).to_vector() == std::vector<double>{0, 1, 2, 3, 4, 5, 80, 81, 82});
  check_invariants(cache);
}

TEST_CASE("PagedKVCache: a full pool refuses and changes nothing") {
  PagedKVCache<double> cache({.blocks = 3, .block_size = 2, .key_width = 1});
  const auto rows = [](std::int64_t n) { return ones<double>({1, n, 1}); };
  const auto a = cache.add();
  cache.append(a, rows(3), rows(3));
  const auto b = cache.fork(a);
  CHECK(message<ValueError>([&] { cache.append(b, rows(3), rows(3)); }) ==
        "PagedKVCache.append: 3 more tokens of sequence 1 need 2 blocks, and 1 of 3 are free; erase a "
        "sequence, evict prefixes, or make "
        "the pool larger"sv);
  CHECK(cache.length(b) == 3);
  CHECK(cache.blocks(b) == cache.blocks(a));
  check_invariants(cache);
  cache.append(b, rows(1), rows(1));
  CHECK(cache.free_blocks() == 0);
  CHECK(message<ValueError>([&] { cache.append(a, rows(2), rows(2)); }) != "[nothing was thrown]"sv);
  cache.append(a, rows(1), rows(1));
  CHECK(cache.length(a) == 4);
}

TEST_CASE("PagedKVCache: errors") {
  PagedKVCache<double> cache({.blocks = 2, .block_size = 2, .key_width = 3});
  const auto a = cache.add();
  const auto rows = ones<double>({1, 1, 3});
  CHECK(message<ShapeError>([&] {
          cache.append(a, ones<double>({2, 1, 3}), rows);
        }) ==
        "PagedKVCache.append: k (2, 1, 3) and v (1, 1, 3); this cache takes k (…, n, 3) and v (…, n, 3) with "
        "leading axes (1,)"sv);
  CHECK(message<IndexError>([&] { cache.append(7, rows, rows); }) ==
        "PagedKVCache: there is no sequence 7; add() gives one"sv);
  const auto b = cache.fork(a);
  cache.erase(b);
  CHECK(message<IndexError>([&] { cache.erase(b); }) ==
        "PagedKVCache: there is no sequence 1 any more: it was erased"sv);
  CHECK(message<ValueError>([&] { cache.fork(a, 1); }) ==
        "PagedKVCache.fork: the first 1 tokens of sequence 0, which has 0; -1 means all"sv);
  CHECK(message<ValueError>([&] { cache.release(1); }) ==
        "PagedKVCache: block 1 is free; only a block that somebody holds can be shared or released"sv);
  CHECK(message<IndexError>([&] { cache.retain(2); }) == "PagedKVCache: block 2 of 2; blocks are 0 to 1"sv);
  CHECK(message<ValueError>([&] { decode(ones<double>({1, 1, 3}), cache, a); }) != "[nothing was thrown]"sv);
  Tape<double> tape;
  tape.watch(rows);
  CHECK(message<GradientError>([&] { cache.append(a, rows, rows); }) != "[nothing was thrown]"sv);
  CHECK(message<ShapeError>([&] { PagedKVCache<float>({.blocks = 2, .block_size = 0, .key_width = 3}); }) ==
        "PagedKVCache: 2 blocks of 0 tokens, 1 heads, keys of width 3, values of width 3; each must be 1 or "
        "more (blocks and widths 0 or more)"sv);
  check_invariants(cache);
}

TEST_CASE("PagedKVCache: every length, count and index is checked before anything changes") {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max(), least = -huge - 1;
  PagedKVCache<double> cache({.blocks = 4, .block_size = 2, .key_width = 1});
  const auto a = cache.add();
  cache.append(a, ones<double>({1, 3, 1}), ones<double>({1, 3, 1}));
  const auto held = cache.blocks(a);
  for (std::int64_t length : {std::int64_t{-3}, std::int64_t{-1}, std::int64_t{1}, huge, least})
    CHECK(message<ValueError>([&] { cache.adopt({}, length); }).starts_with("PagedKVCache.adopt: "));
  for (std::int64_t length : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{2}, std::int64_t{5}, huge, least})
    CHECK(message<ValueError>([&] { cache.adopt(held, length); }).starts_with("PagedKVCache.adopt: "));
  CHECK(message<ValueError>([&] { cache.adopt({}, -3); }) ==
        "PagedKVCache.adopt: -3 tokens in 0 blocks of 2; they must fill all blocks, the last one at least in part"sv);
  CHECK(message<ValueError>([&] {
          cache.adopt({held[0], held[0]}, 4);
        }) == "PagedKVCache.adopt: a block is listed twice; each holds other tokens of the sequence"sv);
  CHECK(message<ValueError>([&] { cache.adopt({3}, 2); }).find("is free") != std::string::npos);
  for (std::int64_t block : {std::int64_t{-1}, std::int64_t{4}, huge, least}) {
    CHECK(message<IndexError>([&] { cache.adopt({block}, 2); }).starts_with("PagedKVCache: block "));
    CHECK(message<IndexError>([&] { cache.holders(block); }).starts_with("PagedKVCache: block "));
    CHECK(message<IndexError>([&] { cache.retain(block); }).starts_with("PagedKVCache: block "));
    CHECK(message<IndexError>([&] { cache.release(block); }).starts_with("PagedKVCache: block "));
  }
  for (std::int64_t length : {std::int64_t{-2}, std::int64_t{4}, huge, least})
    CHECK(message<ValueError>([&] { cache.fork(a, length); }).starts_with("PagedKVCache.fork: "));
  for (std::int64_t n : {std::int64_t{-1}, huge, least})
    CHECK(message<ValueError>([&] { cache.blocks_needed(a, n); }).starts_with("PagedKVCache.blocks_needed: "));
  CHECK(cache.blocks_needed(a, huge - 3) == huge / 2 + 1 - 2);
  for (std::int64_t sequence : {std::int64_t{-1}, std::int64_t{1}, huge, least}) {
    CHECK(message<IndexError>([&] { cache.length(sequence); }).starts_with("PagedKVCache: there is no sequence"));
    CHECK(message<IndexError>([&] { cache.erase(sequence); }).starts_with("PagedKVCache: there is no sequence"));
    CHECK(message<IndexError>([&] { decode(ones<double>({1, 1, 1}), cache, sequence); }) != "[nothing was thrown]"sv);
  }
  CHECK(cache.sequences() == std::vector<std::int64_t>{a});
  check_invariants(cache);
  cache.append(a, ones<double>({1, 2, 1}), ones<double>({1, 2, 1}));
  CHECK(equal(cache.keys(a), ones<double>({1, 5, 1})));
  for (std::int64_t size : {std::int64_t{-1}, huge, least})
    CHECK(message<ShapeError>([&] { PagedKVCache<float>({.blocks = size, .block_size = 2, .key_width = 2}); }) !=
          "[nothing was thrown]"sv);
}

TEST_CASE("PagedKVCache: a block is released as often as it was retained, not more") {
  PagedKVCache<double> cache({.blocks = 2, .block_size = 2, .key_width = 1});
  const auto a = cache.add();
  cache.append(a, ones<double>({1, 2, 1}), ones<double>({1, 2, 1}));
  CHECK(message<ValueError>([&] { cache.release(0); }) ==
        "PagedKVCache: block 0 was not retained, so it cannot be released; the sequences that hold it end with "
        "erase()"sv);
  cache.retain(0);
  cache.release(0);
  CHECK(message<ValueError>([&] { cache.release(0); }) != "[nothing was thrown]"sv);
  check_invariants(cache);
  cache.erase(a);
  CHECK(cache.free_blocks() == 2);
}

TEST_CASE("PagedKVCache: a block table outlives the sequence and the cache it came from") {
  PagedKVCache<double> cache({.blocks = 2, .block_size = 1, .key_width = 1});
  const auto a = cache.add();
  cache.append(a, ones<double>({1, 2, 1}), ones<double>({1, 2, 1}));
  const auto& table = cache.blocks(a);
  cache.erase(a);
  CHECK(table == std::vector<std::int64_t>{0, 1});
  const auto& size = PagedKVCache<double>({.blocks = 3, .key_width = 1}).size();
  CHECK(size.blocks == 3);
}

TEST_CASE("PagedKVCache: a random workload loses nothing and frees nothing twice") {
  PagedKVCache<double> cache({.blocks = 24, .block_size = 3, .heads = 2, .key_width = 2});
  std::map<std::int64_t, std::vector<double>> expected;  // sequence -> the first key element of each token
  TorchRandom rng(4);
  const auto below = [&rng](std::int64_t n) { return rng.randint(0, n, {}).item(); };
  const auto any = [&] {
    return std::next(expected.begin(), below(static_cast<std::int64_t>(expected.size())))->first;
  };
  double next = 1;
  int refused = 0;
  for (int step = 0; step < 3000; ++step) {
    const std::int64_t action = expected.empty() ? 0 : below(10);
    if (action == 0) {
      expected[cache.add()] = {};
    } else if (action == 1) {
      const auto from = any();
      const auto length = below(static_cast<std::int64_t>(expected[from].size()) + 1);
      auto prefix = expected[from];
      prefix.resize(static_cast<std::size_t>(length));
      expected[cache.fork(from, length)] = prefix;
    } else if (action <= 3) {
      const auto gone = any();
      cache.erase(gone), expected.erase(gone);
    } else {
      const auto to = any();
      const std::int64_t n = below(6);
      Buffer<double> rows({2, n, 2});
      for (std::int64_t i = 0; i < rows.numel(); ++i)
        rows[i] = next + static_cast<double>(i / 2 % std::max<std::int64_t>(n, 1));
      const Tensor<double> k = std::move(rows);
      if (cache.blocks_needed(to, n) > cache.free_blocks()) {
        CHECK(message<ValueError>([&] { cache.append(to, k, k); }) != "[nothing was thrown]"sv);
        ++refused;
      } else {
        cache.append(to, k, k);
        for (std::int64_t i = 0; i < n; ++i) expected[to].push_back(next++);
      }
    }
    check_invariants(cache);
    for (const auto& [sequence, tokens] : expected)
      if (step % 10 == 0) {
        CHECK(select(select(cache.keys(sequence), 0, 1), 1, 0).to_vector() == tokens);
        CHECK(select(select(cache.values(sequence), 0, 0), 1, 1).to_vector() == tokens);
      }
  }
  CHECK(refused > 100);
  while (!expected.empty()) cache.erase(expected.begin()->first), expected.erase(expected.begin());
  CHECK(cache.free_blocks() == 24);
}
