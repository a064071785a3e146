#pragma once
#include <concepts>
#include <cstdint>
#include <map>
#include <type_traits>
#include <vector>

#include "tapehead/attention/attention.hpp"
#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

/// Keys and values of many sequences in blocks of a fixed number of tokens, from one pool: no sequence needs
/// its memory in one piece or in advance, and sequences that begin alike share blocks. A block is copied when
/// one of several sequences writes into it. Kwon et al., "Efficient Memory Management for Large Language
/// Model Serving with PagedAttention" (2023).
///
/// Calls that throw change nothing. Not to be copied: the pool is one.
template <std::floating_point T>
class PagedKVCache {
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
  Sequence add();
  /// A new sequence that begins as this one does, its first `length` tokens (-1: all), sharing their blocks.
  Sequence fork(Sequence sequence, std::int64_t length = -1);
  /// The sequence ends; blocks that nobody else holds are free again.
  void erase(Sequence sequence);

  /// Adds n tokens: k is (heads, n, key_width), v (heads, n, value_width). Throws ShapeError where these do
  /// not fit, ValueError where there are not blocks enough, GradientError where a tape knows one of them.
  void append(Sequence sequence, const Tensor<T>& k, const Tensor<T>& v);
  /// How many free blocks append() of n tokens would take.
  std::int64_t blocks_needed(Sequence sequence, std::int64_t n) const;

  std::int64_t length(Sequence sequence) const { return get(sequence).length; }
  /// The block table: token j lies in blocks(s)[j / block_size] at place j % block_size.
  const std::vector<std::int64_t>& blocks(Sequence sequence) const { return get(sequence).blocks; }
  /// Copies, gathered from the blocks: (heads, length, width).
  Tensor<T> keys(Sequence sequence) const { return gathered(sequence, keys_); }
  Tensor<T> values(Sequence sequence) const { return gathered(sequence, values_); }

  const Size& size() const { return size_; }
  std::int64_t free_blocks() const { return static_cast<std::int64_t>(free_.size()); }
  /// How many hold a block: sequences, and whoever called retain().
  std::int64_t holders(std::int64_t block) const;
  /// The living sequences.
  std::vector<Sequence> sequences() const;

  // For those who keep blocks beyond a sequence's life (a tree of prefixes): each retain() wants one
  // release().
  void retain(std::int64_t block);
  void release(std::int64_t block);
  /// A new sequence of `length` tokens in blocks that somebody holds.
  Sequence adopt(const std::vector<std::int64_t>& blocks, std::int64_t length);

  /// The pools, for kernels: (blocks, heads, block_size, width), row after row.
  const T* key_pool() const { return keys_.data(); }
  const T* value_pool() const { return values_.data(); }

 private:
  struct Entry {
    std::vector<std::int64_t> blocks;
    std::int64_t length = 0;
  };
  const Entry& get(Sequence sequence) const;
  std::int64_t take();
  std::int64_t& held(std::int64_t block);
  Tensor<T> gathered(Sequence sequence, const Tensor<T>& pool) const;
  void write(const Tensor<T>& pool, const Entry& entry, const Tensor<T>& rows);
  void copy_block(const Tensor<T>& pool, std::int64_t from, std::int64_t to);

  Size size_;
  Tensor<T> keys_, values_;            // written in place; shown to nobody but kernels
  std::vector<std::int64_t> holders_;  // by block; 0: free
  std::vector<std::int64_t> free_;     // last freed, first taken
  std::map<Sequence, Entry> sequences_;
  Sequence next_ = 0;
};

/// Attention of the last n tokens of a sequence, whose keys and values have been appended, to all up to each
/// of them: causal, the last query at the last key. q is (Hq, n, key_width), Hq a multiple of the cache's
/// heads; the result is (Hq, n, value_width). As decode() on a KVCache, and equal to it.
template <std::floating_point T>
Tensor<T> decode(const Tensor<T>& q, const PagedKVCache<T>& cache, std::int64_t sequence,
                 const AttentionOptions<std::type_identity_t<T>>& options = {});

}  // namespace tapehead
