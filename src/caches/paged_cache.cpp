#include "tapehead/caches/paged_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "caches/decoding.hpp"
#include "tapehead/kernels/error.hpp"

namespace tapehead {

namespace {

template <class Size>
Size checked(Size size) {
  if (size.value_width == 0) size.value_width = size.key_width;
  if (size.blocks < 0 || size.block_size < 1 || size.heads < 1 || size.key_width < 1 || size.value_width < 1)
    throw ShapeError(
        fmt::format("PagedKVCache: {} blocks of {} tokens, {} heads, keys of width {}, values of width {}; "
                    "each must be 1 or "
                    "more (blocks 0 or more)",
                    size.blocks, size.block_size, size.heads, size.key_width, size.value_width));
  return size;
}

}  // namespace

template <std::floating_point T>
PagedKVCache<T>::PagedKVCache(const Size& size)
    : size_(checked(size)),
      keys_(Buffer<T>({size_.blocks, size_.heads, size_.block_size, size_.key_width}, "PagedKVCache")),
      values_(Buffer<T>({size_.blocks, size_.heads, size_.block_size, size_.value_width}, "PagedKVCache")),
      holders_(static_cast<std::size_t>(size_.blocks), 0),
      free_(holders_.size()) {
  std::iota(free_.rbegin(), free_.rend(), std::int64_t{0});  // block 0 is taken first
}

template <std::floating_point T>
const typename PagedKVCache<T>::Entry& PagedKVCache<T>::get(Sequence sequence) const {
  const auto at = sequences_.find(sequence);
  if (at == sequences_.end())
    throw IndexError(
        fmt::format("PagedKVCache: there is no sequence {}{}", sequence,
                    sequence >= 0 && sequence < next_ ? " any more: it was erased" : "; add() gives one"));
  return at->second;
}

template <std::floating_point T>
std::int64_t PagedKVCache<T>::holders(std::int64_t block) const {
  if (block < 0 || block >= size_.blocks)
    throw IndexError(fmt::format("PagedKVCache: block {} of {}; blocks are 0 to {}", block, size_.blocks,
                                 size_.blocks - 1));
  return holders_[static_cast<std::size_t>(block)];
}

template <std::floating_point T>
std::vector<std::int64_t> PagedKVCache<T>::sequences() const {
  std::vector<Sequence> all;
  for (const auto& entry : sequences_) all.push_back(entry.first);
  return all;
}

// The count of a block that somebody holds.
template <std::floating_point T>
std::int64_t& PagedKVCache<T>::held(std::int64_t block) {
  if (holders(block) == 0)
    throw ValueError(fmt::format(
        "PagedKVCache: block {} is free; only a block that somebody holds can be shared or released", block));
  return holders_[static_cast<std::size_t>(block)];
}

template <std::floating_point T>
void PagedKVCache<T>::retain(std::int64_t block) {
  ++held(block);
}

template <std::floating_point T>
void PagedKVCache<T>::release(std::int64_t block) {
  if (--held(block) == 0) free_.push_back(block);  // has room: it held every block once
}

template <std::floating_point T>
std::int64_t PagedKVCache<T>::take() {
  const std::int64_t block = free_.back();
  free_.pop_back();
  return holders_[static_cast<std::size_t>(block)] = 1, block;
}

template <std::floating_point T>
std::int64_t PagedKVCache<T>::add() {
  return adopt({}, 0);
}

template <std::floating_point T>
std::int64_t PagedKVCache<T>::fork(Sequence sequence, std::int64_t length) {
  const Entry& from = get(sequence);
  if (length < -1 || length > from.length)
    throw ValueError(
        fmt::format("PagedKVCache.fork: the first {} tokens of sequence {}, which has {}; -1 means all",
                    length, sequence, from.length));
  const std::int64_t shared = length < 0 ? from.length : length;
  return adopt(
      {from.blocks.begin(), from.blocks.begin() + (shared + size_.block_size - 1) / size_.block_size},
      shared);
}

template <std::floating_point T>
std::int64_t PagedKVCache<T>::adopt(const std::vector<std::int64_t>& blocks, std::int64_t length) {
  const auto count = static_cast<std::int64_t>(blocks.size());
  if (length > count * size_.block_size || length <= (count - 1) * size_.block_size)
    throw ValueError(fmt::format(
        "PagedKVCache.adopt: {} tokens in {} blocks of {}; they must fill all blocks, the last one in part",
        length, count, size_.block_size));
  for (std::int64_t block : blocks) held(block);
  sequences_.emplace(next_, Entry{blocks, length});
  for (std::int64_t block : blocks) ++held(block);
  return next_++;
}

template <std::floating_point T>
void PagedKVCache<T>::erase(Sequence sequence) {
  for (std::int64_t block : get(sequence).blocks) release(block);
  sequences_.erase(sequence);
}

template <std::floating_point T>
std::int64_t PagedKVCache<T>::blocks_needed(Sequence sequence, std::int64_t n) const {
  const Entry& entry = get(sequence);
  const std::int64_t total = (entry.length + n + size_.block_size - 1) / size_.block_size;
  const bool copies = n > 0 && entry.length % size_.block_size != 0 && holders(entry.blocks.back()) > 1;
  return total - static_cast<std::int64_t>(entry.blocks.size()) + (copies ? 1 : 0);
}

template <std::floating_point T>
void PagedKVCache<T>::append(Sequence sequence, const Tensor<T>& k, const Tensor<T>& v) {
  const std::int64_t n =
      detail::new_rows("PagedKVCache.append", k, v, {size_.heads}, size_.key_width, size_.value_width);
  const std::int64_t needed = blocks_needed(sequence, n);
  if (needed > free_blocks())
    throw ValueError(
        fmt::format("PagedKVCache.append: {} more tokens of sequence {} need {} blocks, and {} of {} are "
                    "free; erase a sequence, "
                    "evict prefixes, or make the pool larger",
                    n, sequence, needed, free_blocks(), size_.blocks));
  if (n == 0) return;
  const Tensor<T> new_keys = contiguous(k), new_values = contiguous(v);
  Entry& entry = sequences_.find(sequence)->second;
  const auto total = static_cast<std::size_t>((entry.length + n + size_.block_size - 1) / size_.block_size);
  entry.blocks.reserve(total);  // from here on nothing can fail
  if (entry.length % size_.block_size != 0 && holders(entry.blocks.back()) > 1) {
    const std::int64_t shared = std::exchange(entry.blocks.back(), take());
    copy_block(keys_, shared, entry.blocks.back()), copy_block(values_, shared, entry.blocks.back());
    release(shared);
  }
  while (entry.blocks.size() < total) entry.blocks.push_back(take());
  write(keys_, entry, new_keys), write(values_, entry, new_values);
  entry.length += n;
}

template <std::floating_point T>
void PagedKVCache<T>::copy_block(const Tensor<T>& pool, std::int64_t from, std::int64_t to) {
  T* data = const_cast<T*>(pool.data());
  std::copy_n(data + from * pool.strides()[0], pool.strides()[0], data + to * pool.strides()[0]);
}

// rows (heads, n, width) go behind what the entry holds, head by head, as far as each block reaches.
template <std::floating_point T>
void PagedKVCache<T>::write(const Tensor<T>& pool, const Entry& entry, const Tensor<T>& rows) {
  const std::int64_t n = rows.size(1), width = rows.size(2), B = size_.block_size;
  for (std::int64_t h = 0; h < size_.heads; ++h)
    for (std::int64_t i = 0, count; i < n; i += count) {
      const std::int64_t at = entry.length + i, block = entry.blocks[static_cast<std::size_t>(at / B)];
      count = std::min(B - at % B, n - i);
      std::copy_n(rows.data() + (h * n + i) * width, count * width,
                  const_cast<T*>(pool.data()) + ((block * size_.heads + h) * B + at % B) * width);
    }
}

template <std::floating_point T>
Tensor<T> PagedKVCache<T>::gathered(Sequence sequence, const Tensor<T>& pool) const {
  const Entry& entry = get(sequence);
  const std::int64_t B = size_.block_size, width = pool.size(-1);
  Buffer<T> out({size_.heads, entry.length, width}, "PagedKVCache");
  for (std::int64_t h = 0; h < size_.heads; ++h)
    for (std::int64_t i = 0; i < entry.length; i += B) {
      const std::int64_t block = entry.blocks[static_cast<std::size_t>(i / B)];
      std::copy_n(pool.data() + (block * size_.heads + h) * B * width, std::min(B, entry.length - i) * width,
                  out.data() + (h * entry.length + i) * width);
    }
  return out;
}

template <std::floating_point T>
Tensor<T> decode(const Tensor<T>& q, const PagedKVCache<T>& cache, std::int64_t sequence,
                 const AttentionOptions<std::type_identity_t<T>>& options) {
  const auto& size = cache.size();
  std::vector<std::int64_t> first_rows = cache.blocks(sequence);
  for (std::int64_t& row : first_rows) row *= size.heads * size.block_size;
  return detail::decode("decode", q, {size.heads}, cache.length(sequence), 0, options,
                        {.keys = cache.key_pool(),
                         .values = cache.value_pool(),
                         .length = cache.length(sequence),
                         .d = size.key_width,
                         .dv = size.value_width,
                         .head_rows = size.block_size,
                         .run_rows = size.block_size,
                         .first_rows = first_rows},
                        [&] { return std::pair(cache.keys(sequence), cache.values(sequence)); });
}

#define TAPEHEAD_PAGED(T)                                                           \
  template class PagedKVCache<T>;                                                   \
  template Tensor<T> decode(const Tensor<T>&, const PagedKVCache<T>&, std::int64_t, \
                            const AttentionOptions<T>&);
TAPEHEAD_PAGED(float)
TAPEHEAD_PAGED(double)

}  // namespace tapehead
