// The process that runs the cells of a notebook. It holds the library, all of whose functions the cells find
// here, loads one cell after another, and says how each one ended. Commands come on descriptor 3, a line
// each:
//
//   LIBRARY FUNCTION      load and run
//
// and every answer goes to descriptor 4: its length, a line break, and fields that end in a zero byte. What
// the cells print goes where it always goes, and what they show too, behind a mark drawn at random.
#include <cxxabi.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "xcpp20.hpp"
#ifdef _OPENMP
#include <omp.h>
#endif

namespace xcpp20 {

volatile std::sig_atomic_t asked_to_stop = 0;

namespace {

struct Interrupted {};

volatile int line_now = 0;
pthread_t main_thread;
std::string mark;
const char* folder = nullptr;     // the session's, for what is compiled
std::vector<std::string> answer;  // the fields after the first ones
std::vector<std::string> stale_names;
std::map<std::pair<std::string, std::string>, Slot> slots;
std::map<std::string, Slot*> current;

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

// The namespaces that cells are put into are no part of a name.
std::string readable(std::string text) {
  for (std::size_t at; (at = text.find("v_")) != std::string::npos && text.compare(at + 12, 2, "::") == 0;)
    text.erase(at, 14);
  return text;
}

void send(const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const auto n = write(4, bytes.data() + sent, bytes.size() - sent);
    if (n <= 0 && errno != EINTR) _exit(1);
    if (n > 0) sent += static_cast<std::size_t>(n);
  }
}

void reply(const std::string& status, const std::string& type = "", const std::string& what = "") {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  std::string body;
  for (const auto& field : {status, type, what, std::to_string(line_now)}) body += field + '\0';
  for (const auto& field : answer) body += field + '\0';
  send(std::to_string(body.size()) + '\n' + body);
}

// The kernel is gone, and had no time to tidy up. (exec, because this may be in a handler for signals.)
[[noreturn]] void leave() {
  execl("/bin/rm", "rm", "-rf", folder, static_cast<char*>(nullptr));
  _exit(0);
}

std::string type_of_exception() {
  const auto* type = abi::__cxa_current_exception_type();
  return type == nullptr ? "an unknown exception" : readable(demangled(type->name()));
}

// In a handler for signals: only what is allowed there.
void on_fatal(int signal_number) {
  char text[64] = "crashed";
  std::size_t n = 8;
  const auto digits = [&](int value) {
    char reversed[12];
    int k = 0;
    do reversed[k++] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    while (k > 0) text[n++] = reversed[--k];
    text[n++] = '\0';
  };
  digits(signal_number);
  text[n++] = '\0';
  digits(line_now);
  char head[8] = "00\n";
  head[0] = static_cast<char>('0' + n / 10), head[1] = static_cast<char>('0' + n % 10);
  [[maybe_unused]] auto ignored = write(4, head, 3);
  ignored = write(4, text, n);
  _exit(128 + signal_number);
}

void on_terminate() {
  const auto* type = abi::__cxa_current_exception_type();
  std::string what;
  try {
    if (type != nullptr) throw;
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
  }
  reply("terminated", type == nullptr ? "" : type_of_exception(), what);
  _exit(134);
}

void run(const std::string& library, const std::string& function) {
  answer.clear();
  stale_names.clear();
  line_now = 0;
  void* handle = nullptr;
  try {
    handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  } catch (const std::exception& e) {  // from a static member's initialiser
    return reply("unlinked", type_of_exception(), e.what());
  }
  unlink(library.c_str());
  if (handle == nullptr) {
    std::string text = dlerror();
    if (const auto at = text.find("_Z"); at != std::string::npos)
      text = "this is used and nowhere defined: " +
             readable(demangled(text.substr(at, text.find_first_of(" \n", at) - at).c_str()));
    return reply("unlinked", "", text);
  }
  if (!stale_names.empty()) {
    answer = stale_names;
    return reply("stale");
  }
  auto* cell = reinterpret_cast<void (*)()>(dlsym(handle, function.c_str()));
  if (cell == nullptr) return reply("unlinked", "", dlerror());
  asked_to_stop = 0;
  try {
    cell();
    if (asked_to_stop) throw Interrupted();
    reply("ok");
  } catch (const Interrupted&) {
    reply("interrupted");
  } catch (const std::exception& e) {
    reply("threw", type_of_exception(), e.what());
  } catch (const std::string& e) {
    reply("threw", "std::string", e);
  } catch (const char* e) {
    reply("threw", "const char*", e);
  } catch (int e) {
    reply("threw", "int", std::to_string(e));
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    reply("threw", type_of_exception(), "");
  }
  asked_to_stop = 0;
}

}  // namespace

void show(const Bundle& bundle, bool is_result) {
  std::string body;
  for (const auto& [type, data] : bundle) body += type + '\0' + data + '\0';
  std::cout.flush();
  std::fflush(stdout);
  const std::string head = mark + (is_result ? "result " : "display ") + std::to_string(body.size()) + '\n';
  std::fwrite(head.data(), 1, head.size(), stdout);
  std::fwrite(body.data(), 1, body.size(), stdout);
  std::fflush(stdout);
}

void stop_here() {
  if (!pthread_equal(pthread_self(), main_thread) || std::uncaught_exceptions() > 0) return;
#ifdef _OPENMP
  if (omp_in_parallel()) return;
#endif
  throw Interrupted();
}

void at(int line) {
  poll();
  line_now = line;
}

Slot& slot(const char* name, const char* type, std::size_t size, std::size_t alignment) {
  Slot& s = slots[{name, type}];
  if (s.memory == nullptr) s.memory = ::operator new(size, std::align_val_t(alignment));
  return s;
}

void rename(const char* name, Slot& s) {
  Slot*& held = current[name];
  if (held != nullptr && held != &s && held->alive && held->end != nullptr) {
    held->alive = false;
    held->end(held->memory);
  }
  held = &s;
}

void defined(int piece, const char* type) {
  answer.push_back(std::to_string(piece));
  answer.push_back(type);
}

void stale(const char* name) { stale_names.push_back(name); }

}  // namespace xcpp20

// A sleep ends when the reader asks for it.
extern "C" int nanosleep(const timespec* length, timespec* left) {
  const long rc = syscall(SYS_nanosleep, length, left);
  if (rc != 0 && xcpp20::asked_to_stop) xcpp20::stop_here();
  return static_cast<int>(rc);
}
extern "C" int clock_nanosleep(clockid_t clock, int flags, const timespec* length, timespec* left) {
  const long rc = syscall(SYS_clock_nanosleep, clock, flags, length, left);
  const int error = rc == 0 ? 0 : errno;
  if (error == EINTR && xcpp20::asked_to_stop) xcpp20::stop_here();
  return error;
}

int main(int argc, char** argv) {
  using namespace xcpp20;
  if (argc != 3) return 2;
  folder = argv[2];
  mark = std::string("\x1e") + argv[1] + ' ';
  main_thread = pthread_self();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);
  std::set_terminate(on_terminate);

  static char stack[1 << 16];  // a handler's own, for when the other one is full
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = on_fatal;
  action.sa_flags = SA_ONSTACK;
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(s, &action, nullptr);
  action.sa_handler = [](int) { asked_to_stop = 1; };
  action.sa_flags = 0;
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = [](int) { leave(); };
  sigaction(SIGTERM, &action, nullptr);

  std::string command;
  for (char c;;) {
    const auto n = read(3, &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) leave();
    if (c != '\n') {
      command += c;
      continue;
    }
    const auto blank = command.rfind(' ');
    run(command.substr(0, blank), command.substr(blank + 1));
    command.clear();
  }
}
