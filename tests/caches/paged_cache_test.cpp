// The paged cache and the tree of prefixes over it: the same numbers as a cache in one piece, and no block
// lost or held twice.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

// What must hold at every moment: a block is free or held, each holder counted once, the free list without
// repeats. `kept` are the blocks that others (a tree) hold.
void check_invariants(const PagedKVCache<double>& cache, const std::vector<std::int64_t>& kept = {}) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(cache.size().blocks), 0);
  for (std::int64_t block : kept) ++count.at(static_cast<std::size_t>(block));
  for (std::int64_t sequence : cache.sequences()) {
    const auto& blocks = cache.blocks(sequence);
    const std::int64_t B = cache.size().block_size;
    CHECK(static_cast<std::int64_t>(blocks.size()) == (cache.length(sequence) + B - 1) / B);
    CHECK(std::set<std::int64_t>(blocks.begin(), blocks.end()).size() == blocks.size());
    for (std::int64_t block : blocks) ++count.at(static_cast<std::size_t>(block));
  }
  std::int64_t free = 0;
  for (std::size_t block = 0; block < count.size(); ++block) {
    CHECK(cache.holders(static_cast<std::int64_t>(block)) == count[block]);
    free += count[block] == 0;
  }
  CHECK(cache.free_blocks() == free);
}

// Row i of token t, the same for whoever computes it: what a model without context would give.
Tensor<double> rows_of(const std::vector<std::int64_t>& tokens, std::int64_t heads, std::int64_t width,
                       double salt) {
  Buffer<double> rows({heads, static_cast<std::int64_t>(tokens.size()), width});
  std::int64_t at = 0;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::size_t i = 0; i < tokens.size(); ++i)
      for (std::int64_t c = 0; c < width; ++c)
        rows[at++] =
            std::sin(salt + 1.7 * static_cast<double>(tokens[i]) + 0.3 * static_cast<double>(i == 0) +
                     static_cast<double>(h) + 0.1 * static_cast<double>(c));
  return rows;
}

}  // namespace

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
        "PagedKVCache.append: k (2, 1, 3) and v (1, 1, 3); this cache takes k (1, n, 3) and v (1, n, 3)"sv);
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
        "more (blocks 0 or more)"sv);
  check_invariants(cache);
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

TEST_CASE("PrefixTree: the longest prefix, to the token") {
  PagedKVCache<double> cache({.blocks = 20, .block_size = 4, .key_width = 1});
  PrefixTree<double> tree(cache);
  const auto remember = [&](const std::vector<std::int64_t>& tokens) {
    const auto sequence = cache.add();
    cache.append(sequence, rows_of(tokens, 1, 1, 0), rows_of(tokens, 1, 1, 5));
    const auto added = tree.insert(tokens, sequence);
    cache.erase(sequence);
    return added;
  };
  const auto matched = [&](const std::vector<std::int64_t>& tokens) {
    const auto match = tree.match(tokens);
    CHECK(cache.length(match.sequence) == match.length);
    const std::vector<std::int64_t> held(tokens.begin(), tokens.begin() + match.length);
    CHECK(equal(cache.keys(match.sequence), rows_of(held, 1, 1, 0)));
    CHECK(equal(cache.values(match.sequence), rows_of(held, 1, 1, 5)));
    cache.erase(match.sequence);
    return match.length;
  };
  CHECK(matched({1, 2, 3}) == 0);
  CHECK(remember({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) == 3);
  CHECK(matched({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}) == 12);
  CHECK(matched({1, 2, 3, 4, 5, 6, 7, 8}) == 8);
  CHECK(matched({1, 2, 3, 4, 5, 6, 99}) == 6);
  CHECK(matched({1, 2, 3}) == 3);
  CHECK(matched({2, 2, 3, 4}) == 0);
  CHECK(matched({}) == 0);
  CHECK(remember({1, 2, 3, 4, 5, 6, 70, 80, 90}) ==
        1);  // parts in the second block; the tail of one token is not a block
  CHECK(matched({1, 2, 3, 4, 5, 6, 70, 80, 90}) == 8);
  CHECK(matched({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0}) == 10);
  CHECK(remember({1, 2, 3, 4, 5, 6, 70, 80, 90, 91, 92, 93}) == 1);  // grows the second branch
  CHECK(matched({1, 2, 3, 4, 5, 6, 70, 80, 90, 91, 92, 93}) == 12);
  CHECK(remember({1, 2, 3, 4, 5, 6, 7, 8}) == 0);
  CHECK(remember({1, 2, 30, 40}) == 1);
  CHECK(matched({1, 2, 3, 4, 5, 60}) == 5);
  CHECK(matched({1, 2, 30, 41}) == 3);
  check_invariants(cache, tree.blocks());
  const auto s = cache.add();
  CHECK(message<ValueError>([&] {
          tree.insert({1, 2}, s);
        }) == "PrefixTree.insert: 2 tokens, and sequence " + std::to_string(s) +
                  " holds 0; append the keys and values of them all first");
}

TEST_CASE("PrefixTree: eviction frees what nobody uses, least recently asked for first") {
  PagedKVCache<double> cache({.blocks = 6, .block_size = 2, .key_width = 1});
  PrefixTree<double> tree(cache);
  const auto remember = [&](const std::vector<std::int64_t>& tokens) {
    const auto sequence = cache.add();
    cache.append(sequence, rows_of(tokens, 1, 1, 0), rows_of(tokens, 1, 1, 5));
    tree.insert(tokens, sequence);
    cache.erase(sequence);
  };
  remember({1, 2, 3, 4, 5, 6});
  remember({1, 2, 7, 8});
  remember({9, 9});
  CHECK(cache.free_blocks() == 1);
  const auto busy = tree.match({1, 2, 3, 4});  // holds two blocks of the first run
  CHECK(tree.evict(1) == 1);  // the end of that run is free to go, but {7, 8} was asked for before it
  check_invariants(cache, tree.blocks());
  const auto left = tree.match({1, 2, 7, 8});
  CHECK(left.length == 2);
  cache.erase(left.sequence);
  CHECK(tree.evict(10) == 2);  // {5, 6} and {9, 9}; the rest is in use
  check_invariants(cache, tree.blocks());
  CHECK(cache.free_blocks() == 4);
  CHECK(equal(cache.keys(busy.sequence), rows_of({1, 2, 3, 4}, 1, 1, 0)));
  cache.erase(busy.sequence);
  CHECK(tree.evict(10) == 2);
  CHECK(tree.blocks().empty());
  CHECK(cache.free_blocks() == 6);
}

TEST_CASE("PrefixTree: a random workload of prompts that share their beginnings") {
  PagedKVCache<double> cache({.blocks = 40, .block_size = 3, .heads = 2, .key_width = 2});
  TorchRandom rng(11);
  std::int64_t reused = 0, evicted = 0;
  {
    PrefixTree<double> tree(cache);
    for (int round = 0; round < 600; ++round) {
      const std::int64_t n = rng.randint(0, 15, {}).item();
      const auto tokens = rng.randint(0, 2, {n}).to_vector();  // two tokens: prefixes repeat
      const auto match = tree.match(tokens);
      const std::vector<std::int64_t> rest(tokens.begin() + match.length, tokens.end());
      if (cache.blocks_needed(match.sequence, n - match.length) > cache.free_blocks())
        evicted += tree.evict(cache.blocks_needed(match.sequence, n - match.length) - cache.free_blocks());
      // Rows depend on the whole prefix, as a model's do: here, on the position and the token.
      const auto rows = [&](double salt) {
        const auto all = from_vector(std::vector<double>(static_cast<std::size_t>(2 * n * 2)), {2, n, 2});
        Buffer<double> out(all.shape());
        double prefix = salt;
        for (std::int64_t i = 0; i < n; ++i) {
          prefix = std::fmod(3 * prefix + static_cast<double>(tokens[static_cast<std::size_t>(i)]) + 1, 1009);
          for (std::int64_t h = 0; h < 2; ++h)
            for (std::int64_t c = 0; c < 2; ++c)
              out[(h * n + i) * 2 + c] = prefix + static_cast<double>(10000 * h + 20000 * c);
        }
        return Tensor<double>(std::move(out));
      };
      cache.append(match.sequence, slice(rows(1), 1, match.length, n), slice(rows(2), 1, match.length, n));
      CHECK(equal(cache.keys(match.sequence), rows(1)));
      CHECK(equal(cache.values(match.sequence), rows(2)));
      tree.insert(tokens, match.sequence);
      check_invariants(cache, tree.blocks());
      reused += match.length;
      cache.erase(match.sequence);
      check_invariants(cache, tree.blocks());
    }
  }
  CHECK(cache.free_blocks() == 40);
  CHECK(reused > 2000);
  CHECK(evicted > 50);
}
