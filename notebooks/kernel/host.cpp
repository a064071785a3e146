// The process that runs a notebook's cells. It holds the library, loads one shared object for each cell, runs it and
// reports how it ended. It reads file names from standard input, one a line. Reports go to standard output, so that
// they keep their place in what cells print: a line that begins with a random mark and has fields between tabs.
#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "cell.hpp"

namespace xcpp20 {

volatile std::sig_atomic_t asked_to_stop = 0;

namespace {

struct Interrupted {};
struct Variable {
  void* place;
  void (*end)(void*);  // the destructor of a scope
};

std::map<std::string, Variable> variables;
std::string mark;
pthread_t main_thread;
char* stack_top;
// In a file that the kernel reads after a crash: the line that ran, and whether the stack was full.
struct State {
  int line, stack_is_full;
}* state;

void report(const std::vector<std::string>& fields) {
  std::string line = mark;
  for (const std::string& field : fields) {
    for (const char c : field)
      if (c == '%' || c == '\n' || c == '\t')
        line += fmt::format("%{:02X}", static_cast<unsigned>(c));
      else
        line += c;
    line += '\t';
  }
  line.back() = '\n';
  std::cout.clear();  // printing a null char* marks it as bad
  std::cout.flush();
  std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

std::string type_of_exception() {
  const auto* type = abi::__cxa_current_exception_type();
  return type == nullptr ? "an unknown exception" : demangled(type->name());
}

void run(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    std::string text = dlerror();
    if (const auto begin = text.find("_Z"); begin != std::string::npos)
      text = demangled(text.substr(begin, text.find_first_of(" \n", begin) - begin).c_str());
    return report({"done", "unlinked", "", text});
  }
  unlink(path.c_str());
  asked_to_stop = 0;
  try {
    reinterpret_cast<void (*)()>(dlsym(handle, "xcpp20_run"))();
    report({"done", asked_to_stop ? "stopped" : "ok", "", ""});
  } catch (const Leave&) {
    report({"done", "ok", "", ""});
  } catch (const Interrupted&) {
    report({"done", "stopped", "", ""});
  } catch (const std::exception& e) {
    report({"done", "threw", type_of_exception(), e.what()});
  } catch (const std::string& e) {
    report({"done", "threw", "std::string", e});
  } catch (const char* e) {
    report({"done", "threw", "const char*", e == nullptr ? "nullptr" : e});
  } catch (int e) {
    report({"done", "threw", "int", std::to_string(e)});
  } catch (...) {
    report({"done", "threw", type_of_exception(), ""});
  }
}

// The signal comes again when this returns, and ends the process.
void on_fault(int, siginfo_t* info, void*) {
  rlimit size{};
  getrlimit(RLIMIT_STACK, &size);
  const auto depth = stack_top - static_cast<char*>(info->si_addr);
  state->stack_is_full = depth > 0 && static_cast<rlim_t>(depth) < size.rlim_cur + (1 << 20);
}

void set_up_signals() {
  static char handler_stack[1 << 16];  // the usual one may be full
  stack_t other{};
  other.ss_sp = handler_stack;
  other.ss_size = sizeof handler_stack;
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  sigaction(SIGSEGV, &action, nullptr);
  action = {};
  action.sa_handler = [](int) { asked_to_stop = 1; };
  sigaction(SIGINT, &action, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

}  // namespace

void show(const Bundle& bundle, bool is_result) {
  std::vector<std::string> fields{is_result ? "result" : "display"};
  for (const auto& [type, data] : bundle) fields.insert(fields.end(), {type, data});
  report(fields);
}

void stop_here() {
  if (pthread_equal(pthread_self(), main_thread) && std::uncaught_exceptions() == 0) throw Interrupted();
}

int at(int line, std::initializer_list<const char*> declared) {
  poll();
  state->line = line;
  for (const char* name : declared) {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.end == nullptr) continue;
    const Variable old = found->second;
    variables.erase(found);
    report({"ended", name});
    old.end(old.place);
  }
  return 0;
}

void keep(const char* name, const char* type, void* place, void (*end)(void*)) {
  variables[name] = {place, end};
  const std::string text = demangled(type);  // xcpp20::Tag<T>
  const auto begin = text.find('<') + 1;
  report({"made", name, text.substr(begin, text.rfind('>') - begin)});
}

void* place_of(const char* name) { return variables.at(name).place; }

}  // namespace xcpp20

// std::this_thread::sleep_for ends when the reader presses Stop.
extern "C" int nanosleep(const timespec* length, timespec* left) {
  const long code = syscall(SYS_nanosleep, length, left);
  if (code != 0 && xcpp20::asked_to_stop) xcpp20::stop_here();
  return static_cast<int>(code);
}

int main(int argc, char** argv) {
  using namespace xcpp20;
  if (argc != 4) return 2;  // the mark, the file for State, and the limit of memory in bytes, 0 for none
  mark = std::string("\x1e") + argv[1] + '\t';
  const int file = open(argv[2], O_RDWR);
  state = static_cast<State*>(mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  if (state == MAP_FAILED) return 2;
  rlimit memory{};
  getrlimit(RLIMIT_AS, &memory);
  if (const rlim_t most = std::strtoull(argv[3], nullptr, 10); most != 0) {
    memory.rlim_cur = std::min(most, memory.rlim_max);
    setrlimit(RLIMIT_AS, &memory);
  }
  main_thread = pthread_self();
  stack_top = reinterpret_cast<char*>(&memory);
  std::FILE* commands = fdopen(dup(0), "r");  // cells find the end of a file on standard input
  if (std::freopen("/dev/null", "r", stdin) == nullptr) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);
  set_up_signals();
  char path[4096];
  while (true) {
    if (std::fgets(path, sizeof path, commands) != nullptr) {
      run(std::string(path).substr(0, std::string(path).find('\n')));
    } else if (errno != EINTR || std::feof(commands)) {
      _exit(0);
    } else {
      std::clearerr(commands);
    }
  }
}
