#include <cmath>
#include <limits>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "values.hpp"

using namespace tapehead;
using testing::gradient;

TEST_CASE_TEMPLATE("math: NaN goes through relu, and through whatever chooses", T, float, double) {
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
