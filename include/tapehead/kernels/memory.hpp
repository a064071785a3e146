#pragma once
#include <cstddef>
#include <cstdint>

namespace tapehead {

/// What the library holds at this moment: blocks and bytes handed out and not given back. Blocks kept for
/// reuse do not count. `peak_bytes` is the most that was held at once since reset_peak_memory(), counting
/// blocks of 4 KiB and more.
struct MemoryUse {
  std::int64_t blocks = 0;
  std::int64_t bytes = 0;
  std::int64_t peak_bytes = 0;
};
MemoryUse memory_use();
void reset_peak_memory();

namespace detail {

/// 64-byte aligned memory for tensors and tapes. Freed blocks are kept by size class and handed out again,
/// because fresh pages are the dearest thing there is: the kernel has to find, clear and map each.
/// Throws tapehead::Error when there is no memory.
void* allocate(std::size_t bytes);
void release(void* block, std::size_t bytes) noexcept;

}  // namespace detail
}  // namespace tapehead
