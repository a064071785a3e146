// Work shared out among threads: every piece once, whoever does it, and nothing lost when something goes
// wrong.
#include "kernels/parallel.hpp"

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
