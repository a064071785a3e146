#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace testing {

/// Runs `child` in a forked process, which must end within ten seconds and return true.
template <class F> bool forked(const F& child) {
  std::fflush(nullptr);  // otherwise the child would write it a second time
  const pid_t pid = fork();
  if (pid == 0) {
    const int failed = child() ? 0 : 1;
#ifdef __SANITIZE_ADDRESS__
    std::_Exit(failed);  // the search for leaks would count what the parent's other threads hold
#else
    std::exit(failed);
#endif
  }
  int status = -1;
  for (int ms = 0; ms < 10'000 && waitpid(pid, &status, WNOHANG) == 0; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (status == -1) kill(pid, SIGKILL), waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace testing
