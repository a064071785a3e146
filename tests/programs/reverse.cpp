// One layer of attention that learns to reverse sequences.
#include <fmt/format.h>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

struct Reverser : nn::Module<Reverser, float> {
  nn::Embedding<float> token, position;
  nn::SelfAttention<float> attention;
  nn::Linear<float> head;
  explicit Reverser(TorchRandom& rng)
      : token(10, 32, rng), position(8, 32, rng), attention(32, rng), head(32, 10, rng) {}
  auto operator()(const Tensor<std::int64_t>& x) const { return head(attention(token(x) + position.weight)); }
  void members(auto&& visit) {
    visit("token", token), visit("position", position), visit("attention", attention), visit("head", head);
  }
};

int main() {
  TorchRandom rng(0);
  Reverser model(rng);
  Adam<float> adam{.lr = 2e-3};
  for (int step = 0; step <= 100; ++step) {
    const auto x = rng.randint(0, 10, {64, 8}), y = flip(x, 1);
    Tape<float> tape;
    tape.watch(model.parameters());
    const auto logits = model(x);
    const auto loss = cross_entropy(logits, y);
    adam.step(model, tape.backward(loss));
    if (step % 10 == 0) fmt::print("{} {} accuracy {:.3f}\n", step, loss.item(), mean(argmax(logits) == y).item());
  }
}
