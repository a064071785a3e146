// The right column of README.md: each function is one row. 01_from_pytorch.py is the left column, and prints the same.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "tapehead/tapehead.hpp"
using namespace tapehead;

namespace {

void gradients() {
  Tensor<double> x{1, 2, 3};
  Tape<double> tape;
  tape.watch(x);
  auto y = sum(x * x);
  auto grad = tape.backward(y);
  fmt::print("gradient {}\n", grad[x]);
}

void inner_result() {
  Tensor<double> x{1, 2};
  Tape<double> tape;
  tape.watch(x);
  auto h = exp(x);
  tape.watch(h);
  auto grad = tape.backward(sum(h * h));
  fmt::print("of a result {:.4}\n", grad[h]);
}

void upstream() {
  Tensor<double> x{1, 2};
  Tape<double> tape;
  tape.watch(x);
  auto y = x * x;
  auto grad = tape.backward(y, {1, 10});
  fmt::print("from dy {}\n", grad[x]);
}

// clang-format off
struct Net : nn::Module<Net, double> {
  nn::Linear<double> hidden, out;

  explicit Net(TorchRandom& rng)
      : hidden(2, 8, rng), out(8, 1, rng) {}

  auto operator()(const Tensor<double>& x) const {
    return out(tanh(hidden(x)));
  }
  void members(auto&& visit) {
    visit("hidden", hidden), visit("out", out);
  }
};
// clang-format on

auto training() {
  TorchRandom rng(0);
  auto x = rng.randn<double>({64, 2});
  auto y = x.slice(1, 0, 1) * x.slice(1, 1, 2);
  Net net(rng);
  Adam<double> adam{.lr = 0.01};
  Tensor<double> loss;
  for (int step = 0; step < 100; ++step) {
    Tape<double> tape;
    tape.watch(net.parameters());
    loss = mse_loss(net(x), y);
    adam.step(net, tape.backward(loss));
  }
  fmt::print("loss {:.6f}\n", loss.item());
  return std::pair{net, x};
}

void sequential() {
  TorchRandom rng(0);
  using nn::Linear;
  nn::Sequential net{Linear<double>(2, 4, rng), relu, Linear<double>(4, 1, rng)};
  auto y = net(ones<double>({3, 2}));
  auto name = net.parameters().back().name;
  fmt::print("sequential {} {:.4}\n", name, y[0]);
}

void accuracy() {
  Tensor<double> logits{{0.1, 0.8}, {0.9, 0.2}, {0.3, 0.4}};
  Tensor<std::int64_t> target{1, 0, 0};
  auto correct = argmax(logits) == target;
  fmt::print("{:.4} {:.4}\n", cross_entropy(logits, target), mean(correct));
}

void clipped(Net& net, const Tensor<double>& x) {
  SGD<double> sgd{.lr = 0.1};
  Tape<double> tape;
  tape.watch(net.parameters());
  auto loss = mean(abs(net(x)));
  auto [grad, norm] = clip_grad_norm(net, tape.backward(loss), 0.5);
  sgd.step(net, grad);
  fmt::print("norm {:.6f}\n", norm);
}

void prediction(Net& net, const Tensor<double>& x) {
  net.eval();
  auto y = net(x.slice(0, 0, 2));
  fmt::print("prediction {:.4}\n", y.reshape({-1}));
}

void by_hand() {
  Tensor<double> w{3, -2};
  for (int step = 0; step < 5; ++step) {
    Tape<double> tape;
    tape.watch(w);
    auto loss = sum(w * w);
    auto grad = tape.backward(loss);
    w -= 0.1 * grad[w];
  }
  fmt::print("by hand {:.4}\n", w);
}

void detached() {
  Tensor<double> x{1, 2};
  Tape<double> tape;
  tape.watch(x);
  auto y = sum(x * detach(x));
  fmt::print("detached {}\n", tape.backward(y)[x]);
}

void twice() {
  Tensor<double> x{1, 2};
  Tape<double> outer;
  outer.watch(x);
  Tensor<double> slope;
  {
    Tape<double> inner;
    inner.watch(x);
    auto y = sum(x * x * x);
    slope = inner.backward(y)[x];
  }
  auto grad = outer.backward(sum(slope));
  fmt::print("second {}\n", grad[x]);
}

void curvature() {
  auto f = [](const Tensor<double>& x) { return x[0] * x[0] * x[1]; };
  auto H = hessian(f, Tensor<double>{1, 2});
  fmt::print("hessian {}\n", H);
}

void generators() {
  TorchRandom rng(0);
  auto a = rng.randn<double>({2, 3});
  auto b = rng.rand<double>({3});
  auto order = rng.randperm(5);
  auto next = rng.multinomial(softmax(a, -1), 1);
  fmt::print("draws {:.4} {:.4}\n", a, b);
  fmt::print("{} {}\n", order, next.reshape({-1}));
}

void files(Net& net, const Tensor<double>& x, const std::string& folder) {
  auto path = folder + "/net.safetensors";
  save_safetensors(path, net.state());
  TorchRandom rng(1);
  Net other(rng);
  other.load_state(load_safetensors(path));
  fmt::print("loaded {}\n", equal(other(x), net(x)));
}

void shapes() {
  auto x = arange<double>(12).reshape({3, -1});
  fmt::print("{} {}\n", x[1], sum(x.slice(1, 1, 3)));
  fmt::print("{} {}\n", x.T().reshape({-1}).slice(0, 0, 3), x.size(-1));
  fmt::print("{} {}\n", mean(x, -1), argmax(x, 0));
  fmt::print("{}\n", cat({x, x}, 1).size(1));
  auto y = where(x > 5, x, 0);
  fmt::print("{} {}\n", sum(y), sum(x > 5));
}

void renamed() {
  auto x = arange<double>(6).reshape({2, 3});
  auto y = broadcast_to(x, {4, 2, 3});
  fmt::print("{:.4} {}\n", std_dev(x), y.shape());
  auto rows = one_hot(Tensor<std::int64_t>{2, 0}, 3);
  fmt::print("{}\n", rows);
  fmt::print("{}\n", index_select(x, 1, {2, 0}));
}

void types() {
  Tensor<std::int64_t> i{1, 2, 3};
  Tensor<double> x{0.5, 0.5, 0.5};
  fmt::print("sum {}\n", to<double>(i) + x);
}

}  // namespace

int main(int, char** argv) {
  gradients();
  inner_result();
  upstream();
  auto [net, x] = training();
  sequential();
  accuracy();
  clipped(net, x);
  prediction(net, x);
  by_hand();
  detached();
  twice();
  curvature();
  generators();
  files(net, x, argv[1]);
  shapes();
  renamed();
  types();
}
