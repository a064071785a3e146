// A character model that knows one letter back: a table of logits, trained on names, which then makes up new ones.
#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

int main(int, char** argv) {
  std::ifstream file(std::string(argv[1]) + "/people.txt");
  std::vector<std::int64_t> letters{0};  // 0 between names, 1 to 26 for a to z
  for (std::string name; std::getline(file, name); letters.push_back(0))
    for (const char c : name) letters.push_back(c - 'a' + 1);
  const auto all = from_vector(letters);
  const auto x = all.slice(0, 0, -1), y = all.slice(0, 1, all.size(0));

  TorchRandom rng(0);
  auto W = rng.randn({27, 27});
  for (int step = 0; step <= 100; ++step) {
    Tape<float> tape;
    tape.watch(W, "W");
    const auto loss = cross_entropy(embedding(x, W), y);
    W -= 30 * tape.backward(loss)[W];
    if (step % 10 == 0) fmt::print("{} {}\n", step, loss.item());
  }
  const auto P = softmax(W, -1);
  for (int sample = 0; sample < 5; ++sample) {
    std::string name;
    for (std::int64_t at = 0; (at = rng.multinomial(P[at], 1).item()) != 0;) name += static_cast<char>('a' + at - 1);
    fmt::print("{}\n", name);
  }
}
