// Work shared out among threads: every piece once, whoever does it, and nothing lost when something goes
// wrong.
#include "kernels/parallel.hpp"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "forked.hpp"
#include "testing.hpp"
#include "threads.hpp"

using namespace tapehead::kernels;
using std::int64_t;

/// As if this program used OpenMP and were in one of its regions.
static thread_local bool in_region = false;
extern "C" int omp_in_parallel() { return in_region; }

namespace {

/// More threads than this machine may have.
struct FourThreads : testing::Threads {
  FourThreads() : Threads(4) {}
};

/// Counts how often each of n pieces is done.
std::vector<int> counts(int64_t n, int64_t work) {
  std::vector<std::atomic<int>> done(static_cast<std::size_t>(n));
  parallel_for(n, work, [&](int64_t i) { ++done[static_cast<std::size_t>(i)]; });
  return {done.begin(), done.end()};
}

}  // namespace

TEST_CASE("parallel_for: every piece once, for every number of pieces") {
  const FourThreads more;
  for (int64_t n = 0; n < 40; ++n)
    for (int64_t work : {int64_t(0), 10 * parallel_work})
      CHECK(counts(n, work) == std::vector<int>(static_cast<std::size_t>(n), 1));
  for (int round = 0; round < 300; ++round) CHECK(counts(100, parallel_work) == std::vector<int>(100, 1));
}

TEST_CASE("parallel_for: other threads do come, and are gone when it returns") {
  const FourThreads more;
  std::atomic<int> others = 0, inside = 0;
  const auto caller = std::this_thread::get_id();
  // Until one was seen: a thread that is called may come too late for pieces this short.
  for (int round = 0; round < 200 && others == 0; ++round)
    parallel_for(20, parallel_work, [&](int64_t) {
      ++inside;
      if (std::this_thread::get_id() != caller) ++others;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      --inside;
    });
  CHECK(others > 0);
  CHECK(inside == 0);

  tapehead::set_num_threads(1);
  others = 0;
  parallel_for(20, parallel_work, [&](int64_t) { others += std::this_thread::get_id() != caller; });
  CHECK(others == 0);
}

TEST_CASE("parallel_for: little work stays on this thread") {
  const FourThreads more;
  const auto caller = std::this_thread::get_id();
  std::atomic<int> others = 0;
  parallel_for(100, parallel_work - 1, [&](int64_t) { others += std::this_thread::get_id() != caller; });
  CHECK(others == 0);
}

TEST_CASE("parallel_for: what a piece throws comes out, once all others are done") {
  const FourThreads more;
  for (int64_t bad : {0, 7, 49}) {
    std::atomic<int> done = 0;
    CHECK(testing::message<std::runtime_error>([&] {
            parallel_for(50, parallel_work, [&](int64_t i) {
              if (i == bad) throw std::runtime_error("piece " + std::to_string(i));
              ++done;
            });
          }) == "piece " + std::to_string(bad));
    CHECK(done == 49);
    CHECK(counts(50, parallel_work) == std::vector<int>(50, 1));  // and the next one is as good as ever
  }
}

TEST_CASE("parallel_for: within another one, and from several threads at once") {
  const FourThreads more;
  std::atomic<int64_t> sum = 0;
  parallel_for(8, parallel_work, [&](int64_t i) {
    CHECK(available_threads() == 1);
    parallel_for(8, parallel_work, [&](int64_t j) { sum += 8 * i + j; });
    CHECK(available_threads() == 1);
  });
  CHECK(sum == 64 * 63 / 2);

  sum = 0;
  std::vector<std::thread> users;
  for (int t = 0; t < 4; ++t)
    users.emplace_back([&] {
      for (int round = 0; round < 50; ++round) parallel_for(10, parallel_work, [&](int64_t i) { sum += i; });
    });
  for (std::thread& t : users) t.join();
  CHECK(sum == 4 * 50 * 45);
}

TEST_CASE("parallel_for: a forked child works on, alone") {
  const FourThreads more;
  const std::vector<int> once(20, 1);
  CHECK(counts(20, parallel_work) == once);  // the parent's helpers are there
  CHECK(testing::forked([&] { return available_threads() == 1 && counts(20, parallel_work) == once; }));
  CHECK(available_threads() == 4);
}

TEST_CASE("parallel_for: a child forked while other threads use the pool does not hang") {
  const FourThreads more;
  std::atomic<bool> stop = false;
  std::vector<std::thread> users;
  for (int t = 0; t < 2; ++t)
    users.emplace_back([&] {
      while (!stop) parallel_for(10, parallel_work, [](int64_t) { std::this_thread::yield(); });
    });
  int ended = 0;
  for (int round = 0; round < 50; ++round)
    ended += testing::forked([] {
      const bool good = counts(20, parallel_work) == std::vector<int>(20, 1);
      std::_Exit(good ? 0 : 1);
      return good;
    });
  stop = true;
  for (std::thread& t : users) t.join();
  CHECK(ended == 50);
}

TEST_CASE("threads: set_num_threads is for all threads, and takes no number below 1") {
  const FourThreads more;
  int seen = 0;
  std::thread([&] { seen = tapehead::num_threads(); }).join();
  CHECK(seen == 4);
  for (int bad : {0, -3, 100'000})
    CHECK(testing::message<tapehead::ValueError>([&] { tapehead::set_num_threads(bad); }) ==
          "set_num_threads: " + std::to_string(bad) + " threads were asked for; it takes 1 to 1024");
  CHECK(tapehead::num_threads() == 4);
}

TEST_CASE("threads: the number comes from the environment, else from the processors that may be used") {
  const auto with = [](const char* own, const char* openmp) {
    own != nullptr ? setenv("TAPEHEAD_NUM_THREADS", own, 1) : unsetenv("TAPEHEAD_NUM_THREADS");
    openmp != nullptr ? setenv("OMP_NUM_THREADS", openmp, 1) : unsetenv("OMP_NUM_THREADS");
    return default_threads();
  };
  const char *const own = std::getenv("TAPEHEAD_NUM_THREADS"), *const openmp = std::getenv("OMP_NUM_THREADS");
  const std::string own_before = own ? own : "", openmp_before = openmp ? openmp : "";
  CHECK(with("3", "5") == 3);
  CHECK(with(nullptr, "5,2") == 5);
  CHECK(with("0", "5") == 5);
  CHECK(with("99999999999999999999", nullptr) == 1024);
  const int processors = with(nullptr, nullptr);
  CHECK(processors >= 1);
  for (const char* bad : {"", "-2", "many"}) CHECK(with(bad, bad) == processors);
#ifdef __linux__
  int on_one = 0;
  std::thread([&] {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &mine);
    if (sched_setaffinity(0, sizeof mine, &mine) == 0) on_one = default_threads();
  }).join();
  CHECK(on_one == 1);
#endif
  with(own ? own_before.c_str() : nullptr, openmp ? openmp_before.c_str() : nullptr);
}

TEST_CASE("threads: one thread inside a parallel region of the program's own OpenMP") {
  const FourThreads more;
  in_region = true;
  CHECK(available_threads() == 1);
  in_region = false;
  CHECK(available_threads() == 4);
}
