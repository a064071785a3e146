// The data of digits.cpp and digits.py: images of ten digits, moved by up to a pixel, with noise, as .npy files.
#include <fmt/format.h>

#include <string>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

int main(int, char** argv) {
  const std::string glyphs[] = {"#### ## ## ####", " #  #  #  #  # ", "###  #####  ###", "###  ####  ####",
                                "# ## ####  #  #", "####  ###  ####", "####  #### ####", "###  #  #  #  #",
                                "#### ##### ####", "#### ####  ####"};
  TorchRandom rng(7);
  const std::int64_t n = 1000;
  const auto labels = rng.randint(0, 10, {n}), down = rng.randint(1, 3, {n}), right = rng.randint(2, 4, {n});
  Buffer<float> clean({n, 8, 8});
  for (std::int64_t i = 0; i < clean.numel(); ++i) {
    const std::int64_t image = i / 64, row = i / 8 % 8 - down[image].item(), column = i % 8 - right[image].item();
    const bool inside = row >= 0 && row < 5 && column >= 0 && column < 3;
    const auto& glyph = glyphs[labels[image].item()];
    clean[i] = inside && glyph[static_cast<std::size_t>(row * 3 + column)] == '#' ? 1.0f : 0.0f;
  }
  const std::string folder = argv[1];
  save_npy(folder + "/images.npy", Tensor<float>(std::move(clean)) + 0.2 * rng.randn({n, 8, 8}));
  save_npy(folder + "/labels.npy", labels);
}
