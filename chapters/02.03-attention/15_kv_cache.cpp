// The causal mask makes the KV cache possible
//
// Under a causal mask the output of token i does not depend on later tokens, so keys and values can be kept
// when they have been computed once. Prefill and decode give the rows of the full pass; how much work that
// saves; and how a paged cache lets two sequences share the blocks of a common prefix.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "claims.hpp"
#include "table.hpp"
#include "tapehead/caches/cache.hpp"
#include "tapehead/caches/paged_cache.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

// A prompt of 4 tokens in one pass (prefill), then 4 tokens one at a time (decode).
void prefill_and_decode(Book& book) {
  const std::int64_t prompt = 4, L = 8, d = 16;
  NumpyRandom rng(0);
  const auto Q = rng.randn({L, d}), K = rng.randn({L, d}), V = rng.randn({L, d});
  const auto full = attention(Q, K, V, {.causal = true}).out;
  const auto rows = [](const Tensor<double>& x, std::int64_t from, std::int64_t to) {
    return x.slice(0, from, to);
  };

  KVCache<double> cache({}, L, d);
  cache.append(rows(K, 0, prompt), rows(V, 0, prompt));
  std::vector<Tensor<double>> outputs{decode(rows(Q, 0, prompt), cache)};  // prefill
  for (std::int64_t t = prompt; t < L; ++t) {
    cache.append(rows(K, t, t + 1), rows(V, t, t + 1));   // the new token's key and value
    outputs.push_back(decode(rows(Q, t, t + 1), cache));  // its query against all that are cached
    fmt::print("token {}: 1 query, {} keys, largest difference from the full pass {:.0e}\n", t,
               cache.length(), apart(outputs.back(), rows(full, t, t + 1)));
  }
  book.expect("prefill and decode give the rows of the full pass", apart(cat<double>(outputs), full) < 1e-14);

  // A cache would be wrong without the mask: then earlier outputs depend on later keys.
  const auto open = [&](std::int64_t n) {
    return attention(rows(Q, 0, n), rows(K, 0, n), rows(V, 0, n)).out;
  };
  book.expect("without a causal mask a new token changes the outputs before it",
              apart(rows(open(L), 0, prompt), open(prompt)) > 0.1);
}

// Scores computed to generate n tokens one after the other, from an empty prompt.
void work_saved(Book& book) {
  Table work({"n", "all again", "with a cache", "times less"});
  for (std::int64_t n = 16; n <= 4096; n *= 4) {
    double again = 0, cached = 0;
    for (std::int64_t t = 1; t <= n; ++t) {
      const auto length = static_cast<double>(t);
      again += length * length;  // the whole matrix of scores, for its last row
      cached += length;          // that row alone
    }
    work.add(n, again, cached, again / cached);
  }
  fmt::print("\n    n   scores, all again   with a cache   times less\n");
  work.print("{:5.0f} {:19.0f} {:14.0f} {:12.1f}\n");
  fmt::print("grow like n to the power {:.1f} and {:.1f}\n", work.exponent("all again"),
             work.exponent("with a cache"));
  book.draw("decode_work",
            {work.curve("all again", Style::line_points), work.curve("with a cache", Style::line_points)});
}

// Sequence B begins as A does, for `prefix` tokens. Blocks hold 4 tokens: A and B share the full blocks of the
// prefix, and a block that is full only in part is copied before one of them writes into it.
void shared_prefix(Book& book) {
  PagedKVCache<double> cache({.blocks = 8, .block_size = 4, .heads = 1, .key_width = 2});
  NumpyRandom rng(0);
  const auto tokens = [&](std::int64_t n) { return rng.randn({1, n, 2}); };
  const std::int64_t prefix = 6, rest = 12 - prefix;
  const auto A = cache.add();
  cache.append(A, tokens(prefix), tokens(prefix));
  const auto B = cache.fork(A);
  const auto shared = cache.keys(A);
  cache.append(A, tokens(rest), tokens(rest));
  cache.append(B, tokens(rest), tokens(rest));

  std::vector<std::int64_t> table;
  for (const auto sequence : {A, B})
    for (std::size_t j = 0; j < 12; ++j) table.push_back(cache.blocks(sequence)[j / 4]);
  fmt::print("\nblock of each token, A above B; {} of {} blocks are used\n",
             cache.size().blocks - cache.free_blocks(), cache.size().blocks);
  auto caption = heatmap_caption("paged_blocks");
  caption.description =
      fmt::format("Two rows of 12 tokens. Sequence A is in blocks {}, sequence B in blocks {}.",
                  fmt::join(cache.blocks(A), ", "), fmt::join(cache.blocks(B), ", "));
  book.draw("paged_blocks", from_vector(table, {2, 12}), caption);
  book.expect(
      "both sequences still begin with the shared tokens",
      equal(cache.keys(A).slice(1, 0, prefix), shared) && equal(cache.keys(B).slice(1, 0, prefix), shared));
  book.expect("block 0 is held by both sequences, the others by one",
              cache.holders(0) == 2 && cache.holders(1) == 1);
  const auto q = tokens(1);
  book.expect("attention over the blocks is attention over the keys and values in one piece",
              apart(decode(q, cache, B), attention(q, cache.keys(B), cache.values(B)).out) < 1e-14);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Causal & Padding Masks: the KV cache");
  prefill_and_decode(book);
  work_saved(book);
  shared_prefix(book);
  return book.close();
}
