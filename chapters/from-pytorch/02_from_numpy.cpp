// The right column of README.md's rows for NumPy. 02_from_numpy.py is the left column, and prints the same.
#include <fmt/format.h>

#include <string>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

namespace {

void draws() {
  NumpyRandom rng(1);
  auto a = rng.randn({3});
  auto b = rng.rand({2});
  auto c = rng.permutation(4);
  fmt::print("{} {} {}\n", round(a, 4), round(b, 4), c);
}

void arrays() {
  auto x = linspace(0.0, 1.0, 5);
  auto y = zeros<double>({2, 5}) + x;
  fmt::print("{} {} {}\n", y[1], y.shape(), max(y, 0));
  fmt::print("{}\n", round(exp(-y[0]), 3));
  fmt::print("{} {}\n", sum(cat({y, y})), matmul(x, x));
}

void files(const std::string& folder) {
  auto path = folder + "/arrays.npz";
  save_npz(path, {{"x", arange<double>(3)}, {"ids", Tensor<std::int64_t>{2, 0}}});
  auto arrays = load_npz(path);
  auto ids = arrays.get<std::int64_t>("ids");
  fmt::print("{}\n", index_select(arrays.get<double>("x"), 0, ids));
}

}  // namespace

int main(int, char** argv) {
  draws();
  arrays();
  files(argv[1]);
}
