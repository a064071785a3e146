// Real<T> as the result type of an operation. That other element types stop the compiler at one line, which says how to
// convert, is checked in tests/build_test.sh.
#include "tapehead/tensor/real.hpp"

#include <type_traits>

#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/reduce.hpp"
#include "testing.hpp"

using namespace tapehead;

namespace {

template <class T> Real<T> doubled(const Tensor<T>& x) { return x + x; }

}  // namespace

TEST_CASE_TEMPLATE("real: Real<T> is Tensor<T>, and T is deduced from the argument", T, float, double) {
  static_assert(std::is_same_v<Real<T>, Tensor<T>>);
  const Tensor<T> x{1, T(2.5)};
  static_assert(std::is_same_v<decltype(doubled(x)), Tensor<T>>);
  static_assert(std::is_same_v<decltype(exp(x)), Tensor<T>>);
  CHECK(doubled(x).to_vector() == std::vector<T>{2, 5});
  // Overloads are chosen as with Tensor<T>: for two tensors, and for a tensor and a number.
  CHECK(div(x, x).to_vector() == std::vector<T>{1, 1});
  CHECK(div(x, 2).to_vector() == std::vector<T>{T(0.5), T(1.25)});
}

TEST_CASE("real: what the message says to write compiles, and a mean of bool has a version of its own") {
  const Tensor<std::int64_t> counts{1, 4};
  CHECK(sqrt(to<double>(counts)).to_vector() == std::vector<double>{1, 2});
  CHECK(sqrt(to<float>(counts)).to_vector() == std::vector<float>{1, 2});
  static_assert(std::is_same_v<decltype(mean(counts == 1)), Tensor<double>>);
  CHECK(mean(counts == 1).item() == 0.5);
}
