// Runs the check of one answer and decides whether it is solved. The answer runs in a child process with
// little time and memory; the parent believes only a report that begins with a key that the answer does not
// know. To exercise.sh the parent says "solved" in the same way: status 0, and the caller's key on file
// descriptor 3. So nothing that an answer prints, and no way to end a process, counts as a solution.
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "checker.hpp"

// Blocks of memory have a mark behind them, to see that an answer did not write past the end.
namespace {
volatile char* overrun = nullptr;  // shared with the parent process
constexpr char mark[16] = "end of a block.";
}  // namespace
#ifndef SANITIZED
void* operator new(std::size_t size) {
  char* block = static_cast<char*>(std::malloc(size + 2 * sizeof mark));
  if (block == nullptr) throw std::bad_alloc();
  std::memcpy(block, &size, sizeof size);
  std::memcpy(block + sizeof mark + size, mark, sizeof mark);
  return block + sizeof mark;
}
void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  char* block = static_cast<char*>(memory) - sizeof mark;
  std::size_t size = 0;
  std::memcpy(&size, block, sizeof size);
  if (std::memcmp(block + sizeof mark + size, mark, sizeof mark) != 0) {
    if (overrun != nullptr) *overrun = 1;
    std::abort();
  }
  std::free(block);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
#endif

namespace exercise {
namespace {

enum Status { solved = 0, unsolved = 1, untouched = 2 };

std::string take_environment(const char* name) {
  const char* value = std::getenv(name);
  const std::string text = value == nullptr ? "" : value;
  unsetenv(name);
  return text;
}

// What is running at the moment, in memory that parent and child share: for the report of a crash.
char* now_running = nullptr;
constexpr std::size_t now_running_size = 1 << 16;
void note_running(const std::string& text) { std::strncpy(now_running, text.c_str(), now_running_size - 2); }

Asked::Run noted(const Asked& q) {
  return [&q](std::size_t i) {
    note_running(q.name + (q.inputs[i].empty() ? "" : ", for this input:\n" + q.inputs[i]));
    return q.answer(i);
  };
}

// The report on all questions, of which only the first wrong answer is shown in full. Its first character is
// the status.
std::string report(std::int64_t seed) {
  std::string text, details;
  std::size_t right = 0, open = 0;
  Check table(seed);
  check(table);
  for (const auto& q : table.questions()) {
    const Verdict verdict = judge(*q, noted(*q));
    right += verdict.solved, open += verdict.todo;
    text += fmt::format("{}: {}\n", q->name,
                        verdict.todo            ? "no answer yet"
                        : !verdict.solved       ? "wrong"
                        : q->inputs.size() == 1 ? "right"
                                                : fmt::format("right, on {} inputs", q->inputs.size()));
    if (!verdict.solved && !verdict.todo && details.empty()) {
      details = verdict.report;
      if (q->inputs.size() > 1)
        details += fmt::format("  To repeat the check with the same inputs, add SEED={}\n", seed);
      text += details;
    }
  }
  const auto asked = table.questions().size();
  return char('0' + (right == asked ? solved : open == asked ? untouched : unsolved)) + text;
}

// Hands in every wrong answer, for the self-test: each has to be refused, and to get the name it should.
int self_test(std::int64_t seeds) {
  int passed = 0, failed = 0;
  const auto problem = [&](const auto& q, std::int64_t seed, const std::string& name,
                           const std::string& what) {
    fmt::print("{}, SEED={}: {}\n  {}\n", q.name, seed, name, what), ++failed;
  };
  for (std::int64_t seed = 1; seed <= seeds; ++seed) {
    Check table(seed);
    check(table);
    for (const auto& q : table.questions()) {
      const Verdict solution = judge(*q, q->answer);
      solution.solved ? ++passed : (problem(*q, seed, "the solution", "is refused:\n" + solution.report), 0);
      for (const auto& wrong : q->wrongs) {
        const Verdict verdict = judge(*q, wrong.run);
        const std::string named = wrong.usual ? "Most likely: " + wrong.name : wrong.name;
        if (verdict.solved)
          problem(*q, seed, wrong.name, "passes");
        else if (verdict.named != named)
          problem(*q, seed, wrong.name, "is named: " + verdict.named);
        else
          ++passed;
      }
      if (seed == 1 && q->inputs.size() > 1 && q->wrongs.size() < 5)
        problem(*q, seed, "wrong answers", fmt::format("only {} are known", q->wrongs.size()));
    }
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

void limit(int what, rlim_t soft) {
  rlimit now{};
  getrlimit(static_cast<decltype(RLIMIT_CPU)>(what), &now);
  now.rlim_cur = std::min(now.rlim_max, soft);
  setrlimit(static_cast<decltype(RLIMIT_CPU)>(what), &now);
}

// Why the child ended without a report.
std::string ended(int status, bool timeout, bool sanitized) {
  if (timeout || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
    return "Stopped: no result after some seconds. Is there a loop without an end?";
  if (WIFEXITED(status))
    return sanitized && WEXITSTATUS(status) != 0
               ? "Stopped: the sanitizer's report is above."
               : "The program ended before the check did. Is there an exit() in the answer?";
  switch (WTERMSIG(status)) {
    case SIGSEGV:
    case SIGBUS:
      return "Crashed: the answer used memory that does not exist. Does a function call itself without an "
             "end, "
             "or is an index or a pointer wrong?";
    case SIGFPE:
      return "Crashed: an integer was divided by 0.";
    case SIGILL:
      return "Crashed: an index past the end of an array.";
    case SIGXFSZ:
      return "Stopped: the answer printed more than a megabyte.";
    case SIGABRT:
      return *overrun != 0 ? "Crashed: the answer wrote past the end of a block of memory."
                           : "Crashed: the program was aborted.";
    default:
      return fmt::format("Stopped by signal {}.", WTERMSIG(status));
  }
}

int grade(std::int64_t seed, const std::string& callers_key) {
  const bool sanitized = !take_environment("SANITIZE").empty();  // slow, and with much reserved memory
  std::random_device random;
  const std::string key = fmt::format("{:08x}{:08x}{:08x}\n", random(), random(), random());
  now_running = static_cast<char*>(
      mmap(nullptr, now_running_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int pipes[2];
  if (now_running == MAP_FAILED || pipe(pipes) != 0) return std::perror("grade"), unsolved;
  overrun = now_running + now_running_size - 1;
  const pid_t child = fork();
  if (child == 0) {
    close(3), close(pipes[0]);
    std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what an answer prints before it crashes is shown
    if (!sanitized) limit(RLIMIT_AS, rlim_t{2} << 30), limit(RLIMIT_CPU, 2);
    limit(RLIMIT_FSIZE, 1 << 20), limit(RLIMIT_CORE, 0);
    std::string text;
    try {
      text = key + report(seed);
    } catch (const Error& e) {
      text = key + char('0' + unsolved) + e.what() + "\n";
    }
    std::fflush(stdout);
    for (std::size_t at = 0; at < text.size();) {
      const auto n = write(pipes[1], text.data() + at, text.size() - at);
      if (n <= 0) _exit(1);
      at += static_cast<std::size_t>(n);
    }
    _exit(0);
  }
  close(pipes[1]);
  std::string text;
  bool timeout = false;
  for (pollfd waiting{pipes[0], POLLIN, 0};;) {
    char part[4096];
    timeout = poll(&waiting, 1, sanitized ? 60000 : 6000) == 0;
    const auto n = timeout ? 0 : read(pipes[0], part, sizeof part);
    if (n <= 0) break;
    text.append(part, static_cast<std::size_t>(n));
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (text.size() > key.size() && text.compare(0, key.size(), key) == 0) {
    fmt::print("{}", text.substr(key.size() + 1));
    std::fflush(stdout);
    const int verdict = text[key.size()] - '0';
    if (verdict == solved && write(3, callers_key.data(), callers_key.size()) < 0) return unsolved;
    return verdict;
  }
  fmt::print("{}\n", ended(status, timeout, sanitized));
  if (*now_running != 0) fmt::print("It happened in {}\n", now_running);
  std::fflush(stdout);
  return unsolved;
}

}  // namespace
}  // namespace exercise

int main() {
  using namespace exercise;
  const std::string key = take_environment("EXERCISE_KEY"), seed = take_environment("SEED"),
                    seeds = take_environment("EXERCISE_SELF_TEST");
  if (!seeds.empty()) return self_test(std::stoll(seeds));
  std::random_device random;
  // _exit, so that no destructor of the answer runs.
  _exit(grade(seed.empty() ? random() % 1000000 : std::stoll(seed), key));
}
