#include <cmath>
#include <limits>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "values.hpp"

using namespace tapehead;
using testing::all_nan;
using testing::gradient;

TEST_CASE_TEMPLATE("softmax: infinities in softmax and logsumexp, whatever the row's length", T, float, double) {
  const auto lse = [](const Tensor<T>& x) { return logsumexp(x, -1); };
  CHECK(lse({-std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity()}).item() ==
        -std::numeric_limits<T>::infinity());
  CHECK(lse({std::numeric_limits<T>::infinity(), 0}).item() == std::numeric_limits<T>::infinity());
  CHECK(lse({1000, 1000}).item() == doctest::Approx(1000.6931472));
  CHECK(equal(softmax(Tensor<T>{-std::numeric_limits<T>::infinity(), 0}, -1), Tensor<T>{0, 1}));
  CHECK(equal(gradient(lse, Tensor<T>{-std::numeric_limits<T>::infinity(), 0}), Tensor<T>{0, 1}));
  for (std::int64_t n = 1; n <= 300; ++n) {
    CAPTURE(n);
    const auto nothing = full<T>({n}, -std::numeric_limits<T>::infinity());
    CHECK(all_nan(softmax(nothing, -1)));
    CHECK(all_nan(softmax(nothing.reshape({n, 1}), 0)));
    CHECK(equal(softmax(nothing, -1, EmptyRows::zero), zeros<T>({n})));
    CHECK(lse(nothing).item() == -std::numeric_limits<T>::infinity());
    CHECK(equal(gradient(lse, nothing), zeros<T>({n})));
    const auto one = cat(std::vector{nothing, Tensor<T>{T(3)}});
    CHECK(softmax(one, -1).at({n}) == 1);
    CHECK(lse(one).item() == 3);
    CHECK(lse(cat(std::vector{one, Tensor<T>{std::numeric_limits<T>::infinity()}})).item() ==
          std::numeric_limits<T>::infinity());
    CHECK(std::isnan(lse(cat(std::vector{one, Tensor<T>{std::numeric_limits<T>::quiet_NaN()}})).item()));
  }
}

TEST_CASE_TEMPLATE("softmax: log_softmax stays finite where softmax underflows", T, float, double) {
  CHECK(equal(log_softmax(Tensor<T>{0, -200}, -1), Tensor<T>{0, -200}));
  CHECK(std::isinf(log(softmax(Tensor<T>{0, -1000}, -1)).at({1})));
  CHECK(std::isnan(cross_entropy(zeros<T>({2, 3}), full<std::int64_t>({2}, -100)).item()));
  for (int depth = 2; depth < 38; ++depth) {
    const T low = -std::pow(T(10), T(depth));
    CHECK(log_softmax(Tensor<T>{low, 0, low / 2}, 0).at({0}) == doctest::Approx(low));
    CHECK(cross_entropy(Tensor<T>{{0, low}}, Tensor<std::int64_t>{1}).item() == doctest::Approx(-low));
  }
}

TEST_CASE_TEMPLATE("softmax's family: a NaN among infinities is never lost", T, float, double) {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (const auto& row : {Tensor<T>{nan, nan}, Tensor<T>{-inf, nan}, Tensor<T>{inf, nan}, Tensor<T>{nan, -inf, 1}}) {
    CHECK(std::isnan(logsumexp(row, 0).item()));
    CHECK(all(isnan(softmax(row, 0))).item());
    CHECK(all(isnan(softmax(row, 0, EmptyRows::zero))).item());
    CHECK(all(isnan(log_softmax(row, 0))).item());
    CHECK(std::isnan(cross_entropy(unsqueeze(row, 0), Tensor<std::int64_t>{0}).item()));
  }
}
