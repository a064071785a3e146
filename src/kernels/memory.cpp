#include "tapehead/kernels/memory.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "kernels/require.hpp"

// Blocks come in size classes, and a freed block waits for the next request of its class: a small one in a
// cache of its thread, which needs no lock, others in one cache that all threads share. Blocks below 4 MiB
// are cut from slabs on huge pages and never returned to the system: on 4 KiB pages a GPT step spends a tenth
// of its time on address translation. Larger blocks have huge pages of their own.
//
// Under AddressSanitizer nothing is kept, so that it sees every use after free.
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define TAPEHEAD_KEEP_BLOCKS 0
#else
#define TAPEHEAD_KEEP_BLOCKS 1
#endif

namespace tapehead {
namespace {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
constexpr std::size_t cache_line = 64, huge_page = 2 * MiB, slab_bytes = 32 * MiB;
constexpr std::size_t largest_small = 64 * KiB, smallest_huge = 4 * MiB, largest = SIZE_MAX / 4 + 1;
constexpr std::size_t kept_by_thread = 32 * MiB;  // more goes to the shared cache
constexpr std::size_t kept_by_all = 1024 * MiB;   // of what is more, huge blocks go to the system

// There are 4 classes for each power of two, so that at most a fifth of a block is unused: class 4p + s holds
// 2^p + s 2^(p-2) bytes, rounded up to whole cache lines.
constexpr int size_classes = 4 * 64, smallest_class = 4 * 6;
int class_of(std::size_t bytes) {
  if (bytes <= cache_line) return smallest_class;
  const int power = static_cast<int>(std::bit_width(bytes - 1)) - 1;
  const std::size_t quarter = std::size_t{1} << (power - 2);
  return 4 * power + static_cast<int>((bytes - 1 - (std::size_t{1} << power)) / quarter + 1);
}
std::size_t class_bytes(int c) {
  const std::size_t base = std::size_t{1} << (c / 4);
  const std::size_t bytes = base + static_cast<std::size_t>(c % 4) * (base / 4);
  return (bytes + cache_line - 1) / cache_line * cache_line;
}

void* from_system(std::size_t bytes) {
  const bool huge = bytes >= smallest_huge;
  void* block = ::operator new (bytes, std::align_val_t{huge ? huge_page : cache_line}, std::nothrow);
  require<Error>(block != nullptr, "memory: {} bytes could not be had", bytes);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (huge) madvise(block, bytes, MADV_HUGEPAGE);
#endif
  return block;
}
void to_system(void* block, std::size_t bytes) noexcept {
  ::operator delete (block, std::align_val_t{bytes >= smallest_huge ? huge_page : cache_line});
}

using Count = std::atomic<std::int64_t>;
constexpr auto relaxed = std::memory_order_relaxed;

/// Freed blocks, and how many blocks were handed out to the cache's thread.
struct Cache {
  struct Block {
    Block* next;
  };
  Block* first[size_classes] = {};
  std::size_t kept = 0;  // bytes
  // Written by one thread at a time, so that counting needs no locked instruction; read by memory_use().
  Count blocks = 0;     // handed out, less those given back
  Count uncounted = 0;  // bytes of these that are not yet in Shared::held
  Count most = 0;       // the most that `uncounted` was
  bool used = true;     // by a thread that lives
  Cache* next = nullptr;

  void* pop(int c, std::size_t bytes) {
    Block* block = first[c];
    if (block != nullptr) first[c] = block->next, kept -= bytes;
    return block;
  }
  void push(int c, std::size_t bytes, void* block) {
    first[c] = new (block) Block{first[c]};
    kept += bytes;
  }
};

/// What all threads share, under the mutex (except for the two counts).
struct Shared {
  std::mutex mutex;
  Cache cache;  // the first of the list of all caches; also for threads that no longer have one of their own
  char* slab = nullptr;
  std::size_t slab_left = 0;
  Count held = 0, peak = 0;

  void* take(int c, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    if (void* block = cache.pop(c, bytes)) return block;
    if (!TAPEHEAD_KEEP_BLOCKS || bytes >= smallest_huge) return from_system(bytes);
    if (slab_left < bytes) slab = static_cast<char*>(from_system(slab_bytes)), slab_left = slab_bytes;
    slab_left -= bytes;
    return std::exchange(slab, slab + bytes);
  }
  void give(int c, std::size_t bytes, void* block) {
    const std::lock_guard lock(mutex);
    if (TAPEHEAD_KEEP_BLOCKS && (bytes < smallest_huge || cache.kept + bytes <= kept_by_all))
      cache.push(c, bytes, block);
    else
      to_system(block, bytes);
  }
};

/// Never destroyed, because static tensors may be destroyed after any destructor here.
union Lasting {
  Shared value;
  constexpr Lasting() : value{} {}
  ~Lasting() {}
};
constinit Lasting lasting;
constinit Shared& shared = lasting.value;

/// This thread's cache: null before its first use, and when the thread has given it back. (A later destructor
/// of the thread may still free a tensor.)
constinit thread_local Cache* current = nullptr;
constinit thread_local bool ended = false;

/// Gives this thread a cache until it ends: one that an earlier thread left, or a new one.
Cache* first_use() {
  struct Owner {
    Owner() {
      const std::lock_guard lock(shared.mutex);
      for (current = shared.cache.next; current != nullptr && current->used;) current = current->next;
      if (current == nullptr) current = shared.cache.next = new Cache{.next = shared.cache.next};
      current->used = true;
    }
    ~Owner() {
      const std::lock_guard lock(shared.mutex);
      current->used = false, current = nullptr, ended = true;
    }
  };
  if (ended) return nullptr;
  static thread_local const Owner owner;
  return current;
}
Cache* mine() { return current != nullptr ? current : first_use(); }

/// Counts a block in or out. When what this thread counted alone reaches `batch` bytes, it is added to what
/// all count.
void count_in(Cache& c, std::int64_t blocks, std::int64_t bytes) {
  constexpr std::int64_t batch = largest_small;
  c.blocks.store(c.blocks.load(relaxed) + blocks, relaxed);
  const std::int64_t sum = c.uncounted.load(relaxed) + bytes, most = std::max(c.most.load(relaxed), sum);
  c.uncounted.store(sum, relaxed), c.most.store(most, relaxed);
  if (std::abs(sum) < batch) return;
  c.uncounted.store(0, relaxed), c.most.store(0, relaxed);
  const std::int64_t reached = shared.held.fetch_add(sum, relaxed) + most;
  std::int64_t peak = shared.peak.load(relaxed);
  while (reached > peak && !shared.peak.compare_exchange_weak(peak, reached, relaxed)) {
  }
}
void count(Cache* own, std::int64_t blocks, std::int64_t bytes) {
  if (own != nullptr) return count_in(*own, blocks, bytes);
  const std::lock_guard lock(shared.mutex);
  count_in(shared.cache, blocks, bytes);
}

// A child that is forked while another thread holds the mutex would wait for it for ever. And that thread may
// have been about to change its cache, so the child does not use what is in it.
[[maybe_unused]] const int registered = pthread_atfork([] { shared.mutex.lock(); }, [] { shared.mutex.unlock(); },
                                                       [] {
                                                         for (Cache* c = shared.cache.next; c != nullptr; c = c->next)
                                                           if (c != current)
                                                             std::fill_n(c->first, size_classes, nullptr),
                                                                 c->kept = 0, c->used = false;
                                                         shared.mutex.unlock();
                                                       });

}  // namespace

MemoryUse memory_use() {
  const std::lock_guard lock(shared.mutex);
  const std::int64_t held = shared.held.load(relaxed);
  MemoryUse use{0, held, held};
  std::int64_t others = 0;  // what other threads have not counted yet; Shared::peak does not include it
  for (const Cache* c = &shared.cache; c != nullptr; c = c->next) {
    const std::int64_t uncounted = c->uncounted.load(relaxed);
    use.blocks += c->blocks.load(relaxed);
    use.bytes += uncounted;
    use.peak_bytes += c->most.load(relaxed);
    if (c != current) others += uncounted;
  }
  const std::int64_t reached = shared.peak.load(relaxed);
  use.peak_bytes = std::max({use.peak_bytes, use.bytes, reached == 0 ? 0 : reached + others});
  return use;
}

void reset_peak_memory() {
  const std::lock_guard lock(shared.mutex);
  for (Cache* c = &shared.cache; c != nullptr; c = c->next) c->most.store(c->uncounted.load(relaxed), relaxed);
  shared.peak.store(0, relaxed);
}

namespace detail {

void* allocate(std::size_t bytes) {
  require<Error>(bytes <= largest, "memory: {} bytes could not be had", bytes);
  const int c = class_of(bytes);
  const std::size_t rounded = class_bytes(c);
  Cache* const own = mine();
  void* block = own != nullptr ? own->pop(c, rounded) : nullptr;
  if (block == nullptr) block = shared.take(c, rounded);
  count(own, 1, static_cast<std::int64_t>(rounded));
  return block;
}

void release(void* block, std::size_t bytes) noexcept {
  const int c = class_of(bytes);
  const std::size_t rounded = class_bytes(c);
  Cache* const own = mine();
  count(own, -1, -static_cast<std::int64_t>(rounded));
  if (TAPEHEAD_KEEP_BLOCKS && own != nullptr && rounded <= largest_small && own->kept < kept_by_thread)
    own->push(c, rounded, block);
  else
    shared.give(c, rounded, block);
}

}  // namespace detail
}  // namespace tapehead
