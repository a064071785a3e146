#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "values.hpp"

using namespace tapehead;
using testing::gradient;
using testing::message;

TEST_CASE_TEMPLATE("math: NaN goes through relu, and through whatever chooses", T, float, double) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const auto y = relu(Tensor<T>{nan, -1, 0, 2});
  CHECK(std::isnan(y.at({0})));
  CHECK(equal(y.slice(0, 1, 4), Tensor<T>{0, 0, 2}));
  CHECK(equal(gradient([](const auto& x) { return sum(relu(x)); }, Tensor<T>{-1, 0, 2}), Tensor<T>{0, 0, 1}));
  const Tensor<T> n{nan}, one{1};
  for (const auto& x :
       {maximum(n, one), maximum(one, n), minimum(n, one), minimum(one, n), clamp(n, 0, 1), abs(n), gelu(n), silu(n)})
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

namespace {

// Derivatives in long double, in forms that lose nothing in the tails.
using Wide = long double;
Wide logistic(Wide x) { return 1 / (1 + std::exp(-x)); }
Wide bell(Wide x) { return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi_v<Wide> / std::numbers::sqrt2_v<Wide>; }
Wide gate_slope(Wide x, Wide v, Wide slope) { return logistic(v) * (1 + x * logistic(-v) * slope); }
Wide tanh_argument(Wide x) {
  return 2 * std::numbers::sqrt2_v<Wide> * std::numbers::inv_sqrtpi_v<Wide> * (x + 0.044715L * x * x * x);
}
Wide tanh_argument_slope(Wide x) {
  return 2 * std::numbers::sqrt2_v<Wide> * std::numbers::inv_sqrtpi_v<Wide> * (1 + 3 * 0.044715L * x * x);
}

template <class T> struct Derivative {
  const char* name;
  Tensor<T> (*f)(const Tensor<T>&);
  Wide (*exact)(Wide);
  Wide (*terms)(Wide);  // the larger of the two terms where the derivative crosses 0, or null
  double low, high;
};

}  // namespace

TEST_CASE_TEMPLATE("math: derivatives keep their digits over the whole range, to 8 units in the last place", T, float,
                   double) {
  if (std::numeric_limits<Wide>::digits <= std::numeric_limits<double>::digits)
    return;  // nothing exact to compare with
  using X = Tensor<T>;
  const Derivative<T> all[] = {
      {"exp", [](const X& x) { return exp(x); }, [](Wide x) { return std::exp(x); }, nullptr, -80, 80},
      {"softplus", [](const X& x) { return softplus(x); }, logistic, nullptr, -80, 19},
      {"expm1", [](const X& x) { return expm1(x); }, [](Wide x) { return std::exp(x); }, nullptr, -80, 80},
      {"log", [](const X& x) { return log(x); }, [](Wide x) { return 1 / x; }, nullptr, 1e-30, 1e30},
      {"log1p", [](const X& x) { return log1p(x); }, [](Wide x) { return 1 / (1 + x); }, nullptr, -0.999, 100},
      {"sqrt", [](const X& x) { return sqrt(x); }, [](Wide x) { return 1 / (2 * std::sqrt(x)); }, nullptr, 1e-30, 1e30},
      {"tanh", [](const X& x) { return tanh(x); }, [](Wide x) { return 4 * logistic(2 * x) * logistic(-2 * x); },
       nullptr, -43, 43},
      {"sigmoid", [](const X& x) { return sigmoid(x); }, [](Wide x) { return logistic(x) * logistic(-x); }, nullptr,
       -87, 87},
      {"erf", [](const X& x) { return erf(x); },
       [](Wide x) { return 2 * std::numbers::inv_sqrtpi_v<Wide> * std::exp(-x * x); }, nullptr, -9.3, 9.3},
      {"gelu", [](const X& x) { return gelu(x); },
       [](Wide x) { return std::erfc(-x / std::numbers::sqrt2_v<Wide>) / 2 + x * bell(x); },
       [](Wide x) { return std::erfc(-x / std::numbers::sqrt2_v<Wide>) / 2; }, -13.1, 13},
      {"gelu by tanh", [](const X& x) { return gelu(x, Gelu::tanh); },
       [](Wide x) { return gate_slope(x, tanh_argument(x), tanh_argument_slope(x)); },
       [](Wide x) { return logistic(tanh_argument(x)); }, -9.6, 13},
      {"silu", [](const X& x) { return silu(x); }, [](Wide x) { return gate_slope(x, x, 1); },
       [](Wide x) { return logistic(x); }, -85, 85},
  };
  for (const auto& d : all) {
    CAPTURE(d.name);
    constexpr int n = 20'011;
    Buffer<T> points({n});
    for (int i = 0; i < n; ++i) points[i] = static_cast<T>(d.low + (d.high - d.low) * i / (n - 1));
    const X x(std::move(points));
    const X slope = gradient([&](const X& at) { return sum(d.f(at)); }, x);
    double worst = 0, at = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const Wide v = static_cast<Wide>(x.data()[i]), exact = d.exact(v);
      // Float is computed in double where its terms cancel, double is not: there the terms' own size counts.
      const bool cancels = d.terms != nullptr && std::is_same_v<T, double>;
      const Wide size = cancels ? std::max(std::abs(exact), std::abs(d.terms(v))) : std::abs(exact);
      if (std::abs(exact) < static_cast<Wide>(std::numeric_limits<T>::min())) continue;
      const Wide unit = size * static_cast<Wide>(std::numeric_limits<T>::epsilon());
      const auto error = static_cast<double>(std::abs(static_cast<Wide>(slope.data()[i]) - exact) / unit);
      if (error > worst) worst = error, at = static_cast<double>(v);
    }
    CHECK_MESSAGE(worst <= 8, d.name << " at " << at << ": " << worst << " units");
  }
}

TEST_CASE("math: isnan, isfinite") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor<double> x{1, nan, inf, -inf, 0};
  CHECK(equal(isnan(x), Tensor<bool>{false, true, false, false, false}));
  CHECK(equal(isfinite(x), Tensor<bool>{true, false, false, false, true}));
}

TEST_CASE_TEMPLATE("math: slopes at infinities are the limits", T, float, double) {
  const auto slopes = [](auto f) {
    return gradient([&](const Tensor<T>& x) { return sum(f(x)); },
                    Tensor<T>{std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity()});
  };
  CHECK(equal(slopes([](const auto& x) { return tanh(x); }), Tensor<T>{0, 0}));
  CHECK(equal(slopes([](const auto& x) { return sigmoid(x); }), Tensor<T>{0, 0}));
  CHECK(equal(slopes([](const auto& x) { return erf(x); }), Tensor<T>{0, 0}));
  CHECK(equal(slopes([](const auto& x) { return gelu(x); }), Tensor<T>{1, 0}));
  CHECK(equal(slopes([](const auto& x) { return gelu(x, Gelu::tanh); }), Tensor<T>{1, 0}));
  CHECK(equal(slopes([](const auto& x) { return silu(x); }), Tensor<T>{1, 0}));
  CHECK(equal(slopes([](const auto& x) { return softplus(x); }), Tensor<T>{1, 0}));
}

TEST_CASE_TEMPLATE("softplus: PyTorch's answers, exact in both tails, linear above the threshold", T, float, double) {
  const double tolerance = 4 * std::numeric_limits<T>::epsilon();
  const auto close = [&](const Tensor<T>& got, const Tensor<double>& expected) {
    return allclose(to<double>(got), expected, tolerance, 0);
  };
  const Tensor<T> x{-80, -40, -1.5, 0, 0.5, 19.5, 20.5, 800};
  CHECK(close(softplus(x), {1.8048513878454153e-35, 4.248354255291589e-18, 0.2014132779827524, 0.6931471805599453,
                            0.9740769841801067, 19.500000003398267, 20.5, 800}));
  CHECK(close(softplus(x, 2, 3).slice(0, 2, 8),
              {0.02429367578687103, 0.34657359027997264, 0.6566308437591114, 19.5, 20.5, 800}));
  CHECK(close(gradient([](const auto& v) { return sum(softplus(v, 2, 3)); }, x.slice(0, 1, 8)),
              {1.8048513878454153e-35, 0.04742587317756679, 0.5, 0.7310585786300049, 1, 1, 1}));
  const T inf = std::numeric_limits<T>::infinity();
  CHECK(equal(softplus(Tensor<T>{-inf, inf}), Tensor<T>{0, inf}));
  CHECK((std::isnan(softplus(Tensor<T>{inf - inf}).item()) && softplus(zeros<T>({2, 0})).shape() == Shape{2, 0}));
  if (std::is_same_v<T, double>) CHECK(softplus(scalar(T(20.5)), 1, 1e9).item() > 20.5);
  for (const double beta : {0.0, -1.0, std::nan("")})
    CHECK(message<ValueError>([&] { softplus(x, beta); }).starts_with("softplus: beta "));
}

TEST_CASE("round: NumPy's answers") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor<double> x{0.5, 1.5, 2.5, -0.5, 2.675, 1.005, 0.16049, 12345.678};
  CHECK(round(x).to_vector() == std::vector<double>{0, 2, 2, -0.0, 3, 1, 0, 12346});
  CHECK(round(x, 2).to_vector() == std::vector<double>{0.5, 1.5, 2.5, -0.5, 2.68, 1, 0.16, 12345.68});
  CHECK(round(x, -2).to_vector() == std::vector<double>{0, 0, 0, 0, 0, 0, 0, 12300});
  CHECK(round(Tensor<float>{0.15f, 2.675f}, 1).to_vector() == std::vector<float>{0.2f, 2.7f});
  CHECK(to_string(round(Tensor<double>{0.16049, 0.68095, -0.0001}, 3)) == "[ 0.16   0.681 -0.   ]"sv);
  CHECK(round(Tensor<double>{1e300, inf, -inf}, 20).to_vector() == std::vector<double>{1e300, inf, -inf});
  CHECK(round(Tensor<double>{1e300, 5, 0}, 2147483647).to_vector() == std::vector<double>{1e300, 5, 0});
  CHECK(round(Tensor<double>{1e300, -5, 0}, -2147483647 - 1).to_vector() == std::vector<double>{0, 0, 0});
  CHECK(std::isnan(round(scalar(std::nan("")), 3).item()));
}

TEST_CASE("round: no tape records it") {
  const Tensor<double> x{1.25};
  Tape<double> tape;
  tape.watch(x);
  CHECK(!tape.knows(round(x, 1)));
}

TEST_CASE_TEMPLATE("math: second derivatives keep their digits, near 0 and in the tails", T, float, double) {
  const auto second = [](auto f, T at) {
    return gradient([&](const Tensor<T>& v) { return gradient([&](const Tensor<T>& x) { return f(x); }, v); },
                    scalar(at))
        .item();
  };
  const auto near = [](T got, double exact) { return std::abs(static_cast<double>(got) / exact - 1) < 1e-5; };
  const T tiny = T(1e-8);
  CHECK(near(second([](const auto& x) { return tanh(x); }, tiny), -2e-8));
  CHECK(near(second([](const auto& x) { return sigmoid(x); }, tiny), -1.25e-9));
  CHECK(near(second([](const auto& x) { return silu(x); }, T(60)), -5.0787817e-25));
  CHECK(near(second([](const auto& x) { return silu(x); }, T(-60)), -5.0787817e-25));
}

TEST_CASE("linspace: both ends, as numpy.linspace") {
  CHECK(equal(linspace(0.0, 1, 5), Tensor<double>{0, 0.25, 0.5, 0.75, 1}));
  CHECK((linspace(0.1f, 0.7f, 4).at({3}) == 0.7f && equal(linspace(2.0, 3, 1), Tensor<double>{2})));
  CHECK(linspace(0.0, 1, 0).shape() == Shape{0});
}
