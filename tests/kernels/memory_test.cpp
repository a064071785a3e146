#include "tapehead/kernels/memory.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "forked.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using detail::allocate;
using detail::release;

namespace {

/// A block that is freed at the end of its scope.
class Held {
 public:
  explicit Held(std::size_t bytes) : bytes_(bytes), data_(static_cast<char*>(allocate(bytes))) {}
  ~Held() {
    if (data_ != nullptr) release(data_, bytes_);
  }
  Held(Held&& other) noexcept : bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}
  Held& operator=(Held&&) = delete;
  char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  char* data_;
};

constexpr std::size_t sizes[] = {0, 1, 63, 64, 65, 96, 4000, 4096, 65'536, 65'537, 100'000, 3'000'000, 5'000'000};

/// Allocates and frees on this thread while all others are idle, so that bytes and peak are known exactly.
void check_counts() {
  const MemoryUse before = memory_use();
  reset_peak_memory();
  CHECK(memory_use().peak_bytes == before.bytes);
  {
    std::vector<Held> blocks;
    for (int i = 0; i < 100'000; ++i) {
      blocks.emplace_back(96);
      if (i % 1000 == 0) CHECK(memory_use().peak_bytes == memory_use().bytes);
    }
    const MemoryUse full = memory_use();
    CHECK(full.blocks == before.blocks + 100'000);
    CHECK(full.bytes == before.bytes + 100'000 * 128);
    CHECK(full.peak_bytes == full.bytes);
  }
  CHECK(memory_use().blocks == before.blocks);
  CHECK(memory_use().bytes == before.bytes);
  CHECK(memory_use().peak_bytes == before.bytes + 100'000 * 128);
  reset_peak_memory();
  CHECK(memory_use().peak_bytes == before.bytes);
  for (std::size_t bytes : sizes) {
    reset_peak_memory();
    std::int64_t held = 0;
    {
      const Held block(bytes);
      held = memory_use().bytes;
      CHECK(held >= before.bytes + static_cast<std::int64_t>(bytes));
    }
    CHECK(memory_use().peak_bytes == held);
    CHECK(memory_use().bytes == before.bytes);
  }
}

}  // namespace

TEST_CASE("memory: blocks of every size are aligned, large enough and do not overlap") {
  std::vector<Held> blocks;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t bytes : sizes)
      for (int i = 0; i < 3; ++i) {
        blocks.emplace_back(bytes);
        CHECK(reinterpret_cast<std::uintptr_t>(blocks.back().data()) % 64 == 0);
        std::memset(blocks.back().data(), static_cast<int>(blocks.size()), bytes);
      }
    for (std::size_t i = 0; i < blocks.size(); ++i)
      if (blocks[i].bytes() > 0)
        CHECK((blocks[i].data()[0] == static_cast<char>(i + 1) &&
               blocks[i].data()[blocks[i].bytes() - 1] == static_cast<char>(i + 1)));
    blocks.clear();
  }
}

TEST_CASE("memory: all that is held is counted, small blocks too, and the peak is never below it") { check_counts(); }

TEST_CASE("memory: the peak is exact beside an idle thread that freed another's small blocks, or holds some") {
  for (const bool frees : {true, false}) {
    std::vector<Held> blocks;
    if (frees)
      for (int i = 0; i < 500; ++i) blocks.emplace_back(96);
    std::atomic<bool> ready = false, stop = false;
    std::thread idle([&] {
      if (frees)
        blocks.clear();
      else
        for (int i = 0; i < 500; ++i) blocks.emplace_back(96);
      ready = true;
      while (!stop) std::this_thread::yield();
    });
    while (!ready) std::this_thread::yield();
    check_counts();
    stop = true;
    idle.join();
  }
}

TEST_CASE("memory: what one thread allocates another may free, and ended threads are counted") {
  const MemoryUse before = memory_use();
  std::vector<Held> blocks;
  std::thread([&] {
    for (std::size_t bytes : sizes) blocks.emplace_back(bytes);
  }).join();
  CHECK(memory_use().blocks == before.blocks + static_cast<std::int64_t>(std::size(sizes)));
  CHECK(memory_use().peak_bytes >= memory_use().bytes);
  std::thread([&] { blocks.clear(); }).join();
  CHECK(memory_use().blocks == before.blocks);
  CHECK(memory_use().bytes == before.bytes);
}

TEST_CASE("memory: a destructor that runs when its thread has already ended the cache of freed blocks") {
  const MemoryUse before = memory_use();
  std::thread([] {
    // Made before the thread's first block, and so destroyed after what that block brings into being.
    static thread_local std::vector<Held> late;
    late.reserve(4);
    for (std::size_t bytes : {std::size_t(100), std::size_t(100'000)}) late.emplace_back(bytes);
  }).join();
  CHECK(memory_use().blocks == before.blocks);
  CHECK(memory_use().bytes == before.bytes);
}

TEST_CASE("memory: more than there is throws, and counts nothing") {
  const MemoryUse before = memory_use();
  for (std::size_t bytes : {std::size_t(1) << 61, (std::size_t(1) << 63) + 1, ~std::size_t(0)}) {
    const std::string said = testing::message([&] { release(allocate(bytes), bytes); });
    CHECK(said.ends_with(" bytes could not be had"));
  }
  CHECK(memory_use().blocks == before.blocks);
  CHECK(memory_use().bytes == before.bytes);
}

TEST_CASE("memory: a child forked while other threads allocate runs, and counts what it holds") {
  std::atomic<bool> stop = false;
  std::vector<std::thread> users;
  for (int t = 0; t < 3; ++t)
    users.emplace_back([&] {
      while (!stop)
        for (std::size_t bytes : {std::size_t(64), std::size_t(360'000)}) Held block(bytes);
    });
  int ended = 0;
  const int children = 400;
  for (int i = 0; i < children && ended == i; ++i)
    ended += testing::forked([] {
      const auto before = memory_use();
      {
        const Held small(64), large(360'000);
        if (memory_use().blocks != before.blocks + 2) std::_Exit(1);
      }
      std::_Exit(memory_use().bytes == before.bytes ? 0 : 1);
      return true;
    });
  stop = true;
  for (std::thread& t : users) t.join();
  CHECK(ended == children);
}

TEST_CASE("memory: tensors return every block that they took") {
  const auto before = memory_use();
  {
    Tensor<double> x = zeros<double>({1000});
    auto y = exp(x.reshape({10, 100}).T() + 1);
    CHECK(memory_use().blocks > before.blocks);
  }
  CHECK(memory_use().blocks == before.blocks);
  CHECK(memory_use().bytes == before.bytes);
}
