// One step of training a small GPT: forward, backward, AdamW, against PyTorch.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench.hpp"
#include "peers.hpp"
#include "tapehead/tapehead.hpp"

using namespace bench;
using namespace tapehead;

namespace {

constexpr int64_t layers = 4, heads = 4, width = 128, block = 64, batch = 12, vocabulary = 65;

struct Training {
  TorchRandom rng{0};
  nn::GPT<float> model{{.vocabulary = vocabulary,
                        .block = block,
                        .layers = layers,
                        .width = width,
                        .blocks = {.attention = {.heads = heads}}},
                       rng};
  AdamW<float> adam{.lr = 1e-4};
  Tensor<int64_t> ids = rng.randint(0, vocabulary, {batch, block + 1});
  Tensor<int64_t> from = contiguous(slice(ids, 1, 0, block)), to = contiguous(slice(ids, 1, 1, block + 1));

  /// What each part took; the whole step first.
  std::array<double, 4> step(double (*clock)()) {
    const double start = clock();
    Tape<float> tape;
    tape.watch(model.parameters());
    const Tensor<float> loss = cross_entropy(model(from), to);
    const double forward = clock();
    const auto grad = tape.backward(loss);
    const double backward = clock();
    adam.step(model, grad);
    const double end = clock();
    return {end - start, forward - start, backward - forward, end - backward};
  }
};

/// The multiply-adds of all matrix products, forward and twice as many backward, each two operations; that of
/// causal attention by halves.
double operations() {
  const double tokens = batch * block, weights = layers * 12 * width * width + width * vocabulary;
  return 3 * 2 * tokens * (weights + layers * width * block);
}
/// Parameters, gradients and the optimiser's two moments: each read, three of them written.
double bytes(const nn::GPT<float>& model) { return 4.0 * 7 * static_cast<double>(model.parameter_count()); }

void compare(Report& report, Python& python, bool torch, int threads) {
  use_threads(threads);
  double (*const clock)() = threads == 1 ? thread_clock : wall_clock;
  Training training;
  report.table(fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"),
               {"ms", "± %", "GFLOP/s", "% of peak", "MB", "/ PyTorch"});
  const char* names[] = {"step", "forward", "backward", "AdamW"};
  for (std::size_t part = 0; part < (threads == 1 ? 4 : 1); ++part) {
    std::vector<Contender> contenders = {{"ours", [&](int64_t times) {
                                            double sum = 0;
                                            for (int64_t i = 0; i < times; ++i) sum += training.step(clock)[part];
                                            return sum;
                                          }}};
    if (torch) contenders.push_back(python.contender("PyTorch", fmt::format("torch gpt float32 {} {}", threads, part)));
    const double peak = ceiling<float>();
    const auto results = race(contenders, part == 0 ? 3 : 1, 0.1);
    const double speed = 1e-9 * operations() / results[0].seconds;
    const bool whole = part == 0;
    report.row(names[part],
               {1e3 * results[0].seconds, 100 * results[0].spread, whole ? std::optional(speed) : std::nullopt,
                whole ? std::optional(100 * speed / (peak * threads)) : std::nullopt,
                whole ? std::optional(1e-6 * bytes(training.model)) : std::nullopt, ratio_of("PyTorch", results)});
  }
}

/// The operations of ten steps on one thread that take longest.
void where_time_goes(Report& report) {
  use_threads(1);
  Training training;
  training.step(wall_clock);
  Profile profile;
  for (int i = 0; i < 10; ++i) {
    training.step(wall_clock);
    profile.mark("AdamW");
  }
  double total = 0;
  for (const auto& e : profile.entries()) total += e.seconds;
  report.table("Where the time of a step goes", {"ms", "%", "calls"});
  for (const auto& e : profile.entries())
    if (e.seconds > 0.01 * total)
      report.row(e.name + (e.backward ? ", back" : ""),
                 {1e2 * e.seconds, 100 * e.seconds / total, static_cast<double>(e.calls) / 10});
}

}  // namespace

int main(int, char** argv) {
  Report report("gpt", argv[0]);
  Python python;
  const bool torch = !python.version("torch").empty();
  report.note(python.about("torch"));
  report.note(fmt::format("{} layers, {} heads, width {}, {} sequences of {} tokens, vocabulary {}, float: medians of",
                          layers, heads, width, batch, block, vocabulary));
  report.note("interleaved turns. / PyTorch: its time over ours, with its fused AdamW and its default attention.");
  compare(report, python, torch, 1);
  compare(report, python, torch, 2);
  where_time_goes(report);
}
