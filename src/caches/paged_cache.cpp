#include "tapehead/caches/paged_cache.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "caches/decoding.hpp"
#include "kernels/require.hpp"
#include "tensor/copy.hpp"

namespace tapehead {

namespace {

template <class Size> Size checked(Size size) {
  if (size.value_width == 0) size.value_width = size.key_width;
  require<ShapeError>(
      size.blocks >= 0 && size.block_size >= 1 && size.heads >= 1 && size.key_width >= 0 && size.value_width >= 0,
      "PagedKVCache: {} blocks of {} tokens, {} heads, keys of width {}, values of width "
      "{}; each must be 1 or more (blocks and widths 0 or more)",
      size.blocks, size.block_size, size.heads, size.key_width, size.value_width);
  return size;
}

}  // namespace

template <Floating T> PagedKVCache<T>::PagedKVCache(const Size& size)
    : size_(checked(size)),
      keys_(Buffer<T>({size_.blocks, size_.heads, size_.block_size, size_.key_width}, "PagedKVCache")),
      values_(Buffer<T>({size_.blocks, size_.heads, size_.block_size, size_.value_width}, "PagedKVCache")),
      holders_(static_cast<std::size_t>(size_.blocks)),
      free_(holders_.size()) {
  std::iota(free_.rbegin(), free_.rend(), std::int64_t{0});  // block 0 is taken first
}

template <Floating T> const typename PagedKVCache<T>::Entry& PagedKVCache<T>::get(Sequence sequence) const {
  const auto at = sequences_.find(sequence);
  require<IndexError>(at != sequences_.end(), "PagedKVCache: there is no sequence {}{}", sequence,
                      sequence >= 0 && sequence < next_ ? " any more: it was erased" : "; add() gives one");
  return at->second;
}

template <Floating T> std::int64_t PagedKVCache<T>::holders(std::int64_t block) const {
  require<IndexError>(block >= 0 && block < size_.blocks, "PagedKVCache: block {} of {}; blocks are 0 to {}", block,
                      size_.blocks, size_.blocks - 1);
  return holders_[static_cast<std::size_t>(block)].all;
}

template <Floating T> std::vector<std::int64_t> PagedKVCache<T>::sequences() const {
  std::vector<Sequence> all;
  for (const auto& entry : sequences_) all.push_back(entry.first);
  return all;
}

template <Floating T> typename PagedKVCache<T>::Holders& PagedKVCache<T>::held(std::int64_t block) {
  require<ValueError>(holders(block) > 0,
                      "PagedKVCache: block {} is free; only a block that somebody holds can be shared or released",
                      block);
  return holders_[static_cast<std::size_t>(block)];
}

template <Floating T> void PagedKVCache<T>::retain(std::int64_t block) {
  Holders& h = held(block);
  ++h.all, ++h.retained;
}

template <Floating T> void PagedKVCache<T>::release(std::int64_t block) {
  Holders& h = held(block);
  require<ValueError>(h.retained > 0,
                      "PagedKVCache: block {} was not retained, so it cannot be released; the sequences "
                      "that hold it end with erase()",
                      block);
  --h.retained, drop(block);
}

// One holder fewer. free_ has room, because it held every block at the beginning.
template <Floating T> void PagedKVCache<T>::drop(std::int64_t block) {
  if (--held(block).all == 0) free_.push_back(block);
}

template <Floating T> std::int64_t PagedKVCache<T>::take() {
  const std::int64_t block = free_.back();
  free_.pop_back();
  return holders_[static_cast<std::size_t>(block)].all = 1, block;
}

template <Floating T> std::int64_t PagedKVCache<T>::blocks_for(std::int64_t tokens) const {
  return tokens / size_.block_size + (tokens % size_.block_size != 0);
}

template <Floating T> std::int64_t PagedKVCache<T>::fork(Sequence sequence, std::int64_t length) {
  const Entry& from = get(sequence);
  require<ValueError>(length >= -1 && length <= from.length,
                      "PagedKVCache.fork: the first {} tokens of sequence {}, which has {}; -1 means all", length,
                      sequence, from.length);
  const std::int64_t shared = length < 0 ? from.length : length;
  return adopt({from.blocks.begin(), from.blocks.begin() + blocks_for(shared)}, shared);
}

template <Floating T>
std::int64_t PagedKVCache<T>::adopt(const std::vector<std::int64_t>& blocks, std::int64_t length) {
  require<ValueError>(length >= 0 && blocks_for(length) == static_cast<std::int64_t>(blocks.size()),
                      "PagedKVCache.adopt: {} tokens in {} blocks of {}; they must fill all blocks, the "
                      "last one at least in part",
                      length, blocks.size(), size_.block_size);
  require<ValueError>(std::set<std::int64_t>(blocks.begin(), blocks.end()).size() == blocks.size(),
                      "PagedKVCache.adopt: a block is listed twice; each holds other tokens of the sequence");
  for (std::int64_t block : blocks) held(block);
  sequences_.emplace(next_, Entry{blocks, length});
  for (std::int64_t block : blocks) ++held(block).all;
  return next_++;
}

template <Floating T> void PagedKVCache<T>::erase(Sequence sequence) {
  for (std::int64_t block : get(sequence).blocks) drop(block);
  sequences_.erase(sequence);
}

template <Floating T> std::int64_t PagedKVCache<T>::blocks_needed(Sequence sequence, std::int64_t n) const {
  const Entry& entry = get(sequence);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() - entry.length;
  require<ValueError>(n >= 0 && n <= most, "PagedKVCache.blocks_needed: {} more tokens; it must be 0 to {}", n, most);
  const bool copies = n > 0 && entry.length % size_.block_size != 0 && holders(entry.blocks.back()) > 1;
  return blocks_for(entry.length + n) - blocks_for(entry.length) + (copies ? 1 : 0);
}

template <Floating T> void PagedKVCache<T>::append(Sequence sequence, const Tensor<T>& k, const Tensor<T>& v) {
  const std::int64_t n =
      detail::new_rows("PagedKVCache.append", k, v, {size_.heads}, size_.key_width, size_.value_width);
  const std::int64_t needed = blocks_needed(sequence, n);
  require<ValueError>(
      needed <= free_blocks(),
      "PagedKVCache.append: {} more tokens of sequence {} need {} blocks, and {} of {} are free; erase a "
      "sequence, evict prefixes, or make the pool larger",
      n, sequence, needed, free_blocks(), size_.blocks);
  if (n == 0) return;
  const Tensor<T> new_keys = detail::dense(k), new_values = detail::dense(v);
  Entry& entry = sequences_.find(sequence)->second;
  const auto total = static_cast<std::size_t>(blocks_for(entry.length + n));
  entry.blocks.reserve(total);  // from here on nothing can fail
  if (entry.length % size_.block_size != 0 && holders(entry.blocks.back()) > 1) {
    const std::int64_t shared = std::exchange(entry.blocks.back(), take());
    for (const Tensor<T>* pool : {&keys_, &values_})
      std::copy_n(rows(*pool, shared, 0), pool->strides()[0], rows(*pool, entry.blocks.back(), 0));
    drop(shared);
  }
  while (entry.blocks.size() < total) entry.blocks.push_back(take());
  write(keys_, entry, new_keys), write(values_, entry, new_values);
  entry.length += n;
}

// The first row of a head in a block.
template <Floating T> T* PagedKVCache<T>::rows(const Tensor<T>& pool, std::int64_t block, std::int64_t head) const {
  return const_cast<T*>(pool.data()) + block * pool.strides()[0] + head * pool.strides()[1];
}

// Calls f(block, place, token, count) for each run of the tokens begin … end - 1 that lies in one block, from its
// place in the block on.
template <Floating T> template <class F>
void PagedKVCache<T>::each_run(const Entry& entry, std::int64_t begin, std::int64_t end, const F& f) const {
  const std::int64_t B = size_.block_size;
  for (std::int64_t at = begin, count; at < end; at += count) {
    count = std::min(B - at % B, end - at);
    f(entry.blocks[static_cast<std::size_t>(at / B)], at % B, at, count);
  }
}

// new_rows (heads, n, width) go behind what the entry holds.
template <Floating T>
void PagedKVCache<T>::write(const Tensor<T>& pool, const Entry& entry, const Tensor<T>& new_rows) {
  const std::int64_t n = new_rows.size(1), width = new_rows.size(2);
  each_run(entry, entry.length, entry.length + n, [&](auto block, auto place, auto at, auto count) {
    for (std::int64_t h = 0; h < size_.heads; ++h)
      std::copy_n(new_rows.data() + (h * n + at - entry.length) * width, count * width,
                  rows(pool, block, h) + place * width);
  });
}

template <Floating T> Tensor<T> PagedKVCache<T>::gathered(Sequence sequence, const Tensor<T>& pool) const {
  const Entry& entry = get(sequence);
  const std::int64_t width = pool.size(-1);
  Buffer<T> out({size_.heads, entry.length, width}, "PagedKVCache");
  each_run(entry, 0, entry.length, [&](auto block, auto place, auto at, auto count) {
    for (std::int64_t h = 0; h < size_.heads; ++h)
      std::copy_n(rows(pool, block, h) + place * width, count * width, out.data() + (h * entry.length + at) * width);
  });
  return out;
}

template <Floating T> Tensor<T> decode(const Like<T>& q, const PagedKVCache<T>& cache, std::int64_t sequence,
                                       const AttentionOptions<std::type_identity_t<T>>& options) {
  const auto size = cache.size();
  std::vector<std::int64_t> first_rows = cache.blocks(sequence);
  for (std::int64_t& row : first_rows) row *= size.heads * size.block_size;
  return detail::decode(q, {size.heads}, cache.length(sequence), 0, options,
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

#define TAPEHEAD_PAGED(T)         \
  template class PagedKVCache<T>; \
  template Tensor<T> decode(const Tensor<T>&, const PagedKVCache<T>&, std::int64_t, const AttentionOptions<T>&);
TAPEHEAD_REALS(TAPEHEAD_PAGED)

}  // namespace tapehead
