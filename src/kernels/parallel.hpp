#pragma once
#include <cstdint>

namespace tapehead::kernels {

/// Below this many elementary operations a second thread costs more time than it saves.
inline constexpr std::int64_t parallel_work = 100'000;

/// How many threads may share a piece of work now: num_threads(), but 1 inside a parallel_for, inside a
/// parallel region of the caller's OpenMP, and in a forked child, which has no threads but its own.
int available_threads();

/// What num_threads() is before set_num_threads() is called: read anew from the environment and the system.
/// (num_threads() itself asks once and keeps the answer.)
int default_threads();

/// Calls call(f, i) for i in 0 … n-1, on this thread and on idle threads of the pool that join in time.
void run_shared(std::int64_t n, void (*call)(const void* f, std::int64_t i), const void* f);

/// Calls f(i) for i in 0 … n-1, on several threads if `work` operations in all are enough to pay for them.
/// Any thread may run any i, so the result of f(i) must not depend on the thread. If calls of f throw, all
/// other calls are still made, and then the first exception is thrown here.
template <class F> void parallel_for(std::int64_t n, std::int64_t work, const F& f) {
  if (n > 1 && work >= parallel_work && available_threads() > 1)
    run_shared(
        n, [](const void* g, std::int64_t i) { (*static_cast<const F*>(g))(i); }, &f);
  else
    for (std::int64_t i = 0; i < n; ++i) f(i);
}

/// Calls f(start, size) for pieces of a range of n elements that cost about `each` operations per element.
template <class F> void parallel_pieces(std::int64_t n, std::int64_t each, const F& f) {
  constexpr std::int64_t piece = 16'384;
  parallel_for((n + piece - 1) / piece, each * n,
               [&](std::int64_t p) { f(p * piece, n - p * piece < piece ? n - p * piece : piece); });
}

}  // namespace tapehead::kernels
