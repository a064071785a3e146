// Linear regression, without a module.
#include <fmt/format.h>

#include <tuple>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

int main() {
  TorchRandom rng(0);
  const auto x = rng.randn<double>({100, 3});
  const auto y = matmul(x, Tensor<double>{2, -1, 0.5}) + 0.3 + 0.1 * rng.randn<double>({100});
  auto w = zeros<double>({3}), b = scalar(0.0);
  SGD<double> sgd{.lr = 0.1, .momentum = 0.5};
  for (int step = 0; step < 30; ++step) {
    Tape<double> tape;
    tape.watch({{"w", w}, {"b", b}});
    const auto loss = mse_loss(matmul(x, w) + b, y);
    sgd.step(std::tie(w, b), tape.backward(loss));
    fmt::print("{} {}\n", step, loss.item());
  }
  fmt::print("w = {:.4f} b = {:.4f}\n", w, b);
}
