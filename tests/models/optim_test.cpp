// Optimisers, against their formulas written out once more in plain loops, and in use.
#include "tapehead/models/optim.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

// Two parameters, one of rank 2 and one of rank 1, and a loss that is not their sum of squares.
struct Model : nn::Module<Model, double> {
  Tensor<double> W{{0.5, -1.5, 2}, {1, 0.25, -3}}, b{0.1, -0.2};
  template <class F> void members(F&& visit) { visit("W", W), visit("b", b); }
  Tensor<double> loss(const Tensor<double>& x) const {
    const auto y = tanh(matmul(x, W.T()) + b);
    return sum(y * y * y + y);
  }
  Gradients<double> gradients() {
    Tape<double> tape;
    tape.watch(parameters());
    return tape.backward(loss(Tensor<double>{{1, 2, -1}, {0.5, -1, 0.25}, {2, 0, 1}}));
  }
  std::vector<double> values() const {
    auto all = W.to_vector();
    for (double x : b.to_vector()) all.push_back(x);
    return all;
  }
  std::vector<double> gradient_values() {
    const auto grad = gradients();
    auto all = grad[W].to_vector();
    for (double x : grad[b].to_vector()) all.push_back(x);
    return all;
  }
};
// For single tests; local classes cannot have templates.
struct Large : nn::Module<Large, float> {
  Tensor<float> w = transpose(TorchRandom(1).randn({300, 301}), 0, 1);
  template <class F> void members(F&& visit) { visit("w", w); }
};
struct Twins : nn::Module<Twins, double> {
  Tensor<double> a{1.0}, b{2.0};
  template <class F> void members(F&& visit) { visit("w", a), visit("w", b); }
};
template <class T> struct Point : nn::Module<Point<T>, T> {
  Tensor<T> at{3, -4};
  template <class F> void members(F&& visit) { visit("at", at); }
};
constexpr std::size_t in_W = 6, in_model = 8;

// Both sides compute the same few products and sums, perhaps contracted differently: some ε of the largest
// value, 3.
bool close(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < in_model; ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-14)) return false;
  return a.size() == in_model && b.size() == in_model;
}

}  // namespace

TEST_CASE("SGD: plain, with momentum, weight decay and nesterov") {
  for (double momentum : {0.0, 0.9})
    for (double decay : {0.0, 0.1})
      for (bool nesterov : {false, true}) {
        if (nesterov && momentum == 0) continue;
        Model model;
        SGD<double> optimizer{.lr = 0.05, .momentum = momentum, .weight_decay = decay, .nesterov = nesterov};
        std::vector<double> p = model.values(), buffer(in_model, 0);
        for (int step = 0; step < 4; ++step) {
          const auto g = model.gradient_values();
          for (std::size_t i = 0; i < in_model; ++i) {
            const double d = g[i] + decay * p[i];
            buffer[i] = step == 0 ? d : momentum * buffer[i] + d;
            p[i] -= 0.05 * (nesterov ? d + momentum * buffer[i] : buffer[i]);
          }
          optimizer.step(model, model.gradients());
          CHECK(close(model.values(), p));
        }
        CHECK((optimizer.velocity.at("W").shape() == Shape{2, 3}) == (momentum > 0));
      }
}

TEST_CASE("Adam and AdamW: torch's formulas, with decay on all parameters or on matrices alone") {
  const auto check = [](auto optimizer, bool decoupled) {
    for (double decay : {0.0, 0.1})
      for (bool vectors : {true, false}) {
        Model model;
        optimizer.state.clear();
        optimizer.weight_decay = decay, optimizer.decay_vectors = vectors;
        std::vector<double> p = model.values(), m(in_model, 0), v(in_model, 0);
        for (int step = 1; step <= 4; ++step) {
          optimizer.lr = 0.1 / step;  // a schedule is an assignment
          const auto g = model.gradient_values();
          for (std::size_t i = 0; i < in_model; ++i) {
            const double wd = vectors || i < in_W ? decay : 0, d = decoupled ? g[i] : g[i] + wd * p[i];
            if (decoupled) p[i] *= 1 - optimizer.lr * wd;
            m[i] = 0.8 * m[i] + 0.2 * d;
            v[i] = 0.95 * v[i] + (1 - 0.95) * d * d;
            p[i] -= optimizer.lr * (m[i] / (1 - std::pow(0.8, step))) /
                    (std::sqrt(v[i] / (1 - std::pow(0.95, step))) + 1e-3);
          }
          optimizer.step(model, model.gradients());
          CHECK(close(model.values(), p));
        }
        CHECK(optimizer.state.at("b").steps == 4);
      }
  };
  check(AdamW<double>{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3}, true);
  check(Adam<double>{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3}, false);
  CHECK(AdamW<double>{}.weight_decay == 0.01);
  CHECK(Adam<double>{}.weight_decay == 0);
}

TEST_CASE("Adam: moments that somebody else holds, whole or in part, stay as they are") {
  Model model, twin;
  AdamW<double> optimizer, alone;
  for (int i = 0; i < 2; ++i) {
    optimizer.step(model, model.gradients());
    alone.step(twin, twin.gradients());
  }
  const AdamW<double> copy = optimizer;
  const Tensor<double> row = optimizer.state.at("W").v[1];
  const auto m = copy.state.at("W").m.to_vector(), v = row.to_vector();
  for (int i = 0; i < 2; ++i) {
    optimizer.step(model, model.gradients());
    alone.step(twin, twin.gradients());
  }
  CHECK(copy.state.at("W").m.to_vector() == m);
  CHECK(copy.state.at("W").steps == 2);
  CHECK(row.to_vector() == v);
  CHECK(model.values() == twin.values());
}

TEST_CASE("optimisers: large parameters are done by several threads, and a view is a parameter too") {
  Large model;
  const auto before = model.w;
  const auto scale = TorchRandom(2).randn({301, 300});
  Tape<float> tape;
  tape.watch(model.parameters());
  const auto grad = tape.backward(sum(model.w * scale));
  SGD<float>{.lr = 0.5}.step(model, grad);
  CHECK(allclose(model.w, detach(before) - scale * 0.5, 1e-6, 1e-7));
}

TEST_CASE("optimisers: where a step throws, model and optimiser are as before") {
  Model model;
  AdamW<double> optimizer;
  optimizer.step(model, model.gradients());
  const auto values = model.values();
  const auto moments = optimizer.state.at("W").m.to_vector();
  const auto W = model.W;
  const auto unwatched = [&] {
    Tape<double> tape;
    tape.watch(model.W);
    return tape.backward(model.loss(Tensor<double>{{1, 2, -1}}));
  };
  CHECK(message<GradientError>([&] { optimizer.step(model, unwatched()); }) ==
        "AdamW: there is no gradient of parameter b, because the tape did not watch it as it is now; each step "
        "puts new tensors in the parameters' place, so begin every step with a new tape and "
        "tape.watch(model.parameters()), or tape.watch({w, b}), before the forward pass"sv);
  struct WrongShape {
    Tensor<double> operator[](const Tensor<double>& x) const { return x.rank() == 2 ? x : Tensor<double>{1.0}; }
  };
  CHECK(message<ShapeError>([&] { optimizer.step(model, WrongShape{}); }) ==
        "AdamW: parameter b has shape (2,) and its gradient (1,); they must be equal"sv);
  optimizer.beta2 = 1;
  CHECK(message<ValueError>([&] { optimizer.step(model, model.gradients()); }) ==
        "AdamW: beta2 is 1; it must be 0 or more and less than 1"sv);
  optimizer.beta2 = 0.999;
  CHECK(model.values() == values);
  CHECK(model.W.id() == W.id());
  CHECK(optimizer.state.at("W").m.to_vector() == moments);
  CHECK(optimizer.state.at("W").steps == 1);

  model.b = Tensor<double>{1, 2, 3, 4};
  struct Ones {
    Tensor<double> operator[](const Tensor<double>& x) const { return ones_like(x); }
  };
  CHECK(message<ShapeError>([&] { optimizer.step(model, Ones{}); }) ==
        "AdamW: parameter b has shape (4,), and what is remembered of it (2,); use one optimiser for one "
        "model"sv);
  CHECK(model.W.id() == W.id());
  CHECK(message<ValueError>([&] { SGD<double>{.lr = -1}.step(model, Ones{}); }) ==
        "SGD: lr is -1; it must be 0 or more"sv);
  CHECK(message<ValueError>([&] { SGD<double>{.nesterov = true}.step(model, Ones{}); }) ==
        "SGD: momentum is 0; it must be more than 0 with nesterov"sv);
  CHECK(message<ValueError>([&] { SGD<double>{.lr = std::nan("")}.step(model, Ones{}); }) ==
        "SGD: lr is nan; it must be 0 or more"sv);

  Twins twins;
  CHECK(message<ValueError>([&] { SGD<double>{}.step(twins, Ones{}); }) ==
        "SGD: two parameters are called w; the model's members() must give each a name of its own"sv);
}

TEST_CASE("optimisers: a step with the gradients of an old tape says that a step has replaced the parameters") {
  Model model;
  SGD<double> sgd;
  const auto grad = model.gradients();
  sgd.step(model, grad);
  const auto after = model.values();
  CHECK(message<GradientError>([&] { sgd.step(model, grad); }) ==
        "SGD: there is no gradient of parameter W, because the tape did not watch it as it is now; each step "
        "puts "
        "new tensors in the parameters' place, so begin every step with a new tape and "
        "tape.watch(model.parameters()), or tape.watch({w, b}), before the forward pass"sv);
  CHECK(message<GradientError>([&] {
          clip_grad_norm(model, grad, 1);
        }).starts_with("clip_grad_norm: there is no gradient of parameter W"));
  CHECK(model.values() == after);
}

TEST_CASE_TEMPLATE("optimisers: parameters without a module take the steps of a module's", O, SGD<double>, Adam<double>,
                   AdamW<double>) {
  const auto made = [] {
    O optimizer{.lr = 0.1, .weight_decay = 0.01};
    if constexpr (requires { optimizer.momentum; }) optimizer.momentum = 0.5;
    return optimizer;
  };
  Model model, start;
  Tensor<double> W = start.W, b = start.b;
  std::vector<Tensor<double>> list{W, b};
  O by_name = made(), by_place = made(), by_vector = made();
  const Tensor<double> x{{1, 2, -1}, {0.5, -1, 0.25}, {2, 0, 1}};
  const auto loss = [&x](const Tensor<double>& weight, const Tensor<double>& bias) {
    const auto y = tanh(matmul(x, weight.T()) + bias);
    return sum(y * y * y + y);
  };
  for (int i = 0; i < 3; ++i) {
    const auto [grad, norm] = clip_grad_norm(model, model.gradients(), 0.5);
    by_name.step(model, grad);
    {
      Tape<double> tape;
      tape.watch({W, b});
      const auto clipped = clip_grad_norm(std::tie(W, b), tape.backward(loss(W, b)), 0.5);
      CHECK(clipped.norm == norm);
      by_place.step(std::tie(W, b), clipped);
    }
    Tape<double> tape;
    tape.watch(list);
    by_vector.step(list, clip_grad_norm(list, tape.backward(loss(list[0], list[1])), 0.5).grad);
    CHECK((equal(W, model.W) && equal(b, model.b) && equal(list[0], model.W) && equal(list[1], model.b)));
  }
  Tape<double> tape;
  const Tensor<double> before = W;
  tape.watch({W, b});
  const auto grad = tape.backward(loss(W, b));
  CHECK_THROWS_AS(by_place.step(std::tie(b, W), grad), ShapeError);  // another order
  CHECK(W.id() == before.id());
  by_place.step(W, grad);
  CHECK(message<GradientError>([&] {
          by_place.step(std::tie(b, W), grad);
        }).find("no gradient of parameter 1, because") != std::string::npos);
}

TEST_CASE_TEMPLATE("optimisers: every setting is checked for negative numbers, infinity and NaN", T, float, double) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  Point<T> model;
  const auto before = model.at;
  Tape<T> tape;
  tape.watch(model.parameters());
  const auto grad = tape.backward(sum(model.at));
  const auto refuses = [&](auto optimizer, auto set) {
    for (double value : {-1e-300, -1.0, -inf, inf, nan}) {
      auto wrong = optimizer;
      set(wrong, value);
      CAPTURE(value);
      CHECK(message<ValueError>([&] { wrong.step(model, grad); }) != "[nothing was thrown]"sv);
    }
  };
  refuses(SGD<T>{}, [](auto& o, double x) { o.lr = x; });
  refuses(SGD<T>{}, [](auto& o, double x) { o.momentum = x; });
  refuses(SGD<T>{}, [](auto& o, double x) { o.weight_decay = x; });
  const auto adams = [&](auto optimizer) {
    refuses(optimizer, [](auto& o, double x) { o.lr = x; });
    refuses(optimizer, [](auto& o, double x) { o.beta1 = x; });
    refuses(optimizer, [](auto& o, double x) { o.beta2 = x; });
    refuses(optimizer, [](auto& o, double x) { o.eps = x; });
    refuses(optimizer, [](auto& o, double x) { o.weight_decay = x; });
  };
  adams(Adam<T>{}), adams(AdamW<T>{});
  CHECK(message<ValueError>([&] { SGD<T>{.lr = inf}.step(model, grad); }) ==
        std::string("SGD: lr is inf; it must be finite as a ") + dtype_name<T>());
  if (sizeof(T) == 4)
    CHECK(message<ValueError>([&] { SGD<T>{.lr = 1e200}.step(model, grad); }) ==
          "SGD: lr is 1e+200; it must be finite as a float"sv);
  CHECK(model.at.id() == before.id());
}

TEST_CASE("clip_grad_norm: all gradients together are no longer than asked") {
  Model model;
  const auto grad = model.gradients();
  double squares = 0;
  for (double g : model.gradient_values()) squares += g * g;
  const auto clipped = clip_grad_norm(model, grad, 0.5);
  CHECK(clipped.norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-14));
  CHECK(clipped.grad.factor == doctest::Approx(0.5 / (std::sqrt(squares) + 1e-6)).epsilon(1e-14));
  CHECK(allclose(clipped[model.W], grad[model.W] * clipped.grad.factor, 1e-15, 0));
  const auto loose = clip_grad_norm(model, grad, 1000);
  CHECK(equal(loose[model.b], grad[model.b]));

  Model other = model, third = model;
  const auto [other_grad, norm] = clip_grad_norm(other, other.gradients(), 0.5);
  CHECK(norm == clipped.norm);
  SGD<double>{.lr = 1}.step(model, clipped);
  SGD<double>{.lr = 1}.step(other, other_grad);
  SGD<double>{.lr = clipped.grad.factor}.step(third, third.gradients());
  CHECK(close(model.values(), third.values()));
  CHECK(model.values() == other.values());
  CHECK(clip_grad_norm(model, model.gradients(), std::numeric_limits<double>::infinity()).grad.factor == 1);

  CHECK(message<ValueError>([&] { clip_grad_norm(model, model.gradients(), std::nan("")); }) ==
        "clip_grad_norm: max_norm nan; it must be 0 or more"sv);
  CHECK(message<ValueError>([&] { clip_grad_norm(model, model.gradients(), -1); }) ==
        "clip_grad_norm: max_norm -1; it must be 0 or more"sv);
  model.b = Tensor<double>{std::numeric_limits<double>::quiet_NaN(), 0};
  CHECK(message<ValueError>([&] { clip_grad_norm(model, model.gradients(), 1); }) ==
        "clip_grad_norm: the gradient of parameter W is not finite (its norm is nan); clipping cannot "
        "help: look for the operation that "
        "made it"sv);
}

TEST_CASE("AdamW: finds the smallest of a bowl") {
  Point<float> point;
  AdamW<float> optimizer{.lr = 0.1, .weight_decay = 0};
  for (int step = 0; step < 500; ++step) {
    Tape<float> tape;
    tape.watch(point.parameters());
    const auto from = point.at - Tensor<float>{1, 2};
    optimizer.step(point, tape.backward(sum(from * from)));
  }
  CHECK(allclose(point.at, Tensor<float>{1, 2}, 0, 1e-3));
}
