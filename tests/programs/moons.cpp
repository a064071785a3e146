// Two moons, as in micrograd's demo: a small network, the hinge loss, L2 regularisation, a falling learning rate.
#include <fmt/format.h>

#include <numbers>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

int main() {
  TorchRandom rng(1);
  const auto t = linspace(0.0, std::numbers::pi, 50);
  const auto x =
      cat({stack({cos(t), sin(t)}, 1), stack({1 - cos(t), 0.5 - sin(t)}, 1)}) + 0.1 * rng.randn<double>({100, 2});
  const auto y = cat({full<double>({50, 1}, -1), full<double>({50, 1}, 1)});
  using nn::Linear;
  nn::Sequential model{Linear<double>(2, 16, rng), relu, Linear<double>(16, 16, rng), relu, Linear<double>(16, 1, rng)};
  SGD<double> sgd;
  for (int step = 0; step < 100; ++step) {
    Tape<double> tape;
    tape.watch(model.parameters());
    const auto score = model(x);
    auto loss = mean(relu(1 - y * score));
    model.each_parameter([&](const auto&, const auto& p) { loss = loss + 1e-4 * sum(p * p); });
    sgd.lr = 1 - 0.009 * step;
    sgd.step(model, tape.backward(loss));
    if (step % 10 == 0) fmt::print("{} {} accuracy {}\n", step, loss.item(), mean((score > 0) == (y > 0)).item());
  }
}
