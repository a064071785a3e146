#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tapehead/caches/paged_cache.hpp"

namespace tapehead {

/// The prefixes that a paged cache already holds: a tree whose every node is one shared block and its token ids.
/// A prompt that begins as an earlier one did starts from the blocks of that prefix, and only the rest has to be
/// computed. Zheng et al., "SGLang: Efficient Execution of Structured Language Model Programs" (2024).
///
/// The tree holds its blocks (PagedKVCache::retain) until they are evicted or the tree ends; the cache must
/// outlive it.
template <Floating T> class PrefixTree {
 public:
  using Tokens = std::vector<std::int64_t>;

  explicit PrefixTree(PagedKVCache<T>& cache) : cache_(cache) {}
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;
  ~PrefixTree();

  struct Match {
    std::int64_t sequence;  ///< a new one in the cache that holds the matched tokens: the caller appends to it
                            ///< and erases it
    std::int64_t length;    ///< how many of the tokens asked for it holds
  };
  /// The longest prefix of `tokens` that is held, to the token: the last block is shared in part if only its
  /// first tokens agree. To get the last token's output too, ask without that token.
  Match match(const Tokens& tokens);
  /// Keeps the whole blocks of a sequence that holds the keys and values of these tokens. Returns the number of
  /// blocks added: a prefix that is held already is not held twice. Throws ValueError if the sequence is shorter.
  std::int64_t insert(const Tokens& tokens, std::int64_t sequence);
  /// Releases blocks that no sequence uses and no longer prefix needs, least recently asked for first, until
  /// `count` blocks have become free. Returns how many did. Throws ValueError for a negative count.
  std::int64_t evict(std::int64_t count);

  /// All blocks that the tree holds.
  std::vector<std::int64_t> blocks() const;

 private:
  // The number of the node above (0: the root), and the tokens of the block. The children of a node are
  // neighbours in the map, in the order of their tokens.
  using Key = std::pair<std::int64_t, Tokens>;
  struct Node {
    std::int64_t number, block;
    std::int64_t used;  // the clock when it was last asked for
  };
  struct Path {
    std::int64_t end = 0;  // the number of the last node
    std::vector<std::int64_t> blocks;
  };
  Path walk(const Tokens& tokens);
  bool is_leaf(const Node& node) const;

  PagedKVCache<T>& cache_;
  std::map<Key, Node> nodes_;
  std::int64_t clock_ = 0, last_number_ = 0;
};

}  // namespace tapehead
