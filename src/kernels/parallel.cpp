// Threads that help when they can. OpenMP's loops end where the last thread arrives: on a busy machine the
// system may leave that thread waiting for milliseconds, although the others have long done its work. Here
// the caller takes pieces until none is left, and waits only for pieces that somebody has begun. Threads
// without work sleep.

#include "kernels/parallel.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>
#ifdef _OPENMP
#include <omp.h>
#endif

namespace tapehead::kernels {
namespace {

thread_local bool busy = false;  // inside a piece of work

struct Job {
  const std::int64_t pieces;
  void (*const call)(const void*, std::int64_t);
  const void* const f;
  int seats;  ///< how many may still join
  std::atomic<std::int64_t> next = 0;
  std::atomic<int> helpers = 0;
  std::mutex failing = {};
  std::exception_ptr failure = nullptr;
};

/// Whether `ready` comes true soon. Yields: others may need the processor more.
template <class F>
bool soon(const F& ready) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  while (!ready()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

class Pool {
 public:
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : workers_) t.join();
  }

  /// Whether this process made the pool. A forked child has a copy, but no threads to it, and perhaps a mutex
  /// that nobody will ever release.
  bool ours() const { return getpid() == process_; }

  void run(Job& job) {
    const bool shared = publish(job);
    work(job);
    if (shared) withdraw(job);
    if (job.failure) std::rethrow_exception(job.failure);
  }

 private:
  /// Offers a job to the workers, unless they have one already.
  bool publish(Job& job) {
    if (!ours()) return false;
    const std::lock_guard lock(mutex_);
    if (job_ != nullptr) return false;
    try {
      while (static_cast<int>(workers_.size()) < job.seats) workers_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {  // no more threads to be had: those there are will do
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

  /// A worker's life: each job is joined once, if there is a seat.
  void serve() {
    std::uint64_t seen = 0;
    for (;;) {
      soon([&] { return jobs_ != seen; });
      std::unique_lock lock(mutex_);
      ++sleeping_;
      wake_.wait(lock, [&] { return stop_ || (job_ != nullptr && jobs_ != seen && job_->seats > 0); });
      --sleeping_;
      if (stop_) return;
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

  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  Job* job_ = nullptr;
  std::atomic<std::uint64_t> jobs_ = 0;  ///< how many there have been
  int sleeping_ = 0;
  bool stop_ = false;
};

}  // namespace

int available_threads() {
  if (busy) return 1;
#ifdef _OPENMP
  return omp_in_parallel() ? 1 : omp_get_max_threads();
#else
  static const int threads = [] {
    const char* wanted = std::getenv("OMP_NUM_THREADS");
    const int n = wanted ? std::atoi(wanted) : static_cast<int>(std::thread::hardware_concurrency());
    return n > 0 ? n : 1;
  }();
  return threads;
#endif
}

void run_shared(std::int64_t n, void (*call)(const void*, std::int64_t), const void* f) {
  struct Remove {
    void operator()(Pool* p) const {
      if (p->ours()) delete p;
    }
  };
  static const std::unique_ptr<Pool, Remove> pool(new Pool);
  Job job{n, call, f, available_threads() - 1};
  pool->run(job);
}

}  // namespace tapehead::kernels
