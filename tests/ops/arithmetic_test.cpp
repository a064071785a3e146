#include <cmath>
#include <limits>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
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
      const auto count = [&](const Shape& s) {
        return s.numel() == 0 ? 0.0 : double(out.numel()) / double(s.numel());
      };
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
  CHECK(message<GradientError>([&] { to<float>(x * 2); }).find("its gradient would be lost") !=
        std::string::npos);
  CHECK(to<float>(detach(x * 2)).at({1}) == 4);
}
