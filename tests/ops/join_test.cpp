#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {
Tensor<double> counting(const Shape& shape) {
  return arange<double>(static_cast<double>(shape.numel())).reshape(shape);
}
}  // namespace

TEST_CASE("join: cat, stack and split are each other's reverse") {
  const Tensor<double> a = counting({2, 3}), b = counting({1, 3});
  CHECK(cat<double>({a, b}).shape() == Shape{3, 3});
  CHECK(cat<double>({a.T(), b.T(), zeros<double>({3, 0})}, -1).shape() == Shape{3, 3});
  CHECK(stack<double>({a, a}, -1).shape() == Shape{2, 3, 2});
  CHECK(equal(cat(split(counting({5, 2}), 2, 0), 0), counting({5, 2})));
  CHECK(split(a, std::vector<std::int64_t>{1, 2}, 1)[1].shape() == Shape{2, 2});
  CHECK(message<ValueError>([] { cat<double>({}); }) == "cat: no tensors; give at least one"sv);
  CHECK(message<ShapeError>([&] {
          cat<double>({a, b.T()}, 0);
        }) == "cat: shapes (2, 3) and (3, 1); all sizes but those along axis 0 must be equal"sv);
  CHECK(message<ShapeError>([&] {
          split(a, std::vector<std::int64_t>{1, 1}, 1);
        }).find("add up to 2") != std::string::npos);
}
