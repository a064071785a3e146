// exp, log, tanh and their like: nanoseconds an element, against the system's library called element by
// element.

#include "kernels/vmath.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "bench.hpp"

using namespace bench;
namespace kernels = tapehead::kernels;

namespace {

constexpr int64_t n = 4096;  // stays in the first-level cache

template <class T> using Function = void (*)(int64_t, const T*, T*);

template <class T> void compare(Report& report) {
  struct Case {
    const char* name;
    Function<T> ours;
    T (*theirs)(T);
    T lo, hi;
  };
  const std::vector<Case> cases = {
      {"exp", kernels::exp_n<T>, [](T x) { return std::exp(x); }, -10, 10},
      {"exp2", kernels::exp2_n<T>, [](T x) { return std::exp2(x); }, -10, 10},
      {"expm1", kernels::expm1_n<T>, [](T x) { return std::expm1(x); }, -10, 10},
      {"log", kernels::log_n<T>, [](T x) { return std::log(x); }, T(0.01), 10},
      {"tanh", kernels::tanh_n<T>, [](T x) { return std::tanh(x); }, -3, 3},
      {"sigmoid", kernels::sigmoid_n<T>, [](T x) { return 1 / (1 + std::exp(-x)); }, -5, 5},
      {"erf", kernels::erf_n<T>, [](T x) { return std::erf(x); }, -3, 3},
  };
  report.table(sizeof(T) == 4 ? "float" : "double", {"ns", "± %", "library ns", "library / ours"});
  for (const Case& c : cases) {
    std::vector<T> x(n), y(n);
    for (int64_t i = 0; i < n; ++i)
      x[static_cast<std::size_t>(i)] = c.lo + (c.hi - c.lo) * static_cast<T>(i) / static_cast<T>(n);
    const auto results = race({here("ours", [&] { c.ours(n, x.data(), y.data()); }), here("library", [&] {
                                 for (std::size_t i = 0; i < x.size(); ++i) y[i] = c.theirs(x[i]);
                               })});
    const double each = 1e9 / static_cast<double>(n);
    report.row(c.name,
               {each * results[0].seconds, 100 * results[0].spread, each * results[1].seconds, results[1].ratio});
  }
}

}  // namespace

int main(int, char** argv) {
  Report report("vmath", argv[0]);
  report.note(
      "Nanoseconds an element, one thread, 4096 elements. Errors: see src/kernels/vmath.hpp, where each "
      "function");
  report.note("states its bound in units of the last place.");
  compare<float>(report);
  compare<double>(report);
}
