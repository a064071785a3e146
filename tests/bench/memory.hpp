#pragma once
// How much memory something needs: as the library counts it, and as the system sees it.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "tapehead/kernels/memory.hpp"

namespace bench {

/// Bytes held at the most while `work` runs, beyond what was held before. Both in a process of its own, which
/// starts without blocks kept for reuse; `resident` where the system tells (Linux).
struct Peak {
  std::int64_t counted = 0;
  std::optional<std::int64_t> resident;
};

/// VmRSS (now) or VmHWM (the most there was) of this process.
inline std::optional<std::int64_t> resident_bytes(const std::string& which) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind(which, 0) == 0) return 1024 * std::strtoll(line.c_str() + which.size() + 1, nullptr, 10);
  return std::nullopt;
}

/// `prepare` makes the inputs and returns the work. To be called before the program has done much: what the
/// parent keeps would serve the child. The result of the work counts unless it is thrown away inside.
inline Peak peak_memory(const std::function<std::function<void()>()>& prepare) {
  int ends[2];
  std::fflush(stdout);
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const auto work = prepare();
    const std::int64_t before = tapehead::memory_use().bytes;
    const auto resident = resident_bytes("VmRSS:");
    tapehead::reset_peak_memory();
    work();
    std::int64_t figures[2] = {tapehead::memory_use().peak_bytes - before, -1};
    if (const auto most = resident_bytes("VmHWM:"); most && resident) figures[1] = *most - *resident;
    _exit(write(ends[1], figures, sizeof figures) == sizeof figures ? 0 : 1);
  }
  close(ends[1]);
  std::int64_t figures[2] = {-1, -1};
  const bool answered = read(ends[0], figures, sizeof figures) == sizeof figures;
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  if (!answered) return {};
  return {figures[0], figures[1] < 0 ? std::nullopt : std::optional(figures[1])};
}

}  // namespace bench
