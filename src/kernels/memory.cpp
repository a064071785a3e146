#include "tapehead/kernels/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "tapehead/kernels/error.hpp"

// Size classes go in quarter steps between powers of two: 64, 80 → 128 in 64-byte steps, 160, 192, …; at most
// a fifth of a block is unused. Small blocks wait in lists of their own thread, without a lock; large ones in
// one shared set of lists. Of these, those too small for huge pages of their own are cut from slabs that have
// them, and are never given back: who walks down a column would otherwise wait for a page's address at every
// step. Under AddressSanitizer nothing is kept, so that it sees every use after free.
#if defined(__SANITIZE_ADDRESS__)
#define TAPEHEAD_KEEP_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAPEHEAD_KEEP_BLOCKS 0
#endif
#endif
#ifndef TAPEHEAD_KEEP_BLOCKS
#define TAPEHEAD_KEEP_BLOCKS 1
#endif

namespace tapehead {
namespace {

constexpr std::size_t alignment = 64, counted = 4096, huge_page = std::size_t{2} << 20;
constexpr std::size_t largest_small = std::size_t{64} << 10;  // up to here a thread keeps its own
constexpr std::size_t kept_small = std::size_t{4} << 20;      // bytes a thread keeps of one class
constexpr std::size_t smallest_huge = 2 * huge_page;       // from here on a block has huge pages of its own
constexpr std::size_t slab_bytes = std::size_t{32} << 20;  // what smaller ones are cut from
constexpr std::size_t kept_large = std::size_t{1} << 30;   // bytes kept of all large classes together

// 4 classes a power of two: class 4p + s holds 2^p + s 2^(p-2) bytes, rounded up to whole cache lines.
int class_of(std::size_t bytes) {
  if (bytes <= alignment) return 4 * 6;
  const int power = static_cast<int>(std::bit_width(bytes - 1)) - 1;
  const std::size_t quarter = std::size_t{1} << (power - 2);
  return 4 * power + static_cast<int>((bytes - 1 - (std::size_t{1} << power)) / quarter + 1);
}
std::size_t class_bytes(int c) {
  const std::size_t base = std::size_t{1} << (c / 4);
  const std::size_t bytes = base + static_cast<std::size_t>(c % 4) * (base / 4);
  return (bytes + alignment - 1) / alignment * alignment;
}
constexpr int size_classes = 4 * 64;

struct Block {
  Block* next;
};
struct List {
  Block* first = nullptr;
  std::size_t bytes = 0;
};

std::atomic<std::int64_t> large_held{0}, large_peak{0};

void* from_system(std::size_t bytes) {
  const bool huge = bytes >= smallest_huge;
  void* block = ::operator new (bytes, std::align_val_t{huge ? huge_page : alignment}, std::nothrow);
  if (block == nullptr) throw Error(fmt::format("memory: {} bytes could not be had", bytes));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (huge) madvise(block, bytes, MADV_HUGEPAGE);
#endif
  return block;
}
void to_system(void* block, std::size_t bytes) noexcept {
  ::operator delete (block, std::align_val_t{bytes >= smallest_huge ? huge_page : alignment});
}

Block* pop(List& list, std::size_t bytes) {
  Block* block = list.first;
  if (block != nullptr) list.first = block->next, list.bytes -= bytes;
  return block;
}
void push(List& list, void* block, std::size_t bytes) {
  list.first = new (block) Block{list.first};
  list.bytes += bytes;
}
void empty(List& list, std::size_t bytes) {
  while (Block* block = pop(list, bytes)) to_system(block, bytes);
}

struct Thread;
struct Shared {
  std::mutex mutex;
  List lists[size_classes];
  std::size_t bytes = 0;
  char* slab = nullptr;
  std::size_t slab_left = 0;
  std::vector<Thread*> threads;
  std::atomic<std::int64_t> blocks_ended{0}, bytes_ended{0};  // what threads that ended held, net
};
Shared& shared() {
  static Shared* lists = new Shared;  // never destroyed: static tensors may die after any destructor of ours
  return *lists;
}

// The next piece of a slab; the mutex is held.
void* cut(std::size_t bytes) {
  Shared& from = shared();
  if (from.slab_left < bytes) {
    from.slab = static_cast<char*>(from_system(slab_bytes));
    from.slab_left = slab_bytes;
  }
  from.slab_left -= bytes;
  return std::exchange(from.slab, from.slab + bytes);
}

// What one thread keeps, and its own count (only it writes: no locked instruction).
struct Thread {
  List lists[4 * 17];  // up to largest_small = 2^16
  std::atomic<std::int64_t> blocks{0}, bytes{0};
  Thread() {
    std::lock_guard lock(shared().mutex);
    shared().threads.push_back(this);
  }
  ~Thread() {
    for (int c = 4 * 6; c < 4 * 17; ++c) empty(lists[c], class_bytes(c));
    std::lock_guard lock(shared().mutex);
    std::erase(shared().threads, this);
    shared().blocks_ended += blocks;
    shared().bytes_ended += bytes;
  }
};

// The thread's own, found without the check for a first use that a thread_local with a constructor costs.
// Null once the thread has ended its own: tensors that die later (statics, other thread_locals) go straight
// to the system.
constinit thread_local Thread* current = nullptr;
constinit thread_local bool closed = false;
Thread* first_use() {
  struct Owner {
    Thread thread;
    Owner() { current = &thread; }
    ~Owner() { current = nullptr, closed = true; }  // before the lists are emptied
  };
  if (closed) return nullptr;
  static thread_local Owner owner;
  return current;
}
Thread* mine() { return current != nullptr ? current : first_use(); }

void add(std::atomic<std::int64_t>& own, std::int64_t n) {
  own.store(own.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

void count(std::int64_t blocks, std::int64_t bytes) {
  if (Thread* thread = mine()) {
    add(thread->blocks, blocks);
    add(thread->bytes, bytes);
  } else {
    shared().blocks_ended += blocks;
    shared().bytes_ended += bytes;
  }
  if (std::abs(bytes) < static_cast<std::int64_t>(counted)) return;
  const std::int64_t held = large_held.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t peak = large_peak.load(std::memory_order_relaxed);
  while (held > peak && !large_peak.compare_exchange_weak(peak, held, std::memory_order_relaxed)) {
  }
}

}  // namespace

MemoryUse memory_use() {
  std::lock_guard lock(shared().mutex);
  MemoryUse use{shared().blocks_ended, shared().bytes_ended, large_peak};
  for (const Thread* t : shared().threads) use.blocks += t->blocks, use.bytes += t->bytes;
  return use;
}

void reset_peak_memory() { large_peak.store(large_held.load()); }

namespace detail {

void* allocate(std::size_t bytes) {
  if (bytes > (std::size_t{1} << 62)) throw Error(fmt::format("memory: {} bytes could not be had", bytes));
  const int c = class_of(bytes);
  const std::size_t rounded = class_bytes(c);
  void* block = nullptr;
  if (TAPEHEAD_KEEP_BLOCKS && rounded <= largest_small) {
    if (Thread* thread = mine()) block = pop(thread->lists[c], rounded);
  } else if (TAPEHEAD_KEEP_BLOCKS) {
    std::lock_guard lock(shared().mutex);
    if ((block = pop(shared().lists[c], rounded)))
      shared().bytes -= rounded;
    else if (rounded < smallest_huge)
      block = cut(rounded);
  }
  if (block == nullptr) block = from_system(rounded);
  count(1, static_cast<std::int64_t>(rounded));
  return block;
}

void release(void* block, std::size_t bytes) noexcept {
  const int c = class_of(bytes);
  const std::size_t rounded = class_bytes(c);
  count(-1, -static_cast<std::int64_t>(rounded));
  if (TAPEHEAD_KEEP_BLOCKS && rounded <= largest_small) {
    Thread* thread = mine();
    if (thread != nullptr && thread->lists[c].bytes + rounded <= kept_small)
      return push(thread->lists[c], block, rounded);
  } else if (TAPEHEAD_KEEP_BLOCKS) {
    std::lock_guard lock(shared().mutex);
    if (rounded < smallest_huge || shared().bytes + rounded <= kept_large) {
      shared().bytes += rounded;
      return push(shared().lists[c], block, rounded);
    }
  }
  to_system(block, rounded);
}

}  // namespace detail
}  // namespace tapehead
