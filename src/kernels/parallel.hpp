#pragma once
#include <cstdint>

namespace tapehead::kernels {

/// Below this many elementary operations a second thread costs more than it brings.
inline constexpr std::int64_t parallel_work = 100'000;

/// How many threads may share a piece of work: what OMP_NUM_THREADS or omp_set_num_threads() says, otherwise
/// as many as this process may use; 1 within a parallel_for.
int available_threads();

/// Calls call(f, i) for i in 0 … n-1, on this thread and on idle ones that come in time.
void run_shared(std::int64_t n, void (*call)(const void* f, std::int64_t i), const void* f);

/// Calls f(i) for i in 0 … n-1, on several threads when `work` operations in all are enough to pay for them.
/// Which thread runs which i is not said: f must give the same result whoever runs it. What f throws comes
/// out here.
template <class F>
void parallel_for(std::int64_t n, std::int64_t work, const F& f) {
  if (n > 1 && work >= parallel_work && available_threads() > 1)
    run_shared(
        n, [](const void* g, std::int64_t i) { (*static_cast<const F*>(g))(i); }, &f);
  else
    for (std::int64_t i = 0; i < n; ++i) f(i);
}

/// f(start, size) for pieces of a run of n elements that cost about `each` operations apiece.
template <class F>
void parallel_pieces(std::int64_t n, std::int64_t each, const F& f) {
  constexpr std::int64_t piece = 16'384;
  parallel_for((n + piece - 1) / piece, each * n,
               [&](std::int64_t p) { f(p * piece, n - p * piece < piece ? n - p * piece : piece); });
}

}  // namespace tapehead::kernels
