// The right column of README.md's rows for micrograd. 03_from_micrograd.py is the left column, and prints the same.
#include <fmt/format.h>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

int main() {
  auto a = scalar(-4.0), b = scalar(2.0);
  Tape<double> tape;
  tape.watch({{"a", a}, {"b", b}});
  auto c = a * b + pow(b, 3);
  auto d = relu(c - a) * 2;
  auto grad = tape.backward(d);
  fmt::print("{} {} {}\n", d, grad[a], grad[b]);
}
