#include "tapehead/ops/norm.hpp"

#include <cmath>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "values.hpp"

using namespace tapehead;
using testing::all_nan;
using testing::gradient;
using testing::message;

namespace {

// The definitions, from the smallest operations.
template <class T>
Tensor<T> composed_layer_norm(const Tensor<T>& x, const Tensor<T>& w, const Tensor<T>& b, double eps) {
  const auto c = x - mean(x, -1, true);
  return c / sqrt(mean(c * c, -1, true) + eps) * w + b;
}
template <class T> Tensor<T> composed_rms_norm(const Tensor<T>& x, const Tensor<T>& w, double eps) {
  return x / sqrt(mean(x * x, -1, true) + eps) * w;
}

}  // namespace

TEST_CASE("norm: values and both derivatives are the definition's") {
  NumpyRandom rng(11);
  for (std::int64_t n : {1, 2, 5, 16, 17, 37}) {
    CAPTURE(n);
    const auto x = rng.randn({3, n}), w = rng.randn({n}), b = rng.randn({n}), dy = rng.randn({3, n}),
               v = rng.randn({3, n});
    // Gradients, and the gradients of (gradient · v): what nested tapes give for both forms.
    const auto derivatives = [&](auto f) {
      Tape<double> outer;
      outer.watch({x, w, b, dy});
      Tape<double> inner;
      inner.watch({x, w, b});
      const auto y = f();
      const auto grad = inner.backward(y, dy);
      const auto second = outer.backward(sum(grad[x] * v) + sum(grad[w]) + sum(grad[b]));
      return std::vector{y, grad[x], grad[w], grad[b], second[x], second[w], second[b], second[dy]};
    };
    const auto close = [](const auto& a, const auto& e) {
      REQUIRE(a.size() == e.size());
      for (std::size_t i = 0; i < a.size(); ++i) CHECK_MESSAGE(allclose(a[i], e[i], 1e-11, 1e-11), "result " << i);
    };
    close(derivatives([&] { return layer_norm(x, w, b, 1e-3); }),
          derivatives([&] { return composed_layer_norm(x, w, b, 1e-3); }));
    close(derivatives([&] { return rms_norm(x, w, 1e-3) + b; }),
          derivatives([&] { return composed_rms_norm(x, w, 1e-3) + b; }));
    close(derivatives([&] { return layer_norm(x) * w + b; }), derivatives([&] { return layer_norm(x, w, b); }));
    close(derivatives([&] { return rms_norm(x) * w + b; }), derivatives([&] { return rms_norm(x, w) + b; }));
  }
}

TEST_CASE("norm: third derivatives, by three tapes") {
  const Tensor<double> x{{0.3, -1.2, 0.7, 2.0}};
  const auto second = [](bool centred) {
    return [centred](auto u) {
      const auto f = [centred](const auto& v) {
        return sum((centred ? layer_norm(v) : rms_norm(v)) * Tensor<double>{1, 2, -1, 3});
      };
      return hessian(f, u);
    };
  };
  CHECK(gradcheck(second(true), {x}, {.tolerance = 1e-5}));
  CHECK(gradcheck(second(false), {x}, {.tolerance = 1e-5}));
}

TEST_CASE("norm: a large mean costs no digits in float") {
  const Tensor<float> x{40000, 40001, 40002, 40003};
  CHECK(allclose(layer_norm(x), Tensor<float>{-1.3416355f, -0.4472118f, 0.4472118f, 1.3416355f}, 0, 1e-6));
  // The gradient too: the same as of the centred row, which float holds exactly.
  const Tensor<float> centred{-1.5f, -0.5f, 0.5f, 1.5f}, dy{1, 0, 0, 2};
  Tape<float> tape;
  tape.watch({x, centred});
  CHECK(allclose(tape.backward(layer_norm(x), dy)[x], tape.backward(layer_norm(centred), dy)[centred], 0, 1e-6));
}

TEST_CASE("norm: a row of equal elements") {
  const Tensor<double> x{3, 3, 3};
  Tape<double> tape;
  tape.watch(x);
  const auto y = layer_norm(x);
  CHECK(equal(y, zeros<double>({3})));
  CHECK(allclose(tape.backward(y, {1, 0, 0})[x],
                 Tensor<double>{210.8185106778920, -105.4092553389460, -105.4092553389460}, 1e-12));
  CHECK(equal(rms_norm(zeros<double>({3})), zeros<double>({3})));
  CHECK(equal(layer_norm(Tensor<double>{{5}, {7}}), zeros<double>({2, 1})));
}

TEST_CASE("norm: NaN and infinity stay in their row; empty shapes; views as weights") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor<double> x{{1, 2}, {std::nan(""), 1}, {inf, 1}, {3, 4}};
  const auto y = layer_norm(x), r = rms_norm(x);
  for (std::int64_t i : {1, 2}) CHECK((std::isnan(y.at({i, 0})) && std::isnan(r.at({i, 0}))));
  for (std::int64_t i : {0, 3}) CHECK((std::isfinite(y.at({i, 0})) && std::isfinite(r.at({i, 1}))));
  CHECK(layer_norm(zeros<float>({0, 3}), ones<float>({3})).shape() == Shape{0, 3});
  CHECK(layer_norm(zeros<float>({2, 0})).shape() == Shape{2, 0});
  const Tensor<double> table{{1, 9}, {2, 9}, {3, 9}};
  const auto a = Tensor<double>{{1, 4, 2}, {0, 1, 7}};
  CHECK(equal(layer_norm(a, table.T()[0], table.T()[1]),
              layer_norm(a, Tensor<double>{1, 2, 3}, Tensor<double>{9, 9, 9})));
}

TEST_CASE("norm: what it refuses") {
  const auto x = zeros<double>({2, 3});
  CHECK(message<ShapeError>([&] { layer_norm(scalar(1.0)); }) ==
        "layer_norm: a zero-dimensional tensor has no last axis to normalise along"sv);
  CHECK(message<ShapeError>([&] { layer_norm(x, ones<double>({2})); }) ==
        "layer_norm: a weight of shape (2,) for an input of shape (2, 3); it must be (3,)"sv);
  CHECK(message<ShapeError>([&] { layer_norm(x, {}, ones<double>({1})); }) ==
        "layer_norm: a bias of shape (1,) for an input of shape (2, 3); it must be (3,)"sv);
  CHECK(message<ShapeError>([&] { rms_norm(x, Tensor<double>()); }) ==
        "rms_norm: a weight of shape (0,) for an input of shape (2, 3); it must be (3,)"sv);
  CHECK(message<ValueError>([&] { rms_norm(x, {}, -1); }) == "rms_norm: eps -1; it must not be negative"sv);
}

TEST_CASE_TEMPLATE("norm: norms, deviations and normalisation at 0", T, float, double) {
  CHECK(equal(gradient([](const auto& x) { return norm(x); }, zeros<T>({2})), zeros<T>({2})));
  CHECK(equal(gradient([](const auto& x) { return std_dev(x); }, ones<T>({3})), zeros<T>({3})));
  const auto slope = gradient([](const auto& x) { return sum(layer_norm(x) * Tensor<T>{1, 0, 0}); }, full<T>({3}, 3));
  CHECK(allclose(slope, Tensor<T>{T(210.8185107), T(-105.4092553), T(-105.4092553)}, 1e-6));
  CHECK(all_nan(gradient([](const auto& x) { return sqrt(sum(x * x)); }, zeros<T>({2}))));
  for (std::int64_t n : {1, 2, 5, 33}) {
    const auto some = cat(std::vector{zeros<T>({1, n}), ones<T>({1, n})});  // one row at 0, one not
    const auto by_row = [&](auto f) { return gradient([&](const auto& x) { return sum(f(x)); }, some); };
    CHECK(equal(by_row([](const auto& x) { return norm(x, 1); })[0], zeros<T>({n})));
    CHECK(allclose(by_row([](const auto& x) { return norm(x, -1, true); })[1],
                   full<T>({n}, T(1 / std::sqrt(double(n)))), 1e-6));
    CHECK(equal(by_row([](const auto& x) { return std_dev(x, 1, 0); }), zeros<T>({2, n})));
    CHECK(equal(by_row([](const auto& x) { return rms_norm(x, {}, 1.0); })[0], ones<T>({n})));
    CHECK(equal(gradient([](const auto& x) { return var(x, Axes(), 0); }, ones<T>({n})), zeros<T>({n})));
  }
}
