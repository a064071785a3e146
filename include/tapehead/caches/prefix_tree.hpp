#pragma once
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tapehead/caches/paged_cache.hpp"

namespace tapehead {

/// Which prefixes a paged cache holds already: a radix tree from token ids to shared blocks. A prompt that
/// begins as an earlier one did starts from its blocks, and only the rest has to be computed. Each node is a
/// run of whole blocks; nodes part where sequences do. Zheng et al., "SGLang: Efficient Execution of
/// Structured Language Model Programs" (2024).
///
/// The tree holds its blocks (PagedKVCache::retain) until they are evicted or it ends; the cache must outlive
/// it.
template <std::floating_point T>
class PrefixTree {
 public:
  using Tokens = std::vector<std::int64_t>;

  explicit PrefixTree(PagedKVCache<T>& cache) : cache_(cache) {}
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;
  ~PrefixTree();

  struct Match {
    std::int64_t sequence;  ///< a new one in the cache, holding the matched tokens: the caller's, to append
                            ///< to and erase
    std::int64_t length;    ///< how many tokens of the question it holds
  };
  /// The longest prefix of `tokens` that is held, to the token: the last block is shared in part where only
  /// part of it agrees. Whoever needs the last token's output, too, asks without that token.
  Match match(const Tokens& tokens);
  /// Keeps the whole blocks of a sequence that holds the keys and values of these tokens. Returns how many
  /// blocks that added: those of a prefix that is held already are not held twice. Throws ValueError where
  /// the sequence is shorter.
  std::int64_t insert(const Tokens& tokens, std::int64_t sequence);
  /// Gives up blocks that no sequence uses, least recently asked for first and each run from its end, until
  /// `count` blocks have become free. Returns how many did.
  std::int64_t evict(std::int64_t count);

  /// All blocks that the tree holds.
  std::vector<std::int64_t> blocks() const;

 private:
  struct Node {
    Tokens tokens;  // a whole number of blocks
    std::vector<std::int64_t> blocks;
    std::map<Tokens, std::unique_ptr<Node>> children;  // by the tokens of their first block
    Node* parent = nullptr;
    std::int64_t used = 0;  // when it was last asked for
  };
  struct Place {
    Node* node;           // where the walk ended
    std::int64_t blocks;  // how many of its blocks agree
    std::int64_t length;  // tokens in whole blocks from the root to here
  };
  Place walk(const Tokens& tokens);
  Node* split(Node* node, std::int64_t blocks);
  Node* least_recent_unused();
  void remove(Node* leaf);
  template <class F>
  void each_node(const F& f) const;

  PagedKVCache<T>& cache_;
  Node root_;
  std::int64_t clock_ = 0;
};

}  // namespace tapehead
