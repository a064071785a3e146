// The tree of prefixes: what it finds is what was computed for those tokens, and no block is lost or held twice.
#include "tapehead/caches/prefix_tree.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "caches/paged.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using paged::check_invariants;
using paged::rows_of;
using testing::message;

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
  const auto busy = tree.match({1, 2, 3, 4});  // holds the first two blocks
  CHECK(tree.evict(1) == 1);                   // {5, 6}: {7, 8} was asked for later, and so were those before it
  check_invariants(cache, tree.blocks());
  const auto left = tree.match({1, 2, 3, 4, 5, 6});
  CHECK(left.length == 4);
  cache.erase(left.sequence);
  CHECK(tree.evict(0) == 0);
  CHECK(tree.evict(10) == 2);  // {7, 8} and {9, 9}; the rest is in use
  check_invariants(cache, tree.blocks());
  CHECK(cache.free_blocks() == 4);
  CHECK(equal(cache.keys(busy.sequence), rows_of({1, 2, 3, 4}, 1, 1, 0)));
  cache.erase(busy.sequence);
  CHECK(tree.evict(10) == 2);
  CHECK(tree.blocks().empty());
  CHECK(cache.free_blocks() == 6);
}

TEST_CASE("PrefixTree: a negative count is refused, and a very long prefix is no recursion") {
  PagedKVCache<float> cache({.blocks = 100'000, .block_size = 1, .key_width = 1});
  const auto tokens = arange<std::int64_t>(100'000).to_vector();
  const auto sequence = cache.add();
  const auto rows = zeros<float>({1, 100'000, 1});
  cache.append(sequence, rows, rows);
  {
    PrefixTree<float> tree(cache);
    CHECK(tree.insert(tokens, sequence) == 100'000);
    cache.erase(sequence);
    CHECK(message<ValueError>([&] { tree.evict(-1); }) == "PrefixTree.evict: -1 blocks; it must be 0 or more"sv);
    CHECK(cache.free_blocks() == 0);
    CHECK(tree.evict(1) == 1);
    const auto match = tree.match(tokens);
    CHECK(match.length == 99'999);
    cache.erase(match.sequence);
  }
  CHECK(cache.free_blocks() == 100'000);
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
