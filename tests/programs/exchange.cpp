// Weights from PyTorch and back: loads what exchange.py saved, trains on, and saves under PyTorch's names.
#include <fmt/format.h>

#include <string>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

int main(int, char** argv) {
  const std::string folder = argv[1];
  TorchRandom init(0), rng(3);
  nn::Sequential model{nn::Linear<float>(4, 8, init), nn::LayerNorm<float>(8), gelu, nn::Linear<float>(8, 1, init)};
  model.load_state(load_safetensors(folder + "/pytorch.safetensors"));

  const auto x = rng.randn({40, 4}), y = sum(x * x, -1, true);
  AdamW<float> adamw{.lr = 1e-2};
  for (int step = 0; step < 20; ++step) {
    Tape<float> tape;
    tape.watch(model.parameters());
    const auto [grad, norm] = clip_grad_norm(model, tape.backward(mse_loss(model(x), y)), 1.0);
    adamw.step(model, grad);
    fmt::print("{} {} norm {}\n", step, mse_loss(model(x), y).item(), norm);
  }
  save_safetensors(folder + "/tapehead.safetensors", model.state());
}
