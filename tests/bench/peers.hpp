#pragma once
// Other libraries to compare with, each if it is there: OpenBLAS (loaded while running), Eigen (its headers),
// NumPy and PyTorch (in a Python of their own, which takes its turns when asked: peers.py).

#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "bench.hpp"
#if __has_include(<eigen3/Eigen/Core>)
#define TAPEHEAD_BENCH_EIGEN 1
#define EIGEN_DONT_PARALLELIZE
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12 in its own headers, as Eigen uses them
#endif
#include <eigen3/Eigen/Core>
#endif

namespace bench {

/// C = A B for row-major matrices without gaps.
template <class T> using Gemm = std::function<void(int64_t m, int64_t n, int64_t k, const T* A, const T* B, T* C)>;

class OpenBlas {
 public:
  OpenBlas() {
    // These pin an older kernel, which would make the comparison flattering.
    unsetenv("OPENBLAS_CORETYPE");
    unsetenv("OPENBLAS_L2_SIZE");
    for (const char* name : {"libopenblas.so.0", "libopenblas.so", "libopenblas.dylib",
                             "/opt/homebrew/opt/openblas/lib/libopenblas.dylib"})
      if (!library_) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  bool there() const { return symbol("cblas_sgemm") && symbol("openblas_set_num_threads"); }
  std::string about() const {
    if (!there()) return "OpenBLAS: absent";
    const auto core = reinterpret_cast<char* (*)()>(symbol("openblas_get_corename"));
    const auto config = reinterpret_cast<char* (*)()>(symbol("openblas_get_config"));
    return fmt::format("OpenBLAS: its {} kernel ({})", core ? core() : "unnamed", config ? config() : "no version");
  }
  void threads(int n) const {
    if (there()) reinterpret_cast<void (*)(int)>(symbol("openblas_set_num_threads"))(n);
  }
  template <class T> Gemm<T> gemm() const {
    constexpr int row_major = 101, no_transpose = 111;
    using Function = void (*)(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);
    const auto call = reinterpret_cast<Function>(symbol(sizeof(T) == 4 ? "cblas_sgemm" : "cblas_dgemm"));
    return [call](int64_t m, int64_t n, int64_t k, const T* A, const T* B, T* C) {
      const int rows = static_cast<int>(m), cols = static_cast<int>(n), depth = static_cast<int>(k);
      call(row_major, no_transpose, no_transpose, rows, cols, depth, T(1), A, depth, B, cols, T(0), C, cols);
    };
  }

 private:
  void* symbol(const char* name) const { return library_ ? dlsym(library_, name) : nullptr; }
  void* library_ = nullptr;
};

/// Eigen on one thread; nothing where its headers are absent.
template <class T> Gemm<T> eigen_gemm() {
#ifdef TAPEHEAD_BENCH_EIGEN
  return [](int64_t m, int64_t n, int64_t k, const T* A, const T* B, T* C) {
    using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    Eigen::Map<Matrix>(C, m, n).noalias() = Eigen::Map<const Matrix>(A, m, k) * Eigen::Map<const Matrix>(B, k, n);
  };
#else
  return nullptr;
#endif
}
inline std::string about_eigen() {
#ifdef TAPEHEAD_BENCH_EIGEN
  return fmt::format("Eigen: {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
#else
  return "Eigen: absent";
#endif
}

/// NumPy and PyTorch behind a pipe. TAPEHEAD_PYTHON names the interpreter (`make bench` sets it).
class Python {
 public:
  Python() {
    const char* python = std::getenv("TAPEHEAD_PYTHON");
    int to[2], from[2];
    if (!python || !*python || access("tests/bench/peers.py", R_OK) != 0 || pipe(to) != 0 || pipe(from) != 0) return;
    signal(SIGPIPE, SIG_IGN);
    child_ = fork();
    if (child_ == 0) {
      dup2(to[0], 0), dup2(from[1], 1);
      for (int end : {to[0], to[1], from[0], from[1]}) close(end);
      execl(python, python, "tests/bench/peers.py", static_cast<char*>(nullptr));
      _exit(127);
    }
    close(to[0]), close(from[1]);
    to_ = fdopen(to[1], "w"), from_ = fdopen(from[0], "r");
  }
  ~Python() {
    if (to_) std::fclose(to_);
    if (from_) std::fclose(from_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  Python(const Python&) = delete;
  Python& operator=(const Python&) = delete;

  /// "numpy 2.1.0", or "" where there is none.
  std::string version(const std::string& module) { return ask("version " + module); }
  std::string about(const std::string& module) {
    const std::string found = version(module);
    return found.empty() ? module + ": absent (make bench-peers installs it under build/)" : found;
  }
  /// Does a task that peers.py knows, such as "torch matmul float32 64 64 64".
  Contender contender(const std::string& name, const std::string& task) {
    return {name, [this, task](int64_t times) {
              return std::strtod(ask(fmt::format("time {} {}", times, task)).c_str(), nullptr);
            }};
  }

 private:
  std::string ask(const std::string& line) {
    char answer[512];
    if (!to_ || std::fprintf(to_, "%s\n", line.c_str()) < 0 || std::fflush(to_) != 0 ||
        !std::fgets(answer, sizeof answer, from_))
      return "";
    const std::string text = answer;
    return text.substr(0, text.find('\n'));
  }
  std::FILE *to_ = nullptr, *from_ = nullptr;
  pid_t child_ = -1;
};

}  // namespace bench
