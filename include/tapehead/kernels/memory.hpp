#pragma once
#include <cstddef>
#include <cstdint>

namespace tapehead {

/// What tensors and tapes hold now: blocks that were allocated and not freed, and their bytes, each rounded
/// up to its size class. Freed blocks that are kept for reuse do not count. `peak_bytes` is the most that was
/// held at once since reset_peak_memory(), and never less than `bytes`; where several threads allocate, it
/// may be up to 64 KiB too large or too small for each of them.
struct MemoryUse {
  std::int64_t blocks = 0;
  std::int64_t bytes = 0;
  std::int64_t peak_bytes = 0;
};
MemoryUse memory_use();
void reset_peak_memory();

namespace detail {

/// 64-byte aligned memory for tensors and tapes. Freed blocks are kept by size class and reused, because
/// fresh memory costs page faults: the system has to find, clear and map each page. Any thread may release a
/// block; `bytes` must be what it was allocated with. Throws tapehead::Error when there is no memory.
void* allocate(std::size_t bytes);
void release(void* block, std::size_t bytes) noexcept;

}  // namespace detail
}  // namespace tapehead
