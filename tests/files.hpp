#pragma once
// Files for the tests of readers and writers: in a folder of their own, gone at the end of the test.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "tapehead/kernels/memory.hpp"
#include "testing.hpp"

namespace testing {

class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / ("tapehead-test-" + std::to_string(std::random_device{}()))) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  /// How many files there are.
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// `value` as `width` bytes, the lowest first.
inline std::string little(std::uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i, value >>= 8) bytes += static_cast<char>(value & 255);
  return bytes;
}

/// What load(path) has against a file of these bytes: its FileError's message after `before`, the path and
/// `after`. Fails the test where the message starts otherwise, or where finding out takes memory that the
/// file does not warrant.
template <class F>
std::string refusal(const std::string& before, const std::string& after, const std::string& bytes, const F& load) {
  const Folder folder;
  const std::string path = folder.write("x", bytes), start = before + path + after;
  const auto resident = [] {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
  };  // KiB; bytes on macOS
  tapehead::reset_peak_memory();
  const std::int64_t held = tapehead::memory_use().bytes;
  const long most = resident();
  const std::string text = message<tapehead::FileError>([&] { load(path); });
  CHECK(tapehead::memory_use().peak_bytes - held <= static_cast<std::int64_t>(bytes.size()) + 4096);
  CHECK(resident() - most <= 32 * 1024);
  CHECK(text.substr(0, start.size()) == start);
  return text.substr(std::min(start.size(), text.size()));
}

}  // namespace testing
