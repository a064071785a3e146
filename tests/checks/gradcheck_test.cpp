#include "tapehead/checks/gradcheck.hpp"

#include <cmath>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::has;
using testing::message;

namespace {

const Op slip{"test: slip", "whatever the test computes", "a pullback that is wrong on purpose"};

// y as if it had been computed from x by one operation with this pullback.
template <class F> Tensor<double> made(const Tensor<double>& y, const Tensor<double>& x, const F& pullback) {
  return record(slip, detach(y), wrt(x, pullback));
}
Tensor<double> cubed(const Tensor<double>& x) { return x * x * x; }
const Tensor<double> x23{{0.3, -1.2, 0.7}, {2.1, -0.4, 1.6}};
const Tensor<double> x33{{0.3, -1.2, 0.7}, {2.1, -0.4, 1.6}, {-0.9, 0.2, 1.1}};
const Tensor<double> x34{{0.3, -1.2, 0.7, 0.1}, {2.1, -0.4, 1.6, -2.2}, {-0.9, 0.2, 1.1, 0.6}};

}  // namespace

TEST_CASE("gradcheck: right gradients pass, to first and second order, with 2 and 4 points") {
  const auto f = [](auto a, auto b) { return softmax(matmul(a, b) * 0.5, -1); };
  for (int order : {1, 2})
    for (int points : {2, 4}) {
      const auto report = gradcheck(f, {{"a", x23}, {"b", x34}}, {.order = order, .points = points});
      CAPTURE(report.text());
      CHECK(report);
      CHECK(report.checked == (order == 1 ? 18 : 44));
      CHECK(report.worst < 0.5);
    }
  CHECK(gradcheck(f, {{"a", x23}, {"b", x34}}).text().find("gradcheck: 18 elements of a, b agree, the worst at ") == 0);
}

TEST_CASE("gradcheck: f may take a vector; inputs may be views; unnamed inputs are numbered") {
  const auto f = [](const std::vector<Tensor<double>>& x) { return x[0] * x[1].T(); };
  CHECK(gradcheck(f, {x33.T(), x33}, {.order = 2}));
  CHECK(gradcheck(cubed, {x23}, {.order = 2}));  // a function by its name
  const auto report =
      gradcheck([](auto a) { return made(exp(a), a, [a](const auto& dy) { return dy * exp(a) * 2; }); }, {x23});
  CHECK(has(report.text(),
            "gradcheck: \"argument 0\", shape (2, 3): 6 of 6 elements disagree; the worst is argument 0["));
  CHECK(has(report.text(),
            ", a ratio of 2\n  likely cause: every element is 2 times the right value; 2 is its size "
            "along axis 0"));
}

TEST_CASE("gradcheck: the 4-point difference is the finer one") {
  const auto f = [](auto a) { return exp(a * 3); };
  const auto two = gradcheck(f, {x23}, {.step = 1e-3}),
             four = gradcheck(f, {x23}, {.points = 4, .step = 1e-3, .tolerance = 1e-9});
  CHECK_FALSE(two);
  CHECK_MESSAGE(four, four.text());
}

TEST_CASE("gradcheck: an error of a millionth in one element is caught and named") {
  const auto bump = [](const Tensor<double>& dy) {
    Tensor<double> off{{0, 0, 0, 0}, {0, 0, 1e-6, 0}, {0, 0, 0, 0}};
    return dy * (off + 1);
  };
  const auto f = [&](auto a) { return made(a, a, bump); };
  const std::string text = gradcheck(f, {{"a", x34}}).text();
  CHECK(has(text, "\"a\", shape (3, 4): 1 of 12 elements disagree; the worst is a[1, 2]: the tape gives "));
  CHECK(has(text, ", central differences give "));
  CHECK(has(text, ", a ratio of 1\n") == false);
  CHECK_FALSE(has(text, "likely cause"));  // one element shows no pattern
}

TEST_CASE("gradcheck: the likely cause is named where the values show it, and only then") {
  const Tensor<double> w{{1.5, -0.7, 0.4}, {0.2, 1.1, -2.0}, {0.8, -0.3, 0.6}};
  const auto cause = [&](const Tensor<double>& x, auto y, auto pullback) {
    const auto report = gradcheck([&](auto a) { return made(y(a), a, pullback); }, {{"x", x}});
    CHECK_FALSE(report);
    const std::string start = "likely cause: ";
    const std::size_t at = report.text().find(start);
    return at == std::string::npos ? "none" : report.text().substr(at + start.size());
  };
  const auto product = [&](auto a) { return matmul(a, w); };
  const auto gradient = [&](const auto& dy) { return matmul(dy, w.T()); };
  const auto times = [&](double r) { return cause(x33, product, [&, r](const auto& dy) { return gradient(dy) * r; }); };
  CHECK(times(-1) == "every element has the wrong sign"sv);
  CHECK(times(2) == "every element is 2 times the right value"sv);
  CHECK(times(0.5) == "every element is 1/2 times the right value"sv);
  CHECK(times(1.0 / 3) == "every element is 1/3 times the right value; 3 is its size along axis 0"sv);
  CHECK(times(9) == "every element is 9 times the right value; 9 is its number of elements"sv);
  CHECK(times(-1.7) == "every element is -1.7 times the right value"sv);
  CHECK(times(0.37) == "every element is 0.37 times the right value"sv);
  CHECK(times(std::sqrt(3.0)) ==
        "every element is 1.73205 times the right value; 1.73205 is the square root of 3, its size along axis 0"sv);
  CHECK(times(-1 / std::sqrt(3.0)) ==
        "every element is -1/1.73205 times the right value; 1.73205 is the square root of 3, its size along "
        "axis "
        "0"sv);
  CHECK(times(0).find("the gradient is zero: the path from this input") == 0);
  CHECK(times(INFINITY).find("the tape's gradient is NaN or infinite") == 0);
  CHECK(cause(x33, product, [&](const auto& dy) { return gradient(dy).T(); }) ==
        "it is transposed: axes 0 and 1 are swapped"sv);
  CHECK(cause(x33, product, [&](const auto& dy) { return gradient(ones_like(dy)); }) ==
        "the pullback ignores dy, the upstream gradient"sv);
  CHECK(cause(x33, product, [&](const auto& dy) { return exp(gradient(dy)); }) == "none"sv);
  CHECK(cause(x33, product, [&](const auto& dy) { return gradient(dy) + 0.1; }) == "none"sv);
  CHECK(cause(
            Tensor<double>{0.0, 1, 2}, [](auto a) { return relu(a); }, [](const auto& dy) { return dy; }) ==
        "f has a kink or a jump at x[0] (or bends too sharply for the step), where differences mean nothing: "
        "choose "
        "other inputs, or set .skip_kinks"sv);
  // A mean where a sum is right: the row was broadcast down 4 rows.
  CHECK(cause(
            Tensor<double>{0.5, -1.5, 2.5},
            [](auto a) {
              return broadcast_to(a, {4, 3}) * 1;
            },
            [](const auto& dy) { return mean(dy, 0); }) ==
        "every element is 1/4 times the right value; 4 is the result's size along axis 0"sv);
  // One element fits any factor: the ratio stands in the message, and no cause is claimed.
  const std::string one =
      gradcheck([](auto a) { return made(a * a, a, [a](const auto& dy) { return dy * a * 6; }); }, {scalar(1.5)})
          .text();
  CHECK(has(one, "a ratio of 3"));
  CHECK_FALSE(has(one, "likely cause"));
}

TEST_CASE("gradcheck: swapped arguments, and a pullback of the wrong shape") {
  const auto swapped = [](auto a, auto b) {
    return record(slip, detach(a * a * b), wrt(a, [a](const auto& dy) { return dy * a * a; }),
                  wrt(b, [a, b](const auto& dy) { return dy * a * b * 2; }));
  };
  const auto report = gradcheck(swapped, {{"a", x23}, {"b", x23 + 0.5}});
  CHECK(has(report.text(), "likely cause: it is the gradient of \"b\""));
  CHECK(has(report.text(), "likely cause: it is the gradient of \"a\""));
  const auto shape = gradcheck([](auto a) { return made(a.T(), a, [](const auto& dy) { return dy; }); }, {x23});
  CHECK(has(shape.text(),
            "gradcheck: the tape cannot differentiate this: backward: in record 2 (test: slip, shape (3, "
            "2)): sum_to"));
}

TEST_CASE("gradcheck: a float captured in the forward is found at second order") {
  // A softmax whose pullback holds its output as a constant: right once, wrong twice.
  const auto f = [](auto a) {
    const auto s = softmax(detach(a), -1);
    return made(s, a, [s](const auto& dy) { return s * (dy - sum(dy * s, -1, true)); });
  };
  CHECK(gradcheck(f, {{"a", x23}}));
  const auto report = gradcheck(f, {{"a", x23}}, {.order = 2});
  CHECK_FALSE(report);
  CHECK(has(report.text(), "gradcheck, second derivatives: \"a\", shape (2, 3): 6 of 6 elements disagree"));
  CHECK(has(report.text(),
            "likely cause: the first derivatives are right, so a pullback uses a float that the forward pass "
            "computed"));
  CHECK_FALSE(has(report.text(), "\"dy\", shape"));
}

TEST_CASE("gradcheck: it cannot pass without having checked anything") {
  const Tensor<double> empty = zeros<double>({0, 3});
  CHECK(has(gradcheck([](auto a) { return exp(a); }, {empty}).text(),
            "nothing was checked: the result of shape (0, 3) has no elements"));
  CHECK(has(gradcheck([](auto a) { return sum(a); }, {empty}).text(), "nothing was checked: no input has an element"));
  CHECK(has(gradcheck([](auto a) { return relu(a); }, {zeros<double>({2})}, {.skip_kinks = true}).text(),
            "every element lies at a kink"));
  const auto constant = [](auto a) { return sum(softmax(a, -1)) * 0 + 3; };
  CHECK(has(gradcheck(constant, {x23}).text(), "every difference is 0, and so is a gradient that was never recorded"));
  CHECK(gradcheck(constant, {x23}, {.may_be_zero = true}));
  CHECK(has(gradcheck([](auto a) { return detach(a) * 2; }, {x23}).text(),
            "the gradient is zero: the path from this input to the result was not recorded"));
}

TEST_CASE("gradcheck: kinks are named or skipped, and never hide another error") {
  const Tensor<double> x{-1.5, 0.0, 2.0, 1e-7};
  CHECK_FALSE(gradcheck([](auto a) { return relu(a); }, {x}));
  const auto report = gradcheck([](auto a) { return relu(a); }, {x}, {.skip_kinks = true});
  CHECK_MESSAGE(report, report.text());
  CHECK(report.checked == 2);
  CHECK(report.skipped == 2);
  CHECK_FALSE(gradcheck(
      [](auto a) { return made(relu(a), a, [a](const auto& dy) { return masked_fill(dy, a < 0, 0) * 1.01; }); }, {x},
      {.skip_kinks = true}));
  // Wherever in the step the kink lies.
  for (double at = -0.99; at < 1; at += 0.01) {
    const Tensor<double> near{at * 0x1p-17, 3.0};
    const auto moved = gradcheck([](auto a) { return abs(a); }, {near}, {.skip_kinks = true});
    CAPTURE(at);
    CHECK_MESSAGE(moved, moved.text());
  }
}

TEST_CASE("gradcheck: differences that resolve nothing fail") {
  const auto report = gradcheck([](auto a) { return a * 1e-3 + 1e7; }, {x23});
  CHECK(has(report.text(), "rounding error of"));
  CHECK(has(gradcheck([](auto a) { return log(a); }, {Tensor<double>{-1.0}}).text(), "NaN or infinite"));
}

TEST_CASE("gradcheck: a function that captured its own input is checked with that one as a constant") {
  CHECK(gradcheck([](auto a) { return sum((a - x23) * a); }, {{"a", x23}}, {.order = 2}));
  const auto text = gradcheck([](auto a) { return exp(a); }, {x23}).text();  // a value, not a reference
  CHECK(text.find("gradcheck: 6 elements of argument 0 agree") == 0);
}

TEST_CASE("gradcheck: what it refuses") {
  const auto f = [](auto a) { return exp(a); };
  CHECK(message<ValueError>([&] {
          gradcheck(f, {x23, x23});
        }) ==
        "gradcheck: f takes 1 tensors and 2 inputs are given; give one input for each (a function of a "
        "std::vector<Tensor<double>> takes any number)"sv);
  CHECK(message<ValueError>([&] { gradcheck(f, {x23}, {.order = 3}); }) == "gradcheck: order 3; it must be 1 or 2"sv);
  CHECK(message<ValueError>([&] { gradcheck(f, {x23}, {.points = 3}); }) ==
        "gradcheck: 3 points; the differences have 2 or 4"sv);
  CHECK(has(message<ValueError>([&] { gradcheck(f, {x23}, {.tolerance = 0}); }), "tolerances must be above 0"));
  CHECK(message<ValueError>([&] { gradcheck([](const std::vector<Tensor<double>>& x) { return x[0]; }, {}); }) ==
        "gradcheck: no inputs; give at least one tensor"sv);
}

TEST_CASE("gradcheck: a gradient check that can fail") {
  // Differences in float with a tiny step are 1.7 % off where the same in double is exact to ten digits.
  const auto difference = [](auto x) {
    const auto h = static_cast<decltype(x)>(1e-6);
    const auto f = [](auto v) { return v * v * v; };
    volatile decltype(x) up = x + h, down = x - h;
    return static_cast<double>((f(decltype(x)(up)) - f(decltype(x)(down))) / (2 * h));
  };
  CHECK(std::abs(difference(1.0f) - 3) > 0.03);
  CHECK(difference(1.0) == doctest::Approx(3).epsilon(1e-9));
  // The gradient of mean(x²) as x / 2: right for four elements, and for no other number of them.
  static const Op half_op{"test: mean of squares", "y = mean x²", "dx = dy x / 2, on purpose"};
  const auto wrong = [](const Tensor<double>& x) {
    return record(half_op, detach(mean(x * x)), wrt(x, [x](const auto& dy) { return dy * x / 2; }));
  };
  NumpyRandom rng(6);
  for (std::int64_t n : {1, 2, 3, 4, 5, 7}) {
    const auto report = gradcheck(wrong, {{"x", rng.randn({n})}});
    CHECK(static_cast<bool>(report) == (n == 4));
    if (n == 5) CHECK(has(report.text(), "every element is 1.25 times the right value"));
  }
}
