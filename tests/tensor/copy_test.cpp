#include "tensor/copy.hpp"

#include <limits>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

TEST_CASE_TEMPLATE("copy: views become rows without gaps, in memory of their own", E, float, double, bool,
                   std::int64_t) {
  NumpyRandom rng(8);
  const auto x = to<E>(rng.randint(0, 5, {3, 4, 5}));
  for (const Tensor<E>& view : {x, x.transpose(0, 2), x.slice(1, 1, 4, 2), flip(x, 0), x[1], x.slice(0, 3, 3),
                                broadcast_to(x[0].slice(0, 0, 1), {2, 4, 5}), Tensor<E>()}) {
    CAPTURE(view.shape().str());
    const Tensor<E> copy = detail::copied(view);
    CHECK(copy.is_contiguous());
    CHECK(copy.shape() == view.shape());
    CHECK(copy.to_vector() == view.to_vector());
    if (view.numel() > 0) CHECK(copy.data() != view.data());
    CHECK(detail::dense(view).to_vector() == view.to_vector());
    CHECK((detail::dense(view).id() == view.id()) == view.is_contiguous());
  }
}

TEST_CASE("copy: no tape records it") {
  const Tensor<double> x{{1, 2}, {3, 4}};
  Tape<double> tape;
  tape.watch(x);
  detail::copied(x.T()), detail::cast<float>(x);
  CHECK(tape.size() == 2);  // x and its transpose
}

TEST_CASE_TEMPLATE("copy: a cast gives every type from every type", E, float, double, bool, std::int64_t) {
  const auto x = to<E>(Tensor<std::int64_t>{{0, 1}, {1, 0}}).T();
  CHECK(detail::cast<float>(x).to_vector() == std::vector<float>{0, 1, 1, 0});
  CHECK(detail::cast<double>(x).to_vector() == std::vector<double>{0, 1, 1, 0});
  CHECK(detail::cast<bool>(x).to_vector() == std::vector<bool>{false, true, true, false});
  CHECK(detail::cast<std::int64_t>(x).to_vector() == std::vector<std::int64_t>{0, 1, 1, 0});
}

TEST_CASE_TEMPLATE("copy: what int64 does not hold is refused", T, float, double) {
  const T inf = std::numeric_limits<T>::infinity(), end = static_cast<T>(9223372036854775808.0);
  CHECK(detail::cast<std::int64_t>(Tensor<T>{-end, T(-2.9), T(2.9)}).to_vector() ==
        std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), -2, 2});
  for (T bad : {inf, -inf, std::numeric_limits<T>::quiet_NaN(), end, -2 * end})
    CHECK_THROWS_AS(detail::cast<std::int64_t>(Tensor<T>{1, bad}), ValueError);
  CHECK(message<ValueError>([&] { detail::cast<std::int64_t>(Tensor<T>{inf}); }) ==
        "to<int64>: inf does not fit a 64-bit integer"sv);
}
