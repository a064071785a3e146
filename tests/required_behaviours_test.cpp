// What others got wrong, rows 3 to 29 of required-behaviours.md, where they concern the engine: each row's
// own input and answer, then a sweep of its kind. Rows 30 to 53 are in required_behaviours_autograd_test.cpp;
// those on attention, caches, files and the build are tested where these are.
#include <cmath>
#include <cstring>
#include <limits>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

template <class T>
constexpr T inf = std::numeric_limits<T>::infinity();
const double nan_value = std::numeric_limits<double>::quiet_NaN();

template <class T, class F>
Tensor<T> gradient(const F& f, const Tensor<T>& x) {
  Tape<T> tape;
  tape.watch(x);
  return tape.backward(f(x))[x];
}
template <class T>
bool all_nan(const Tensor<T>& x) {
  for (T v : x.to_vector())
    if (!std::isnan(v)) return false;
  return true;
}
template <class T>
bool same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  const auto u = a.to_vector(), v = b.to_vector();
  return a.shape() == b.shape() && (u.empty() || std::memcmp(u.data(), v.data(), u.size() * sizeof(T)) == 0);
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE_TEMPLATE("row 3: infinities in softmax and logsumexp, whatever the row's length", T, float,
                   double) {
  const auto lse = [](const Tensor<T>& x) { return logsumexp(x, -1); };
  CHECK(lse({-inf<T>, -inf<T>}).item() == -inf<T>);
  CHECK(lse({inf<T>, 0}).item() == inf<T>);
  CHECK(lse({1000, 1000}).item() == doctest::Approx(1000.6931472));
  CHECK(equal(softmax(Tensor<T>{-inf<T>, 0}, -1), Tensor<T>{0, 1}));
  CHECK(equal(gradient(lse, Tensor<T>{-inf<T>, 0}), Tensor<T>{0, 1}));
  for (std::int64_t n = 1; n <= 300; ++n) {
    CAPTURE(n);
    const auto nothing = full<T>({n}, -inf<T>);
    CHECK(all_nan(softmax(nothing, -1)));
    CHECK(all_nan(softmax(nothing.reshape({n, 1}), 0)));
    CHECK(equal(softmax(nothing, -1, EmptyRows::zero), zeros<T>({n})));
    CHECK(lse(nothing).item() == -inf<T>);
    CHECK(equal(gradient(lse, nothing), zeros<T>({n})));
    const auto one = cat(std::vector{nothing, Tensor<T>{T(3)}});
    CHECK(softmax(one, -1).at({n}) == 1);
    CHECK(lse(one).item() == 3);
    CHECK(lse(cat(std::vector{one, Tensor<T>{inf<T>}})).item() == inf<T>);
    CHECK(std::isnan(lse(cat(std::vector{one, Tensor<T>{std::numeric_limits<T>::quiet_NaN()}})).item()));
  }
}

TEST_CASE_TEMPLATE("row 12: views are read as views, at every size", T, float, double) {
  const Tensor<T> V{{1, 10}, {2, 20}};
  CHECK(equal(matmul(softmax(zeros<T>({2, 1, 2}), -1), V.T().reshape({2, 2, 1})).reshape({2}),
              Tensor<T>{T(1.5), 15}));
  NumpyRandom rng(1);
  for (std::int64_t n : {1, 2, 3, 15, 16, 17, 31, 33, 64, 70, 257}) {
    CAPTURE(n);
    const auto view = to<T>(rng.randn({n, 3, 5})).permute({2, 0, 1});  // (5, n, 3)
    const auto copy = contiguous(view), sliced = slice(view, 1, n / 3, n, 2);
    const auto pair = [&](auto f) {
      return same_bits(f(view), f(copy)) && same_bits(f(sliced), f(contiguous(sliced)));
    };
    for (int axis : {0, 1, 2}) {
      CHECK(pair([axis](const auto& x) { return sum(x, axis); }));
      CHECK(pair([axis](const auto& x) { return mean(x, axis, true); }));
      CHECK(pair([axis](const auto& x) { return var(x, axis); }));
      CHECK(pair([axis](const auto& x) { return norm(x, axis); }));
      CHECK(pair([axis](const auto& x) { return softmax(x, axis); }));
      CHECK(pair([axis](const auto& x) { return logsumexp(x, axis); }));
      CHECK(pair([axis](const auto& x) { return cumsum(x, axis); }));
    }
    CHECK(pair([](const auto& x) { return sum(x); }));
    CHECK(pair([](const auto& x) { return sum(x, {0, 2}); }));
    CHECK(pair([](const auto& x) { return matmul(x, mT(x)); }));
    CHECK(pair([](const auto& x) { return matmul(mT(x), x); }));
    CHECK(pair([](const auto& x) { return exp(x) * x; }));
    CHECK(pair([](const auto& x) { return layer_norm(x); }));
  }
}

TEST_CASE_TEMPLATE("row 13: reductions over nothing, and products over nothing", T, float, double) {
  CHECK(equal(matmul(softmax(zeros<T>({2, 0}), -1), zeros<T>({0, 3})), zeros<T>({2, 3})));
  CHECK(matmul(zeros<T>({0, 4}), zeros<T>({4, 3})).shape() == Shape{0, 3});
  const auto x = zeros<T>({2, 0});
  CHECK(sum(x).item() == 0);
  CHECK(equal(sum(x, 1), zeros<T>({2})));
  CHECK(all_nan(mean(x, 1)));
  CHECK(max(x, 0).shape() == Shape{0});
  CHECK(has(message<ShapeError>([&] { max(x, 1); }), "max: shape (2, 0) has nothing along the reduced axes"));
  CHECK(has(message<ShapeError>([&] { max(x); }), "max: shape (2, 0)"));
  for (const Shape& shape : {Shape{0}, Shape{2, 0}, Shape{0, 3}, Shape{2, 0, 3}}) {
    const auto e = zeros<T>(shape);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      CAPTURE(shape.str());
      const bool nothing = shape[axis] == 0 && shape.without(axis).numel() > 0;
      CHECK(sum(e, axis).shape() == shape.without(axis));
      CHECK(sum(e, axis, true).shape() == shape.replaced(axis, 1));
      CHECK(equal(sum(e, axis), zeros<T>(shape.without(axis))));
      CHECK(all_nan(mean(e, axis)));
      CHECK(equal(norm(e, axis), zeros<T>(shape.without(axis))));
      if (nothing)
        CHECK_THROWS_AS(min(e, axis), ShapeError);
      else
        CHECK(min(e, axis).shape() == shape.without(axis));
      CHECK(softmax(e, axis).shape() == shape);
      CHECK(cumsum(e, axis).shape() == shape);
      CHECK(gradient([axis](const auto& v) { return sum(sum(v, axis)); }, e).shape() == shape);
    }
    CHECK(std::isnan(mean(e).item()));
    CHECK(std::isnan(var(e).item()));
  }
}

TEST_CASE("row 18: the where trap: two wheres are safe, one is not") {
  const Tensor<double> x{-1, -4, 9};
  const auto two = [](const auto& v) { return sum(where(v > 0, sqrt(where(v > 0, v, ones_like(v))), v)); };
  CHECK(allclose(gradient(two, x), Tensor<double>{1, 1, 1.0 / 6}));
  const auto one = gradient([](const auto& v) { return sum(where(v > 0, sqrt(v), v)); }, x);
  CHECK((std::isnan(one.at({0})) && std::isnan(one.at({1})) && one.at({2}) == doctest::Approx(1.0 / 6)));
  const Tensor<float> a{100};
  CHECK(gradient([](const auto& v) { return where(v <= 0, exp(where(v <= 0, v, zeros_like(v))), v + 1); }, a)
            .item() == 1);
  CHECK(std::isnan(gradient([](const auto& v) { return where(v <= 0, exp(v), v + 1); }, a).item()));
  // What the library itself masks is selected away, forward and backward.
  const Tensor<double> bad{nan_value, inf<double>, 2};
  const Tensor<bool> hide{true, true, false};
  CHECK(equal(gradient([&](const auto& v) { return sum(masked_fill(v, hide, 0)); }, bad),
              Tensor<double>{0, 0, 1}));
  CHECK(equal(gradient([&](const auto& v) { return sum(where(hide, zeros_like(v), v)); }, bad),
              Tensor<double>{0, 0, 1}));
  CHECK(equal(gradient([&](const auto& v) { return sum(dropout(v, 0.5, ~hide)); }, bad),
              Tensor<double>{0, 0, 2}));
  CHECK(equal(tril(Tensor<double>{{1, nan_value}, {2, 3}}), Tensor<double>{{1, 0}, {2, 3}}));
}

TEST_CASE_TEMPLATE("row 24: log_softmax stays finite where softmax underflows", T, float, double) {
  CHECK(equal(log_softmax(Tensor<T>{0, -200}, -1), Tensor<T>{0, -200}));
  CHECK(std::isinf(log(softmax(Tensor<T>{0, -1000}, -1)).at({1})));
  CHECK(std::isnan(cross_entropy(zeros<T>({2, 3}), full<std::int64_t>({2}, -100)).item()));
  for (int depth = 2; depth < 38; ++depth) {
    const T low = -std::pow(T(10), T(depth));
    CHECK(log_softmax(Tensor<T>{low, 0, low / 2}, 0).at({0}) == doctest::Approx(low));
    CHECK(cross_entropy(Tensor<T>{{0, low}}, Tensor<std::int64_t>{1}).item() == doctest::Approx(-low));
  }
}

TEST_CASE_TEMPLATE("row 25: norms, deviations and normalisation at 0", T, float, double) {
  CHECK(equal(gradient([](const auto& x) { return norm(x); }, zeros<T>({2})), zeros<T>({2})));
  CHECK(equal(gradient([](const auto& x) { return std_dev(x); }, ones<T>({3})), zeros<T>({3})));
  const auto slope = gradient(
      [](const auto& x) {
        return sum(layer_norm(x) * Tensor<T>{1, 0, 0});
      },
      full<T>({3}, 3));
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

TEST_CASE_TEMPLATE("row 26: winners of a maximum share its gradient", T, float, double) {
  CHECK(equal(gradient([](const auto& x) { return max(x); }, Tensor<T>{2, 2, 1}),
              Tensor<T>{T(0.5), T(0.5), 0}));
  NumpyRandom rng(2);
  for (int round = 0; round < 50; ++round) {
    const auto x = to<T>(rng.randint(0, 4, {3, 4, 2}));
    for (int axis : {0, 1, 2})
      for (bool largest : {true, false}) {
        const auto f = [&](const auto& v) { return largest ? max(v, axis, true) : min(v, axis, true); };
        const auto won = where(eq(x, f(x)), ones_like(x), zeros_like(x));
        CHECK(equal(gradient([&](const auto& v) { return sum(f(v)); }, x), won / sum(won, axis, true)));
      }
  }
  const Tensor<T> a{1, 2, 3}, b{3, 2, 1};
  CHECK(equal(gradient([&](const auto& v) { return sum(maximum(v, b)); }, a), Tensor<T>{0, T(0.5), 1}));
  CHECK(equal(gradient([&](const auto& v) { return sum(minimum(v, b)); }, a), Tensor<T>{1, T(0.5), 0}));
  CHECK(equal(gradient([](const auto& v) { return sum(maximum(v, v)); }, a), ones<T>({3})));
}

TEST_CASE("row 27: variances of float at a large mean") {
  const Tensor<float> x{40000, 40001, 40002, 40003};
  CHECK(allclose(layer_norm(x), Tensor<float>{-1.3416355f, -0.4472118f, 0.4472118f, 1.3416355f}, 0, 1e-6));
  CHECK(var(x).item() == doctest::Approx(5.0 / 3));
  for (float mean : {0.0f, -1e3f, 4e4f, 1e6f}) {
    const auto shifted = Tensor<float>{{0, 1, 2, 3}, {3, 3, 3, 4}, {-8, 0, 8, 1}} + mean;
    const auto exact = to<double>(shifted);
    for (int axis : {0, 1}) {
      CHECK(allclose(to<double>(var(shifted, axis)), var(exact, axis), 1e-6, 1e-6));
      CHECK(allclose(to<double>(std_dev(shifted, axis)), std_dev(exact, axis), 1e-6, 1e-6));
    }
    CHECK(allclose(to<double>(layer_norm(shifted)), layer_norm(exact), 1e-6, 1e-6));
  }
}

TEST_CASE("row 28: sums of float do not stop growing at 2^24") {
  CHECK(sum(Tensor<float>{16777216, 1, 1, 1, 1}).item() == 16777220);
  const auto many = broadcast_to(ones<float>({1}), {20'000'000});
  CHECK(mean(many).item() == 1);
  CHECK(sum(many).item() == 20'000'000);
  const auto columns = broadcast_to(ones<float>({1, 1}), {20'000'000, 1});
  CHECK(sum(columns, 0).item() == 20'000'000);
  CHECK(norm(many).item() == doctest::Approx(4472.13595));
  CHECK(cumsum(Tensor<float>{16777216, 1, 1, 1, 1}, 0).at({4}) == 16777220);
  CHECK(logsumexp(broadcast_to(zeros<float>({1}), {20'000'000}), 0).item() == doctest::Approx(std::log(2e7)));
  Tape<float> tape;  // and as a gradient: one element used twenty million times
  const auto one = ones<float>({1});
  tape.watch(one);
  CHECK(tape.backward(sum(broadcast_to(one, {20'000'000})))[one].item() == 20'000'000);
}

TEST_CASE_TEMPLATE("row 29: NaN goes through relu, and through whatever chooses", T, float, double) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const auto y = relu(Tensor<T>{nan, -1, 0, 2});
  CHECK(std::isnan(y.at({0})));
  CHECK(equal(y.slice(0, 1, 4), Tensor<T>{0, 0, 2}));
  CHECK(equal(gradient([](const auto& x) { return sum(relu(x)); }, Tensor<T>{-1, 0, 2}), Tensor<T>{0, 0, 1}));
  const Tensor<T> n{nan}, one{1};
  for (const auto& x : {maximum(n, one), maximum(one, n), minimum(n, one), minimum(one, n), clamp(n, 0, 1),
                        abs(n), gelu(n), silu(n)})
    CHECK(std::isnan(x.item()));
  for (std::int64_t size = 1; size < 70; ++size)
    for (std::int64_t at : {std::int64_t{0}, size / 2, size - 1}) {
      Buffer<T> filled({size});
      for (std::int64_t i = 0; i < size; ++i) filled[i] = i == at ? nan : T(i);
      const Tensor<T> x(std::move(filled));
      CHECK((std::isnan(max(x).item()) && std::isnan(min(x).item()) && argmax(x).item() == at));
      CHECK((std::isnan(max(x.reshape({size, 1}), 0).item()) && std::isnan(sum(x).item())));
    }
}
