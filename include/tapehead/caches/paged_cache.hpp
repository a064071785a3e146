#pragma once
#include <cstdint>
#include <map>
#include <type_traits>
#include <vector>

#include "tapehead/attention/attention.hpp"
#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

/// Keys and values of many sequences, in blocks of a fixed number of tokens from one pool: no sequence needs its
/// memory in one piece or in advance, and sequences that begin alike share blocks. A shared block is copied
/// before a sequence writes into it. Kwon et al., "Efficient Memory Management for Large Language Model Serving
/// with PagedAttention" (2023).
///
/// A call that throws changes nothing. The cache cannot be copied, because there is one pool.
template <Floating T> class PagedKVCache {
 public:
  struct Size {
    std::int64_t blocks;           ///< in the pool
    std::int64_t block_size = 16;  ///< tokens in one
    std::int64_t heads = 1;        ///< of keys and values
    std::int64_t key_width = 0;
    std::int64_t value_width = 0;  ///< 0: as wide as the keys
  };
  using Sequence = std::int64_t;  ///< names a sequence; names are not used twice

  explicit PagedKVCache(const Size& size);
  PagedKVCache(const PagedKVCache&) = delete;
  PagedKVCache& operator=(const PagedKVCache&) = delete;

  /// A new sequence without tokens.
  Sequence add() { return adopt({}, 0); }
  /// A new sequence that begins with the first `length` tokens of this one (-1: all), sharing their blocks.
  /// Throws ValueError for another negative length or one that the sequence does not have.
  Sequence fork(Sequence sequence, std::int64_t length = -1);
  /// Ends the sequence; blocks that nothing else holds are free again.
  void erase(Sequence sequence);

  /// Adds n tokens: k is (heads, n, key_width), v (heads, n, value_width). Throws ShapeError where these do
  /// not fit, ValueError where there are not blocks enough, GradientError where a tape knows one of them.
  void append(Sequence sequence, const Tensor<T>& k, const Tensor<T>& v);
  /// How many free blocks append() of n tokens would take. Throws ValueError for a negative n.
  std::int64_t blocks_needed(Sequence sequence, std::int64_t n) const;

  std::int64_t length(Sequence sequence) const { return get(sequence).length; }
  /// The block table: token j lies in blocks(s)[j / block_size] at place j % block_size.
  std::vector<std::int64_t> blocks(Sequence sequence) const { return get(sequence).blocks; }
  /// Copies, gathered from the blocks: (heads, length, width).
  Tensor<T> keys(Sequence sequence) const { return gathered(sequence, keys_); }
  Tensor<T> values(Sequence sequence) const { return gathered(sequence, values_); }

  Size size() const { return size_; }
  std::int64_t free_blocks() const { return static_cast<std::int64_t>(free_.size()); }
  /// How many hold a block: each sequence and each retain() counts. Throws IndexError outside the pool.
  std::int64_t holders(std::int64_t block) const;
  /// The living sequences.
  std::vector<Sequence> sequences() const;

  // For callers that keep blocks beyond a sequence's life (a tree of prefixes).
  /// Holds a block that is held already. Throws ValueError for a free one.
  void retain(std::int64_t block);
  /// Undoes one retain(). Throws ValueError where there was none.
  void release(std::int64_t block);
  /// A new sequence of `length` tokens in blocks that are held. Throws ValueError where the tokens do not fill
  /// all blocks, the last one at least in part, or where a block is free or listed twice.
  Sequence adopt(const std::vector<std::int64_t>& blocks, std::int64_t length);

  /// The pools, for kernels: (blocks, heads, block_size, width), row-major.
  const T* key_pool() const { return keys_.data(); }
  const T* value_pool() const { return values_.data(); }

 private:
  struct Entry {
    std::vector<std::int64_t> blocks;
    std::int64_t length = 0;
  };
  struct Holders {
    std::int64_t all = 0;       // 0: the block is free
    std::int64_t retained = 0;  // those of retain()
  };
  const Entry& get(Sequence sequence) const;
  std::int64_t blocks_for(std::int64_t tokens) const;
  std::int64_t take();
  void drop(std::int64_t block);
  Holders& held(std::int64_t block);
  T* rows(const Tensor<T>& pool, std::int64_t block, std::int64_t head) const;
  template <class F> void each_run(const Entry& entry, std::int64_t begin, std::int64_t end, const F& f) const;
  Tensor<T> gathered(Sequence sequence, const Tensor<T>& pool) const;
  void write(const Tensor<T>& pool, const Entry& entry, const Tensor<T>& rows);

  Size size_;
  Tensor<T> keys_, values_;         // written in place; seen by kernels only
  std::vector<Holders> holders_;    // by block
  std::vector<std::int64_t> free_;  // the block freed last is taken first
  std::map<Sequence, Entry> sequences_;
  Sequence next_ = 0;
};

/// Attention of the last n tokens of a sequence, whose keys and values have been appended, to all up to each
/// of them: causal, the last query at the last key. q is (Hq, n, key_width), Hq a multiple of the cache's
/// heads; the result is (Hq, n, value_width). As decode() on a KVCache, and equal to it.
template <Floating T> Tensor<T> decode(const Like<T>& q, const PagedKVCache<T>& cache, std::int64_t sequence,
                                       const AttentionOptions<std::type_identity_t<T>>& options = {});

}  // namespace tapehead
