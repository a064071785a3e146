// The thread pool. The calling thread takes pieces of its own job until none is left, and then waits only for
// pieces that another thread has begun. So on a busy machine nobody waits for a thread that the system has
// not scheduled yet. Threads without work sleep.

#include "kernels/parallel.hpp"

#include <pthread.h>
#ifdef __APPLE__
#include <dlfcn.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "tapehead/kernels/threads.hpp"

#if defined(__ELF__)
extern "C" [[gnu::weak]] int omp_in_parallel();  // null unless the program uses OpenMP
#endif

namespace tapehead {
namespace kernels {
namespace {

/// How long a thread watches for the next job or for the end of one before it sleeps: waking a thread takes
/// about as long.
constexpr auto watching = std::chrono::microseconds(50);

thread_local bool busy = false;  // inside a piece of work
bool forked = false;             // this process is a forked child: the pool's threads are not here
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { forked = true; });

/// Whether this thread runs in a parallel region of the program's own OpenMP, whose threads are then busy.
bool in_openmp_region() {
#if defined(__ELF__)
  return omp_in_parallel != nullptr && omp_in_parallel() != 0;
#elif defined(__APPLE__)
  static const auto in_parallel = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_in_parallel"));
  return in_parallel != nullptr && in_parallel() != 0;
#else
  return false;
#endif
}

struct Job {
  const std::int64_t pieces;
  void (*const call)(const void*, std::int64_t);
  const void* const f;
  int seats;  ///< how many threads may still join
  std::atomic<std::int64_t> next = 0;
  std::atomic<int> helpers = 0;
  std::mutex failing = {};
  std::exception_ptr failure = nullptr;
};

/// Whether `ready` comes true soon. Other threads may need the processor more, so this one yields it.
template <class F> bool soon(const F& ready) {
  const auto end = std::chrono::steady_clock::now() + watching;
  while (!ready()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

void work(Job& job) {
  busy = true;
  for (std::int64_t i; (i = job.next++) < job.pieces;) {
    try {
      job.call(job.f, i);
    } catch (...) {
      const std::lock_guard lock(job.failing);
      if (!job.failure) job.failure = std::current_exception();
    }
  }
  busy = false;
}

class Pool {
 public:
  void run(Job& job) {
    const bool shared = publish(job);
    work(job);
    if (shared) withdraw(job);
    if (job.failure) std::rethrow_exception(job.failure);
  }

 private:
  /// Offers a job to the pool's threads, unless they already have one.
  bool publish(Job& job) {
    const std::lock_guard lock(mutex_);
    if (job_ != nullptr) return false;
    try {
      for (; workers_ < job.seats; ++workers_) std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {  // the system has no more threads: use those that we have
    }
    job_ = &job;
    ++jobs_;
    if (sleeping_ > 0) wake_.notify_all();
    return true;
  }

  void withdraw(Job& job) {
    std::unique_lock lock(mutex_);
    job_ = nullptr;
    lock.unlock();
    if (soon([&] { return job.helpers == 0; })) return;
    lock.lock();
    done_.wait(lock, [&] { return job.helpers == 0; });
  }

  /// The loop of one of the pool's threads, which joins each job at most once, if there is a seat.
  void serve() {
    for (std::uint64_t seen = 0;;) {
      soon([&] { return jobs_ != seen; });
      std::unique_lock lock(mutex_);
      ++sleeping_;
      wake_.wait(lock, [&] { return job_ != nullptr && jobs_ != seen && job_->seats > 0; });
      --sleeping_;
      Job& job = *job_;
      seen = jobs_;
      --job.seats;
      ++job.helpers;
      lock.unlock();
      work(job);
      lock.lock();
      if (--job.helpers == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  int workers_ = 0, sleeping_ = 0;
  Job* job_ = nullptr;
  std::atomic<std::uint64_t> jobs_ = 0;  ///< how many there have been
};

}  // namespace

int available_threads() { return busy || forked || in_openmp_region() ? 1 : num_threads(); }

void run_shared(std::int64_t n, void (*call)(const void*, std::int64_t), const void* f) {
  static Pool& pool = *new Pool;  // never destroyed: its threads sleep until the process ends
  const auto threads = std::min<std::int64_t>(available_threads(), n);
  Job job{n, call, f, static_cast<int>(threads) - 1};
  pool.run(job);
}

}  // namespace kernels

}  // namespace tapehead
