#pragma once
// Timing for the programs in this folder. Contenders take turns, so that whatever else the machine is doing
// disturbs all of them alike; what is printed is the median of the turns and of the turn-by-turn ratios, with
// the spread.

#include <fmt/format.h>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/vec.hpp"
#include "tapehead/kernels/threads.hpp"

namespace bench {

using std::int64_t;

/// Seconds that have passed.
inline double wall_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds that the processor spent on this thread: for work of one thread the better measure on a busy
/// machine, since it stands still while another program has the processor.
inline double thread_clock() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The value at a fraction of the sorted list: 0.5 is the median.
inline double quantile(std::vector<double> values, double fraction) {
  const auto at = static_cast<std::ptrdiff_t>(fraction * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

/// Somebody who does the work `times` times and says how many seconds that took.
struct Contender {
  std::string name;
  std::function<double(int64_t times)> seconds;
};

/// A contender that is a function of this program, on one thread by default.
template <class F> Contender here(std::string name, F work, double (*clock)() = thread_clock) {
  return {std::move(name), [work, clock](int64_t times) {
            const double start = clock();
            for (int64_t i = 0; i < times; ++i) work();
            return clock() - start;
          }};
}

struct Result {
  std::string name;
  double seconds;  ///< for the work once: the median of the turns
  double spread;   ///< half the distance between the quartiles, as a fraction of the median
  double ratio;    ///< its time over the first contender's in the same turn, the median: above 1 is slower
};

/// Lets the contenders take turns of about `turn` seconds, as many as fit into `budget` seconds each, `least`
/// at least.
inline std::vector<Result> race(const std::vector<Contender>& contenders, double budget = 0.4, double turn = 0.01,
                                double least = 5) {
  std::vector<int64_t> times;
  double longest = 0;
  for (const Contender& c : contenders) {
    c.seconds(1);  // warms up
    int64_t n = 1;
    double t = c.seconds(1);
    while (t < turn / 4) t = c.seconds(n *= 4);
    times.push_back(std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(n) * turn / t)));
    longest = std::max(longest, t / static_cast<double>(n) * static_cast<double>(times.back()));
  }
  const int turns = static_cast<int>(std::clamp(budget / longest, least, 201.0));
  std::vector<std::vector<double>> seconds(contenders.size()), ratios(contenders.size());
  for (int i = 0; i < turns; ++i)
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      seconds[c].push_back(contenders[c].seconds(times[c]) / static_cast<double>(times[c]));
      ratios[c].push_back(seconds[c].back() / seconds[0].back());
    }
  std::vector<Result> results;
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    const double median = quantile(seconds[c], 0.5);
    results.push_back({contenders[c].name, median,
                       (quantile(seconds[c], 0.75) - quantile(seconds[c], 0.25)) / (2 * median),
                       quantile(ratios[c], 0.5)});
  }
  return results;
}

/// A contender's time over the first one's, if it was there.
inline std::optional<double> ratio_of(const std::string& name, const std::vector<Result>& results) {
  for (const Result& r : results)
    if (r.name == name) return r.ratio;
  return std::nullopt;
}

/// How many threads the library may use.
inline void use_threads(int n) { tapehead::set_num_threads(n); }

/// GFLOP/s of one core doing nothing but multiply-adds (two operations each), in enough chains to hide their
/// latency.
template <class T> double ceiling() {
  using namespace tapehead::kernels;
  constexpr int chains = vector_bytes == 64 ? 24 : 12;
  constexpr int64_t steps = 10'000;
  const Vec<T> a = T(0.999), b = T(1e-3);
  Vec<T> x[chains];
  double best = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const double start = thread_clock();
    for (int64_t i = 0; i < steps; ++i)
#pragma GCC unroll 24
      for (int c = 0; c < chains; ++c) x[c] = fma(x[c], a, b);
    best = std::max(best, 2e-9 * static_cast<double>(steps * chains * lanes<T>) / (thread_clock() - start));
  }
  volatile T used = T(0);
  for (const Vec<T>& v : x) used = used + v[0];
  return best;
}

/// GB/s at which one core reads a buffer of that many bytes, over and over.
inline double read_bandwidth(int64_t bytes) {
  using namespace tapehead::kernels;
  constexpr std::size_t L = static_cast<std::size_t>(lanes<float>);
  const std::vector<float> data(static_cast<std::size_t>(bytes / 4), 1.0f);
  volatile float used = 0;
  double best = 0;
  for (int attempt = 0; attempt < 10; ++attempt) {
    Vec<float> sum[4];
    const double start = thread_clock();
    for (std::size_t i = 0; i + 4 * L <= data.size(); i += 4 * L)
      for (std::size_t c = 0; c < 4; ++c) sum[c] += load(data.data() + i + c * L);
    best = std::max(best, 1e-9 * static_cast<double>(bytes) / (thread_clock() - start));
    used = used + (sum[0] + sum[1] + sum[2] + sum[3])[0];
  }
  return best;
}

/// Which vectors this program was compiled for.
inline std::string vector_name() { return fmt::format("vectors of {} bytes", tapehead::kernels::vector_bytes); }

/// Tables for the eye, and the same figures for bench.json beside the build. Each program owns one line of
/// that file.
class Report {
 public:
  Report(std::string program, const std::string& path_of_program) : program_(std::move(program)) {
    const auto folder = path_of_program.rfind("/tests/bench/");
    path_ = (folder == std::string::npos ? "" : path_of_program.substr(0, folder + 1)) + "bench.json";
    fmt::print("{}: {}\n", program_, vector_name());
    notes_ = quoted(vector_name());
  }
  ~Report() {
    close_table();
    std::vector<std::string> lines;
    std::ifstream old(path_);
    for (std::string line; std::getline(old, line);)
      if (line.size() > 1 && line.rfind(quoted(program_) + ":", 0) != 0)
        lines.push_back(line.back() == ',' ? line.substr(0, line.size() - 1) : line);
    old.close();
    lines.push_back(fmt::format("{}: {{\"notes\": [{}], \"tables\": [{}]}}", quoted(program_), notes_, tables_));
    std::ofstream(path_) << fmt::format("{{\n{}\n}}\n", fmt::join(lines, ",\n"));
    fmt::print("\nThe same figures: {}\n", path_);
  }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void note(const std::string& text) {
    fmt::print("{}\n", text);
    notes_ += ", " + quoted(text);
  }

  /// Starts a table: a line above it, and the names of its columns.
  void table(const std::string& title, const std::vector<std::string>& columns) {
    close_table();
    fmt::print("\n{}\n{:24}", title, "");
    widths_.clear();
    std::vector<std::string> names;
    for (const std::string& name : columns) {
      widths_.push_back(std::max<std::size_t>(name.size() + 2, 8));
      fmt::print("{:>{}}", name, widths_.back());
      names.push_back(quoted(name));
    }
    fmt::print("\n");
    open_ = fmt::format("{{\"title\": {}, \"columns\": [{}], \"rows\": {{", quoted(title), fmt::join(names, ", "));
    rows_.clear();
  }
  /// A row: one figure a column, or none where it could not be had.
  void row(const std::string& name, const std::vector<std::optional<double>>& figures) {
    fmt::print("{:24}", name);
    std::vector<std::string> values;
    for (std::size_t i = 0; i < figures.size(); ++i) {
      fmt::print("{:>{}}", figures[i] ? three_digits(*figures[i]) : "-", widths_.at(i));
      values.push_back(figures[i] ? fmt::format("{:.6g}", *figures[i]) : "null");
    }
    fmt::print("\n");
    std::fflush(stdout);
    rows_.push_back(fmt::format("{}: [{}]", quoted(name), fmt::join(values, ", ")));
  }

 private:
  static std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (char c : text) {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
    return result + '"';
  }
  static std::string three_digits(double x) {
    return x >= 99.95 ? fmt::format("{:.0f}", x) : x >= 9.995 ? fmt::format("{:.1f}", x) : fmt::format("{:.2f}", x);
  }
  void close_table() {
    if (open_.empty()) return;
    tables_ += fmt::format("{}{}{}}}}}", tables_.empty() ? "" : ", ", open_, fmt::join(rows_, ", "));
    open_.clear();
  }

  std::string program_, path_, notes_, tables_, open_;
  std::vector<std::string> rows_;
  std::vector<std::size_t> widths_;
};

}  // namespace bench
