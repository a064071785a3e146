// Digits from .npy files: minibatches, Adam, and the accuracy on images that were not trained on.
#include <fmt/format.h>

#include <string>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

int main(int, char** argv) {
  const std::string folder = argv[1];
  const auto images = load_npy<float>(folder + "/images.npy").reshape({-1, 64});
  const auto labels = load_npy<std::int64_t>(folder + "/labels.npy");
  const auto test_images = images.slice(0, 800, 1000);
  const auto test_labels = labels.slice(0, 800, 1000);

  TorchRandom rng(0);
  nn::Sequential model{nn::Linear<float>(64, 64, rng), relu, nn::Linear<float>(64, 10, rng)};
  Adam<float> adam{.lr = 1e-2};
  for (int epoch = 0; epoch < 8; ++epoch) {
    float total = 0;
    for (const auto& batch : split(rng.randperm(800), 40)) {
      Tape<float> tape;
      tape.watch(model.parameters());
      const auto logits = model(index_select(images, 0, batch));
      const auto loss = cross_entropy(logits, index_select(labels, 0, batch));
      adam.step(model, tape.backward(loss));
      total += loss.item();
    }
    const auto accuracy = mean(argmax(model(test_images)) == test_labels);
    fmt::print("{} {} accuracy {:.4f}\n", epoch, total / 20, accuracy.item());
  }
}
