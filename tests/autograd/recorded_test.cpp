// Where no other tape records, some operations go back in one pass of their own (nobody_records). It gives
// what the operations give that an outer tape would record: on more rows than one group of 64 has, and not a
// multiple of it.
#include "autograd/recorded.hpp"

#include <string>
#include <utility>
#include <vector>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;

namespace {

// A dozen roundings of numbers of size 1, and sums over 131 of them.
constexpr double tolerance = 1e-12;

using Inputs = std::vector<Tensor<double>>;

using Function = Tensor<double> (*)(const Inputs&);

std::vector<Tensor<double>> gradients(Function f, const Inputs& inputs, bool recorded) {
  Tape<double> outer, inner;
  if (recorded) outer.watch(inputs);
  inner.watch(inputs);
  const Tensor<double> y = f(inputs);
  const auto grad = inner.backward(y, TorchRandom(7).randn<double>(y.shape()));
  std::vector<Tensor<double>> all;
  for (const auto& x : inputs) all.push_back(detach(grad[x]));
  return all;
}

}  // namespace

TEST_CASE("recorded: the way back in one pass is the way back in operations, over 131 rows") {
  TorchRandom rng(3);
  const Tensor<double> x = rng.randn<double>({131, 37}), w = rng.randn<double>({37}), b = rng.randn<double>({37});
  static const auto target = rng.randint(0, 37, {131});
  const std::pair<const char*, Function> operations[] = {
      {"softmax", [](const Inputs& in) { return softmax(in[0], -1); }},
      {"softmax of columns", [](const Inputs& in) { return softmax(in[0], 0); }},
      {"layer_norm", [](const Inputs& in) { return layer_norm(in[0], in[1], in[2]); }},
      {"rms_norm", [](const Inputs& in) { return rms_norm(in[0], in[1]) + 0 * in[2]; }},
      {"gelu", [](const Inputs& in) { return gelu(in[0]) * in[1] + in[2]; }},
      {"cross_entropy", [](const Inputs& in) {
         return cross_entropy(in[0] * in[1] + in[2], target, {.ignore_index = 5, .label_smoothing = 0.1});
       }}};
  for (const auto& operation : operations) {
    CAPTURE(operation.first);
    const auto pass = gradients(operation.second, {x, w, b}, false),
               recorded = gradients(operation.second, {x, w, b}, true);
    for (std::size_t i = 0; i < pass.size(); ++i) {
      CAPTURE(i);
      CHECK(allclose(pass[i], recorded[i], tolerance, tolerance));
    }
  }
}
