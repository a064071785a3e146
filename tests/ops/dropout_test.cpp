#include "tapehead/ops/dropout.hpp"

#include <cmath>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

TEST_CASE("dropout: what is kept grows by 1 / (1 - p), what is dropped goes nowhere, be it NaN") {
  const double nan = std::nan("");
  const Tensor<double> x{1, nan, 3, nan};
  const Tensor<bool> keep{true, false, true, false};
  Tape<double> tape;
  tape.watch(x);
  const auto y = dropout(x, 0.75, keep);
  CHECK(equal(y, Tensor<double>{4, 0, 12, 0}));
  CHECK(equal(tape.backward(y, {1, nan, 1, nan})[x], Tensor<double>{4, 0, 4, 0}));
  CHECK(equal(dropout(x, 1, Tensor<bool>{true, true, true, true}), zeros<double>({4})));
  CHECK(equal(dropout(ones<double>({2, 2}), 0.5, Tensor<bool>{true, false}), Tensor<double>{{2, 0}, {2, 0}}));
  CHECK(dropout(zeros<float>({0, 3}), 0.5, zeros<bool>({0, 3})).shape() == Shape{0, 3});
}

TEST_CASE("dropout: drawn masks") {
  TorchRandom rng(0), again(0), untouched(0);
  const auto x = ones<float>({1000, 100});
  const auto y = dropout(x, 0.3, rng);
  CHECK(equal(y, dropout(x, 0.3, again.bernoulli(0.7, x.shape()))));
  double kept = 0;
  for (float v : y.to_vector()) kept += v != 0;
  CHECK(kept / 1e5 == doctest::Approx(0.7).epsilon(0.01));  // 6 standard deviations
  CHECK(equal(dropout(x, 1, rng), zeros<float>({1000, 100})));
  const auto same = dropout(x, 0, untouched);  // draws nothing, records nothing
  CHECK(same.id() == x.id());
  CHECK(untouched.next_uint64() == TorchRandom(0).next_uint64());
}

TEST_CASE("dropout: what it refuses") {
  TorchRandom rng(0);
  const auto x = ones<double>({2, 3});
  CHECK(message<ValueError>([&] { dropout(x, -0.1, rng); }) ==
        "dropout: p -0.1; it is a probability, so it must be in [0, 1]"sv);
  CHECK(message<ValueError>([&] { dropout(x, 1.1, rng); }) ==
        "dropout: p 1.1; it is a probability, so it must be in [0, 1]"sv);
  CHECK(message<ValueError>([&] {
          dropout(x, std::nan(""), ones<bool>({2, 3}));
        }) == "dropout: p nan; it is a probability, so it must be in [0, 1]"sv);
  CHECK(message<ShapeError>([&] { dropout(x, 0.5, ones<bool>({2})); }) ==
        "dropout: a mask of shape (2,) does not broadcast to the tensor's shape (2, 3)"sv);
}
