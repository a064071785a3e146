// A character model that sees three letters back: embeddings, one hidden layer, minibatches, AdamW.
#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

struct Model : nn::Module<Model, float> {
  nn::Embedding<float> letters;
  nn::Linear<float> hidden, out;
  explicit Model(TorchRandom& rng) : letters(27, 8, rng), hidden(24, 64, rng), out(64, 27, rng) {}
  auto operator()(const Tensor<std::int64_t>& x) const { return out(tanh(hidden(letters(x).reshape({-1, 24})))); }
  void members(auto&& visit) { visit("letters", letters), visit("hidden", hidden), visit("out", out); }
};

int main(int, char** argv) {
  std::ifstream file(std::string(argv[1]) + "/people.txt");
  std::vector<std::int64_t> text{0, 0, 0};  // 0 between names, 1 to 26 for a to z
  for (std::string name; std::getline(file, name); text.insert(text.end(), {0, 0, 0}))
    for (const char c : name) text.push_back(c - 'a' + 1);
  const auto all = from_vector(text);
  TorchRandom rng(0);
  Model model(rng);
  AdamW<float> adamw{.lr = 1e-2};
  for (int step = 0; step <= 200; ++step) {
    Tape<float> tape;
    tape.watch(model.parameters());
    const auto at = unsqueeze(rng.randint(0, all.size(0) - 3, {32}), 1) + arange<std::int64_t>(4);  // 32 windows
    const auto window = index_select(all, 0, at.reshape({-1})).reshape({-1, 4});
    const auto loss = cross_entropy(model(window.slice(1, 0, 3)), window.select(1, 3));
    adamw.step(model, tape.backward(loss));
    if (step % 20 == 0) fmt::print("{} {}\n", step, loss.item());
  }
}
