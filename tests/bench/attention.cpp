// Attention: the fused kernel and the eager rung against PyTorch, the smallest calls, and the memory it
// takes.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench.hpp"
#include "memory.hpp"
#include "peers.hpp"
#include "tapehead/tapehead.hpp"

using namespace bench;
using namespace tapehead;

namespace {

struct Problem {
  Problem(int64_t heads, int64_t length, int64_t width) {
    TorchRandom rng(0);
    for (Tensor<float>* x : {&Q, &K, &V, &dO}) *x = rng.randn<float>({1, heads, length, width});
  }
  Tensor<float> Q, K, V, dO;
};

/// Attention of a problem, forward, on the tape, or there and back.
using Attend = std::function<Tensor<float>(const Problem&)>;
void forward(const Problem& p, const Attend& attend) { attend(p); }
void recorded(const Problem& p, const Attend& attend) {
  Tape<float> tape;
  tape.watch({p.Q, p.K, p.V});
  attend(p);
}
void both(const Problem& p, const Attend& attend) {
  Tape<float> tape;
  tape.watch({p.Q, p.K, p.V});
  tape.backward(attend(p), p.dO);
}

Tensor<float> flash(const Problem& p) { return flash_attention(p.Q, p.K, p.V, {.causal = true}).out; }
Tensor<float> eager(const Problem& p) { return attention(p.Q, p.K, p.V, {.causal = true}).out; }

constexpr int64_t heads = 8, width = 64;

/// The work that causal attention needs: two products of L x L x d forward, five backward, half of each
/// masked. The eager rung does the other half as well, and it does not count.
double operations(int64_t L, bool backward) {
  return static_cast<double>(heads * L * L * width) * (backward ? 2 + 5 : 2);
}
/// Q, K, V and O; with backward also dO, dQ, dK and dV: each once.
double bytes(int64_t L, bool backward) { return static_cast<double>(heads * L * width * 4) * (backward ? 8 : 4); }

void compare(Report& report, Python& python, bool torch, const std::string& title, const Attend& attend,
             void (*run)(const Problem&, const Attend&), bool backward) {
  report.table(title, {"ms", "± %", "GFLOP/s", "% of peak", "MB", "/ PyTorch math", "/ PyTorch flash"});
  for (int64_t L : {512, 1024, 2048}) {
    const auto p = std::make_shared<Problem>(heads, L, width);
    std::vector<Contender> contenders = {here("ours", [&] { run(*p, attend); })};
    if (torch)
      for (const auto& [name, backend] : {std::pair("math", 0), std::pair("flash", 1)})
        contenders.push_back(python.contender(
            name, fmt::format("torch attention float32 1 {} {} {} {:d} {}", heads, L, width, backward, backend)));
    const double peak = ceiling<float>();
    const auto results = race(contenders, 1);
    const double speed = 1e-9 * operations(L, backward) / results[0].seconds;
    report.row(std::to_string(L), {1e3 * results[0].seconds, 100 * results[0].spread, speed, 100 * speed / peak,
                                   1e-6 * bytes(L, backward), ratio_of("math", results), ratio_of("flash", results)});
  }
}

void tiny(Report& report, Python& python, bool torch) {
  report.table("(1, 1, 6, 8), one operation after another, recorded", {"µs", "± %", "/ PyTorch"});
  const Problem p(1, 6, 8);
  for (bool backward : {false, true}) {
    std::vector<Contender> contenders = {here("ours", [&] { backward ? both(p, eager) : recorded(p, eager); })};
    if (torch)
      contenders.push_back(
          python.contender("PyTorch", fmt::format("torch attention float32 1 1 6 8 {:d} 2", backward)));
    const auto results = race(contenders);
    report.row(backward ? "and backward" : "forward",
               {1e6 * results[0].seconds, 100 * results[0].spread, ratio_of("PyTorch", results)});
  }
}

/// Seconds for a thousand multiplications in a row, recorded, or for the way back through them.
double thousand(int64_t n, bool backward) {
  const auto x = ones<float>({n}), a = full<float>({n}, 0.999f), dy = ones<float>({n});
  Tape<float> tape;
  tape.watch(x);
  Tensor<float> y = x;
  const double start = thread_clock();
  for (int i = 0; i < 1000; ++i) y = y * a;
  const double middle = thread_clock();
  if (!backward) return middle - start;
  tape.backward(y, dy);
  return thread_clock() - middle;
}

void elementwise(Report& report, Python& python, bool torch) {
  report.table("y = y * a, one of a thousand in a row, recorded",
               {"forward µs", "± %", "/ PyTorch", "backward µs", "± %", "/ PyTorch"});
  for (int64_t n : {1, 8, 64, 4096}) {
    std::vector<std::optional<double>> row;
    for (bool backward : {false, true}) {
      std::vector<Contender> contenders = {{"ours", [=](int64_t times) {
                                              double sum = 0;
                                              for (int64_t i = 0; i < times; ++i) sum += thousand(n, backward);
                                              return sum;
                                            }}};
      if (torch)
        contenders.push_back(
            python.contender("PyTorch", fmt::format("torch elementwise float32 1 {} {:d}", n, backward)));
      const auto results = race(contenders);
      row.insert(row.end(), {1e3 * results[0].seconds, 100 * results[0].spread, ratio_of("PyTorch", results)});
    }
    report.row(fmt::format("{} elements", n), row);
  }
}

/// What the fused kernel holds at the most, forward and backward, beside its inputs and outputs.
void memory(Report& report) {
  report.table("flash, forward and backward: MiB beyond Q, K, V, dO, O, dQ, dK, dV",
               {"counted", "resident", "ms", "one L x L"});
  for (const auto& [h, L] : {std::pair<int64_t, int64_t>(heads, 2048), std::pair<int64_t, int64_t>(1, 32'768)}) {
    const Peak peak = peak_memory([h = h, L = L]() -> std::function<void()> {
      const auto p = std::make_shared<Problem>(h, L, width);
      return [p] { both(*p, flash); };
    });
    const auto beyond = [outputs = 4 * 4 * h * L * width](int64_t bytes) {
      return static_cast<double>(bytes - outputs) / (1 << 20);
    };
    const Problem p(h, L, width);
    const double ms = 1e3 * here("", [&] { both(p, flash); }).seconds(1);
    report.row(fmt::format("{} x {}", h, L),
               {beyond(peak.counted), peak.resident ? std::optional(beyond(*peak.resident)) : std::nullopt, ms,
                static_cast<double>(4 * h * L * L) / (1 << 20)});
  }
}

}  // namespace

int main(int, char** argv) {
  Report report("attention", argv[0]);
  use_threads(1);
  memory(report);  // first: see peak_memory()
  Python python;
  const bool torch = !python.version("torch").empty();
  report.note(python.about("torch"));
  report.note("One thread, causal, float, (1, 8, L, 64): medians of interleaved turns, in time of the processor.");
  report.note("GFLOP/s: of the half of the products that is not masked. MB: inputs and outputs once. / peer: the");
  report.note("peer's time over ours. Math: PyTorch's path that stores the weights; flash: its fused kernel.");
  compare(report, python, torch, "flash, forward", flash, forward, false);
  compare(report, python, torch, "flash, forward and backward", flash, both, true);
  compare(report, python, torch, "eager, forward on the tape", eager, recorded, false);
  compare(report, python, torch, "eager, forward and backward", eager, both, true);
  tiny(report, python, torch);
  elementwise(report, python, torch);
}
