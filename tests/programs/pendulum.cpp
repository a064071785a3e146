// A pendulum's frequency and friction, fitted to measurements by Newton's method: conjugate gradients solve H d = g and
// need only products of the Hessian H with vectors.
#include <fmt/format.h>

#include <vector>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

Tensor<double> simulate(const Tensor<double>& p) {
  auto angle = scalar(1.0), speed = scalar(0.0);
  std::vector<Tensor<double>> angles;
  for (int i = 0; i < 60; ++i) {
    speed -= 0.05 * (p[0] * sin(angle) + p[1] * speed), angle += 0.05 * speed;
    angles.push_back(angle);
  }
  return stack(angles);
}

int main() {
  TorchRandom rng(0);
  const auto measured = simulate({4, 0.5}) + 0.02 * rng.randn<double>({60});
  Tensor<double> p{3, 0.2}, loss;
  for (int step = 0; step < 6; ++step) {
    Tape<double> outer;
    outer.watch(p);
    const auto g = [&] {
      Tape<double> inner;
      inner.watch(p);
      return inner.backward(loss = mse_loss(simulate(p), measured))[p];
    }();
    auto d = zeros_like(p), r = detach(g), q = r;
    for (int i = 0; i < 2; ++i) {
      const auto Hq = outer.backward(g, q)[p], rr = sum(r * r), alpha = rr / sum(q * Hq);
      d += alpha * q, r -= alpha * Hq, q = r + sum(r * r) / rr * q;
    }
    p -= d;
    fmt::print("{} {} p = {:.6f}\n", step, loss.item(), p);
  }
}
