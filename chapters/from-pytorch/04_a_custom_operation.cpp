// Three wrong versions of an operation, and what gradcheck says of each. custom.cpp, of tests/programs, has the right
// one and trains with it.
#include <fmt/format.h>

#include <cmath>
#include <sstream>
#include <string>
#include <utility>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

namespace {

static const Op soft_cap_op{"soft_cap", "y = c tanh(x / c)",
                            "dx = dy (1 - (y/c)²), dc = dy (y - x (1 - (y/c)²)) / c"};

// The forward pass, which all versions share.
Tensor<double> capped(const Tensor<double>& x, const Tensor<double>& c) {
  const auto in = contiguous(detach(x));
  Buffer<double> out(x.shape());
  for (std::int64_t i = 0; i < out.numel(); ++i) out[i] = c.item() * std::tanh(in.data()[i] / c.item());
  return out;
}
const auto slope = [](const auto& Y, const auto& C) { return 1 - pow(Y / C, 2); };
const auto dx = [](const auto& dy, const auto& Y, const auto& C) { return dy * slope(Y, C); };
const auto dc = [](const auto& dy, const auto& X, const auto& Y, const auto& C) {
  return dy * (Y - X * slope(Y, C)) / C;
};

Tensor<double> right(const Tensor<double>& x, const Tensor<double>& c) {
  const auto y = capped(x, c);
  return record(soft_cap_op, y, wrt(x, dx, y, c), wrt(c, dc, x, y, c));
}

// The derivative of tanh(x / c) alone: the factor c in front, which cancels the 1/c of the chain rule, was forgotten.
Tensor<double> wrong_factor(const Tensor<double>& x, const Tensor<double>& c) {
  const auto y = capped(x, c);
  const auto wrong = [](const auto& dy, const auto& Y, const auto& C) { return dy * slope(Y, C) / C; };
  return record(soft_cap_op, y, wrt(x, wrong, y, c), wrt(c, dc, x, y, c));
}

// No wrt(c, …): the tape does not learn that y depends on c.
Tensor<double> forgets_c(const Tensor<double>& x, const Tensor<double>& c) {
  const auto y = capped(x, c);
  return record(soft_cap_op, y, wrt(x, dx, y, c));
}

// The slope is computed in the forward pass, from detached tensors, and captured. Its values are right, so the gradient
// is, but to an outer tape it is a constant.
Tensor<double> captures_slope(const Tensor<double>& x, const Tensor<double>& c) {
  const auto y = capped(x, c);
  const auto saved = slope(y, detach(c));
  const auto wrong = [saved](const auto& dy) { return dy * saved; };
  return record(soft_cap_op, y, wrt(x, wrong), wrt(c, dc, x, y, c));
}

}  // namespace

// What a report says, in lines of at most 100 characters.
std::string wrapped(const std::string& report) {
  std::string text;
  std::size_t width = 0;
  std::istringstream words(report);
  for (std::string word; words >> word; width += word.size() + 1) {
    if (width == 0 || word == "likely" || word == "gradcheck," || width + word.size() > 100)
      text += "\n   ", width = 0;
    text += " " + word;
  }
  return text;
}

int main() {
  TorchRandom rng(0);
  const auto x = rng.randn<double>({2, 3}), c = scalar(0.8);
  const auto check = [&](const char* name, auto f) {
    const auto first = gradcheck(f, {{"x", x}, {"c", c}});
    fmt::print("{}, first order:{}\n", name, wrapped(first.text()));
    if (first)  // otherwise the second order has nothing to add
      fmt::print("{}, second order:{}\n", name,
                 wrapped(gradcheck(f, {{"x", x}, {"c", c}}, {.order = 2}).text()));
    fmt::print("\n");
  };
  check("right", right);
  check("wrong_factor", wrong_factor);
  check("forgets_c", forgets_c);
  check("captures_slope", captures_slope);
}
