// An operation of one's own, checked, and trained through twice: its slope is part of the loss.
#include <fmt/format.h>

#include <cmath>
#include <tuple>
#include <utility>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

// y = c tanh(x / c), which lies between -c and c. c is a tensor with one element.
static const Op soft_cap_op{"soft_cap", "y = c tanh(x / c)", "dx = dy (1 - (y/c)²), dc = (y dy - x dx) / c"};
Tensor<double> soft_cap(const Tensor<double>& x, const Tensor<double>& c) {
  const auto in = contiguous(detach(x));
  Buffer<double> out(x.shape());
  for (std::int64_t i = 0; i < out.numel(); ++i) out[i] = c.item() * std::tanh(in.data()[i] / c.item());
  const Tensor<double> y = std::move(out);
  const auto dx = [](auto& dy, auto& Y, auto& C) { return dy * (1 - pow(Y / C, 2)); };
  const auto dc = [](auto& dy, auto& X, auto& Y, auto& C) { return dy * (Y - X * (1 - pow(Y / C, 2))) / C; };
  return record(soft_cap_op, y, wrt(x, dx, y, c), wrt(c, dc, x, y, c));
}

int main() {
  TorchRandom rng(0);
  const auto x = rng.randn<double>({64}), target = clamp(2 * x, -1.5, 1.5);
  auto a = scalar(1.0), c = scalar(1.0);
  fmt::print("gradcheck {}\n", gradcheck(soft_cap, {{"x", x}, {"c", c}}, {.order = 2}).ok);
  const auto slope = [&](const Tensor<double>& at) {
    Tape<double> tape;
    tape.watch(at);
    return tape.backward(sum(soft_cap(a * at, c)))[at];
  };
  for (int step = 0; step < 30; ++step) {
    Tape<double> tape;
    tape.watch({{"a", a}, {"c", c}});
    const auto loss = mse_loss(soft_cap(a * x, c), target) + 0.01 * mean(pow(slope(x), 2));
    SGD<double>{.lr = 0.5}.step(std::tie(a, c), tape.backward(loss));
    fmt::print("{} {}\n", step, loss.item());
  }
}
