#include "tapehead/ops/loss.hpp"

#include <cmath>
#include <limits>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::has;
using testing::message;
using Index = Tensor<std::int64_t>;

TEST_CASE("cross_entropy: large logits; -inf for a class that cannot be; a masked-out target") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(cross_entropy(Tensor<double>{{0, -200}}, Index{1}).item() == 200);
  CHECK(cross_entropy(Tensor<double>{{1e4, -1e4, 0}}, Index{0}).item() == 0);
  const Tensor<double> x{{0, -inf, 0}};
  Tape<double> tape;
  tape.watch(x);
  const auto loss = cross_entropy(x, Index{0});
  CHECK(loss.item() == doctest::Approx(std::log(2.0)));
  CHECK(equal(tape.backward(loss)[x], Tensor<double>{{-0.5, 0, 0.5}}));
  CHECK(cross_entropy(x, Index{1}).item() == inf);
}

TEST_CASE(
    "cross_entropy: when every target is ignored the mean is NaN, the sum 0, and no gradient comes (row "
    "24)") {
  const Tensor<double> x{{1, 2, 3}, {3, 1, 2}};
  Tape<double> tape;
  tape.watch(x);
  const Index none{-1, -1};
  const auto mean = cross_entropy(x, none, {.ignore_index = -1});
  CHECK(std::isnan(mean.item()));
  CHECK(equal(tape.backward(mean)[x], zeros<double>({2, 3})));
  CHECK(cross_entropy(x, none, {.ignore_index = -1, .reduction = Reduction::sum}).item() == 0);
  CHECK(equal(cross_entropy(x, none, {.ignore_index = -1, .reduction = Reduction::none}), zeros<double>({2})));
  CHECK(std::isnan(cross_entropy(zeros<double>({0, 3}), zeros<std::int64_t>({0})).item()));
}

TEST_CASE("cross_entropy: an ignored row counts for nothing, be it NaN") {
  const Tensor<double> x{{1, 2, 3}, {std::nan(""), 1, 2}, {0, 0, 5}}, rest{{1, 2, 3}, {0, 0, 5}};
  const CrossEntropyOptions options{.ignore_index = 7, .label_smoothing = 0.1};
  Tape<double> tape;
  tape.watch({x, rest});
  const auto loss = cross_entropy(x, Index{0, 7, 2}, options), expected = cross_entropy(rest, Index{0, 2}, options);
  CHECK(loss.item() == expected.item());
  CHECK(equal(tape.backward(loss)[x], cat<double>({tape.backward(expected)[rest].slice(0, 0, 1), zeros<double>({1, 3}),
                                                   tape.backward(expected)[rest].slice(0, 1, 2)})));
}

TEST_CASE("cross_entropy: any number of axes in front of the classes, none included") {
  NumpyRandom rng(3);
  const auto x = rng.randn({2, 3, 4});
  const Index t{{0, 3, 1}, {2, 2, 0}};
  CHECK(cross_entropy(x, t).item() == cross_entropy(x.reshape({6, 4}), t.reshape({6})).item());
  CHECK(equal(cross_entropy(x, t, {.reduction = Reduction::none}).reshape({6}),
              cross_entropy(x.reshape({6, 4}), t.reshape({6}), {.reduction = Reduction::none})));
  CHECK(cross_entropy(x[0][0], scalar<std::int64_t>(2)).item() == doctest::Approx(-log_softmax(x[0][0], 0).at({2})));
}

TEST_CASE("cross_entropy: sums of many float losses do not stop growing") {
  const std::int64_t n = 20'000'000;  // each row's loss is log 1 + 1
  const auto x = broadcast_to(Tensor<float>{{0, 40}}, {n / 100, 2});
  const auto loss = cross_entropy(x, zeros<std::int64_t>({n / 100}), {.reduction = Reduction::sum});
  CHECK(loss.item() == 40.0f * static_cast<float>(n / 100));
}

TEST_CASE("mse_loss: shapes must be equal; reductions; nothing at all") {
  const Tensor<double> column{{1}, {2}}, row{1, 2};
  CHECK(message<ShapeError>([&] { mse_loss(column, row); }) ==
        "mse_loss: shapes (2, 1) and (2,); they must be equal: reshape one of them (broadcasting would "
        "compare every element with every other)"sv);
  CHECK(mse_loss(row, Tensor<double>{0, 4}).item() == 2.5);
  CHECK(mse_loss(row, Tensor<double>{0, 4}, Reduction::sum).item() == 5);
  CHECK(equal(mse_loss(row, Tensor<double>{0, 4}, Reduction::none), Tensor<double>{1, 4}));
  CHECK(std::isnan(mse_loss(zeros<double>({0}), zeros<double>({0})).item()));
  CHECK(mse_loss(zeros<double>({0}), zeros<double>({0}), Reduction::sum).item() == 0);
  Tape<double> tape;
  tape.watch(row);
  CHECK(equal(tape.backward(mse_loss(row, row))[row], zeros<double>({2})));
}

TEST_CASE("binary_cross_entropy_with_logits: PyTorch's losses and gradients") {
  const Tensor<double> x{{0.5, -2, 3}, {-0.25, 1, -30}}, t{{1, 0, 0.25}, {0.5, 1, 0}}, w{{2}, {0.5}}, p{3, 1, 0.5};
  CHECK(binary_cross_entropy_with_logits(x, t).item() == doctest::Approx(0.65229890903233).epsilon(1e-13));
  CHECK(binary_cross_entropy_with_logits(x, t, {.reduction = Reduction::sum}).item() ==
        doctest::Approx(3.9137934541939803).epsilon(1e-13));
  CHECK(allclose(binary_cross_entropy_with_logits(x, t, {.reduction = Reduction::none}),
                 {{0.4740769841801067, 0.1269280110429727, 2.298587351573742},
                  {0.7009394198788436, 0.31326168751822286, 9.357622968839737e-14}},  // PyTorch: 9.24e-14
                 1e-14, 0));
  Tape<double> tape;
  tape.watch({x, t});
  const auto y = binary_cross_entropy_with_logits(x, t, {.weight = w, .pos_weight = p});
  CHECK(y.item() == doctest::Approx(1.4339026760097724).epsilon(1e-13));
  const auto grad = tape.backward(y);
  CHECK(allclose(grad[x],
                 {{-0.37754066879814535, 0.03973430734070585, 0.23616745365654304},
                  {-0.05202941681429968, -0.02241178511416626, 7.798019140699416e-15}},
                 1e-13, 0));
  CHECK(allclose(grad[t],
                 {{0.14938465612007112, 0.6666666666666666, -1.008097891928957},
                  {0.15848990331314058, -0.08333333333333333, 1.249999999999996}},
                 1e-13, 0));
}

TEST_CASE_TEMPLATE("binary_cross_entropy_with_logits: large logits, other forms, nothing, and what it refuses", T,
                   float, double) {
  const Tensor<T> x{1000, -1000, 1000, -1000}, t{1, 0, 0, 1};
  CHECK(equal(binary_cross_entropy_with_logits(x, t, {.reduction = Reduction::none}), Tensor<T>{0, 0, 1000, 1000}));
  Tape<T> tape;
  tape.watch(x);
  CHECK(equal(tape.backward(binary_cross_entropy_with_logits(x, t, {.reduction = Reduction::sum}))[x],
              Tensor<T>{0, 0, 1, -1}));
  const auto z = TorchRandom(1).randn<double>({3, 4}), target = TorchRandom(2).rand<double>({3, 4});
  const auto by_softmax = stack({zeros_like(z), z}, -1);  // two classes
  const auto losses = -sum(log_softmax(by_softmax, -1) * stack({1 - target, target}, -1), -1);
  CHECK(allclose(binary_cross_entropy_with_logits(z, target), mean(losses), 1e-14, 0));
  CHECK(allclose(binary_cross_entropy_with_logits(z.T(), target.T()), mean(losses), 1e-14, 0));
  const auto checked = gradcheck(
      [](auto a, auto b, auto c) {
        return binary_cross_entropy_with_logits(a, b, {.weight = c, .pos_weight = c, .reduction = Reduction::sum});
      },
      {{"x", z}, {"target", target}, {"weight", target[0]}}, {.order = 2});
  CHECK_MESSAGE(checked.ok, checked.text());
  CHECK(std::isnan(binary_cross_entropy_with_logits(zeros<T>({0}), zeros<T>({0})).item()));
  CHECK(std::isnan(
      binary_cross_entropy_with_logits(Tensor<T>{std::numeric_limits<T>::quiet_NaN()}, ones<T>({1})).item()));
  CHECK(message<ShapeError>([&] {
          binary_cross_entropy_with_logits(x, zeros<T>({4, 1}));
        }) ==
        "binary_cross_entropy_with_logits: shapes (4,) and (4, 1); they must be equal: reshape one of them "
        "(broadcasting would compare every element with every other)"sv);
  CHECK(
      message<ShapeError>([&] {
        binary_cross_entropy_with_logits(x, t, {.weight = zeros<T>({2, 4})});
      }) ==
      "broadcast_to: shape (2, 4) does not broadcast to (4,); aligned from the right, each size must be equal, or 1 in the tensor"sv);
}

TEST_CASE("cross_entropy: what it refuses") {
  const auto x = zeros<double>({2, 3});
  CHECK(message<ShapeError>([&] {
          cross_entropy(x, Index{{0}, {1}});
        }) ==
        "cross_entropy: logits (2, 3) and targets (2, 1); the targets' shape must be the logits' without its "
        "last axis, the classes"sv);
  CHECK(message<ShapeError>([&] {
          cross_entropy(scalar(1.0), scalar<std::int64_t>(0));
        }).find("cross_entropy: logits () and targets ()") == 0);
  CHECK(message<IndexError>([&] {
          cross_entropy(x, Index{0, 3});
        }) == "cross_entropy: target 3 in row 1; it must be in 0 to 2, or the ignore_index -100"sv);
  CHECK(message<IndexError>([&] { cross_entropy(x, Index{-1, 0}); }).find("cross_entropy: target -1 in row 0") == 0);
  CHECK(message<ValueError>([&] {
          cross_entropy(x, Index{0, 0}, {.label_smoothing = 1.5});
        }) == "cross_entropy: label_smoothing 1.5; it is a probability, so it must be in [0, 1]"sv);
}

TEST_CASE("loss: a loss does not broadcast") {
  const Tensor<double> column{{1}, {2}}, row{1, 2};
  const std::string text = message<ShapeError>([&] { mse_loss(column, row); });
  CHECK((has(text, "(2, 1)") && has(text, "(2,)")));
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{2, 1}, Shape{1, 2}, Shape{0}, Shape{2, 2}})
    for (Reduction how : {Reduction::mean, Reduction::sum, Reduction::none})
      CHECK_THROWS_AS(mse_loss(zeros<double>(shape), row, how), ShapeError);
  CHECK_THROWS_AS(cross_entropy(zeros<double>({2, 3}), zeros<std::int64_t>({1})), ShapeError);
  CHECK_THROWS_AS(cross_entropy(zeros<double>({2, 3}), zeros<std::int64_t>({2, 1})), ShapeError);
}

TEST_CASE_TEMPLATE("cross_entropy: large scores keep the logarithm", T, float, double) {
  const T large = std::is_same_v<T, float> ? T(1e17) : T(1e15);
  const auto same = full<T>({1, 2}, large);
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    CHECK(sum(cross_entropy(same, Index{1}, {.reduction = reduction})).item() == doctest::Approx(std::log(2.0)));
    CHECK(sum(cross_entropy(same, Index{1}, {.label_smoothing = 0.5, .reduction = reduction})).item() ==
          doctest::Approx(std::log(2.0)));
  }
  CHECK(cross_entropy(-same, Index{0}).item() == doctest::Approx(std::log(2.0)));
  CHECK(log_softmax(same, -1).at({0, 1}) == doctest::Approx(-std::log(2.0)));
}
