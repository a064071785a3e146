#include "tapehead/kernels/threads.hpp"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "kernels/parallel.hpp"
#include "kernels/require.hpp"

namespace tapehead {
namespace {

constexpr int most_threads = 1024;
std::atomic<int> chosen_threads = 0;  // by set_num_threads(); 0: not set

/// The number in an environment variable, 0 if there is none.
int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : static_cast<int>(std::clamp(std::strtol(text, nullptr, 10), 0L, long{most_threads}));
}

/// hardware_concurrency() would count processors that `taskset` or a container withholds.
int usable_processors() {
#if defined(__linux__)
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) == 0) return CPU_COUNT(&usable);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int kernels::default_threads() {
  for (const char* variable : {"TAPEHEAD_NUM_THREADS", "OMP_NUM_THREADS"})
    if (const int n = number_in(variable); n > 0) return n;
  return std::max(usable_processors(), 1);
}

int num_threads() {
  const int chosen = chosen_threads.load(std::memory_order_relaxed);
  if (chosen > 0) return chosen;
  static const int standard = kernels::default_threads();
  return standard;
}

void set_num_threads(int threads) {
  require<ValueError>(threads >= 1 && threads <= most_threads,
                      "set_num_threads: {} threads were asked for; it takes 1 to {}", threads, most_threads);
  chosen_threads = threads;
}

}  // namespace tapehead
