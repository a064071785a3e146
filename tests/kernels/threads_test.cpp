#include "tapehead/kernels/threads.hpp"

#ifdef __linux__
#include <sched.h>
#endif

#include <cstdlib>
#include <string>
#include <thread>

#include "kernels/parallel.hpp"
#include "testing.hpp"
#include "threads.hpp"

using namespace tapehead::kernels;

/// As if this program used OpenMP and were in one of its regions.
static thread_local bool in_region = false;
extern "C" int omp_in_parallel() { return in_region; }

TEST_CASE("threads: set_num_threads is for all threads, and takes no number below 1") {
  const testing::Threads four(4);
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
  const testing::Threads four(4);
  in_region = true;
  CHECK(available_threads() == 1);
  in_region = false;
  CHECK(available_threads() == 4);
}
