#include <cmath>
#include <limits>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "values.hpp"

using namespace tapehead;
using testing::has;
using testing::message;

namespace {
const double NaN = std::numeric_limits<double>::quiet_NaN();
Tensor<double> counting(const Shape& shape) {
  return arange<double>(static_cast<double>(shape.numel())).reshape(shape);
}
}  // namespace

TEST_CASE("arithmetic: gradients of what was broadcast are summed to its shape") {
  const auto ones_gradient = [](const Shape& a, const Shape& b) {
    const auto x = zeros<double>(a), y = zeros<double>(b);
    Tape<double> tape;
    tape.watch({x, y});
    const auto grad = tape.backward(sum(x + y));
    return std::pair(grad[x], grad[y]);
  };
  CHECK(equal(ones_gradient({3, 4}, {1, 4}).second, full<double>({1, 4}, 3)));
  CHECK(ones_gradient({2, 3}, {}).second.item() == 6);
  CHECK(equal(ones_gradient({0, 3}, {3}).second, zeros<double>({3})));
  const std::vector<Shape> shapes{{},     {1},    {3},       {1, 1},    {1, 3},    {4, 1},   {4, 3},
                                  {0, 1}, {0, 3}, {2, 1, 3}, {2, 4, 1}, {2, 4, 3}, {1, 1, 1}};
  int checked = 0;
  for (const Shape& a : shapes)
    for (const Shape& b : shapes) {
      Shape out;
      try {
        out = broadcast_shapes("", a, b);
      } catch (const ShapeError&) {
        continue;
      }
      const auto count = [&](const Shape& s) { return s.numel() == 0 ? 0.0 : double(out.numel()) / double(s.numel()); };
      const auto [x, y] = ones_gradient(a, b);
      CHECK_MESSAGE((equal(x, full<double>(a, count(a))) && equal(y, full<double>(b, count(b)))),
                    a.str() << " and " << b.str());
      ++checked;
    }
  CHECK(checked > 80);
}

TEST_CASE("arithmetic: NumPy's broadcasting, and its errors") {
  CHECK((counting({3, 1}) + counting({1, 4})).shape() == Shape{3, 4});
  CHECK((counting({2, 1, 3}) * counting({4, 1})).shape() == Shape{2, 4, 3});
  CHECK((1 - Tensor<double>{1, 2}).to_vector() == std::vector<double>{0, -1});
  CHECK((Tensor<float>{1, 2} / 4).to_vector() == std::vector<float>{0.25f, 0.5f});
  CHECK((6 / Tensor<double>{2, 3}).to_vector() == std::vector<double>{3, 2});
  CHECK((Tensor<std::int64_t>{1, 2} + 3).to_vector() == std::vector<std::int64_t>{4, 5});
  CHECK((Tensor<std::int64_t>{std::numeric_limits<std::int64_t>::max()} + 1).item() ==
        std::numeric_limits<std::int64_t>::min());
  CHECK((Tensor<double>{1, 2} > 1).to_vector() == std::vector<bool>{false, true});
  CHECK(message<ShapeError>([] {
          counting({2, 3}) + counting({2, 4});
        }) ==
        "add: shapes (2, 3) and (2, 4) do not broadcast: sizes 3 and 4 meet on axis -1; they must be equal, "
        "or one of them 1"sv);
  CHECK(message<ShapeError>([] {
          zeros<double>({0, 3}) + counting({2, 3});
        }).find("sizes 0 and 2 meet on axis -2") != std::string::npos);
  CHECK(maximum(Tensor<double>{1, NaN}, Tensor<double>{NaN, 1}).at({0}) != 1);
  CHECK(std::isnan(maximum(Tensor<double>{1, NaN}, Tensor<double>{NaN, 1}).at({1})));
}

TEST_CASE("arithmetic: large tensors take the same values on every path (threads, views, broadcasts)") {
  const std::int64_t n = 300'001;
  const Tensor<double> x = arange<double>(static_cast<double>(n));
  CHECK((x + x).at({n - 1}) == 2.0 * static_cast<double>(n - 1));
  CHECK(sum(x).item() == static_cast<double>(n) * static_cast<double>(n - 1) / 2);
  const Tensor<double> grid = arange<double>(700 * 501).reshape({700, 501});
  CHECK(equal(grid.T() + grid.T(), contiguous(grid.T()) * 2));
  CHECK(equal(sum(grid, 0), sum(grid.T(), 1)));
  CHECK(equal(sum(grid, 1), sum(contiguous(grid.T()), 0)));
  CHECK(equal(flip(grid, 1) + grid, flip(grid + flip(grid, 1), 1)));
}

TEST_CASE("conversion: to<>() says what it would lose") {
  CHECK(to<float>(Tensor<double>{0.1}).item() == 0.1f);
  CHECK(to<double>(Tensor<bool>{true, false}).to_vector() == std::vector<double>{1, 0});
  CHECK(to<std::int64_t>(Tensor<double>{-2.9}).item() == -2);
  CHECK(message<ValueError>([] { to<std::int64_t>(Tensor<double>{NaN}); }) ==
        "to<int64>: nan does not fit a 64-bit integer"sv);
  Tensor<double> x{1, 2};
  Tape<double> tape;
  tape.watch(x);
  CHECK(message<GradientError>([&] { to<float>(x * 2); }).find("its gradient would be lost") != std::string::npos);
  CHECK(to<float>(detach(x * 2)).at({1}) == 4);
}

TEST_CASE_TEMPLATE("allclose: infinities are close only to themselves, NaN to nothing unless asked", T, float, double) {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const auto close = [](T a, T b, bool equal_nan = false) {
    return allclose(scalar(a), scalar(b), 1e-5, 1e-8, equal_nan);
  };
  CHECK_FALSE(close(1, inf));
  CHECK_FALSE(close(inf, 1));
  CHECK_FALSE(close(inf, -inf));
  CHECK((close(inf, inf) && close(-inf, -inf) && close(1, T(1.000001))));
  CHECK_FALSE(close(nan, nan));
  CHECK(close(nan, nan, true));
  CHECK_FALSE(close(nan, 1, true));
}

TEST_CASE("pow: where 0 is raised to 0 the gradients are 0, for a tensor exponent as for a number") {
  const Tensor<double> zero = scalar(0.0), base{0, 0, 2}, exponent{0, 2, 3};
  const auto slope = [](auto f, const Tensor<double>& x) { return testing::gradient(f, x); };
  CHECK(slope([](const auto& a) { return pow(a, scalar(0.0)); }, zero).item() == 0);
  CHECK(slope([](const auto& a) { return pow(a, 0.0); }, zero).item() == 0);
  CHECK(slope([](const auto& b) { return pow(scalar(0.0), b); }, zero).item() == 0);
  CHECK(equal(slope([&](const auto& a) { return sum(pow(a, exponent)); }, base), Tensor<double>{0, 0, 12}));
  const auto into_b = slope([&](const auto& b) { return sum(pow(base, b)); }, exponent);
  CHECK(allclose(into_b, Tensor<double>{0, 0, 8 * std::log(2.0)}));
  // With the base not 0 the exponent 0 is an ordinary point: d/da and d/db of b aᵇ⁻¹ are as the formula gives.
  const auto slope_in_a = [](const Tensor<double>& b) {
    const auto a = scalar(2.0);
    Tape<double> tape;
    tape.watch(a);
    return tape.backward(pow(a, b))[a];
  };
  CHECK(slope(slope_in_a, zero).item() == doctest::Approx(0.5));
}

TEST_CASE("numbers stand on either side of a tensor, comparisons too") {
  const Tensor<double> x{-1, 0, 2};
  CHECK((equal(1 + x, x + 1) && equal(1 - x, -(x - 1)) && equal(2 * x, x * 2) && equal(1 / (x + 3), pow(x + 3, -1))));
  CHECK((equal(maximum(x, 1), Tensor<double>{1, 1, 2}) && equal(minimum(0.5, x), Tensor<double>{-1, 0, 0.5})));
  CHECK(equal(pow(2.0, x), Tensor<double>{0.5, 1, 4}));
  CHECK((equal(x == 0, Tensor<bool>{false, true, false}) && equal(x != 0, ~(x == 0)) && equal(0 < x, x > 0) &&
         equal(0 >= x, x <= 0)));
  CHECK(equal(where(x > 0, x, 0), relu(x)));
  CHECK(equal(where(x > 0, 0, x), minimum(x, 0)));
  const Tensor<std::int64_t> ids{3, 1, 3};
  CHECK((equal(ids == 3, Tensor<bool>{true, false, true}) && sum(ids == 3).item() == 2));
  CHECK(mean(ids == Tensor<std::int64_t>{3, 3, 3}).item() == doctest::Approx(2.0 / 3));
  for (const auto& y : {x, x * 0.5}) {
    CHECK((equal(eq(y, 0), y == 0) && equal(ne(0, y), y != 0) && equal(lt(y, 1), y < 1) && equal(lt(1, y), y > 1)));
    CHECK((equal(le(y, 1), y <= 1) && equal(le(1, y), 1 <= y) && equal(gt(y, 1), y > 1) && equal(gt(1, y), y < 1)));
    CHECK((equal(ge(y, 1), y >= 1) && equal(ge(1, y), 1 >= y)));
  }
  CHECK((equal(eq(ids, 3), ids == 3) && equal(eq(ids == 3, true), ids == 3)));
}

TEST_CASE_TEMPLATE("arithmetic: w -= … gives w a new tensor, and whatever holds the old one keeps it", T, float,
                   double) {
  Tensor<T> w{2, 3};
  const Tensor<T> copy = w, view = w.slice(0, 1, 2), first{2, 3};
  Tape<T> tape;
  tape.watch(w);
  const auto loss = sum(w * w);  // the record saves w
  const auto before = tape.backward(loss);
  w -= 0.5 * before[w];
  CHECK((equal(w, zeros<T>({2})) && equal(copy, first) && view.item() == 3));
  const auto after = tape.backward(loss);  // through the w that was saved
  CHECK((equal(before[copy], first * 2) && equal(after[copy], first * 2)));
  CHECK(has(message<GradientError>([&] { (void)after[w]; }), "a step or w -= … puts a new tensor in its place"));

  w += 1, w *= 6, w /= 4, w -= T(0.5);
  CHECK(equal(w, ones<T>({2})));
  w += first, w *= first, w /= Tensor<T>{3}, w -= scalar<T>(1);
  CHECK(equal(w, Tensor<T>{1, 3}));
  Tensor<std::int64_t> n{1, 2};
  n += n, n *= 3, n -= 1;
  CHECK(equal(n, Tensor<std::int64_t>{5, 11}));
  CHECK(message<ShapeError>([&] {
          w -= ones<T>({3, 1});
        }) == "-=: shape (2,) would become (3, 2); sum or reshape the right side to w's shape, or write w = w - …"sv);
  CHECK(equal(w, Tensor<T>{1, 3}));
}

TEST_CASE("arithmetic: w -= … with the gradient as torch and micrograd do by hand") {
  Tensor<double> w{1.0, -2.0};
  for (int step = 0; step < 100; ++step) {
    Tape<double> tape;
    tape.watch(w);
    const auto grad = tape.backward(sum(pow(w - 3, 2)));
    w -= 0.1 * grad[w];
  }
  CHECK(allclose(w, Tensor<double>{3, 3}, 0, 1e-8));
}
