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
template <class F>
Tensor<double> made(const Tensor<double>& y, const Tensor<double>& x, const F& pullback) {
  return record(slip, detach(y), wrt(x, pullback));
}
Tensor<double> cubed(const Tensor<double>& x) { return x * x * x; }
const Tensor<double> x23{{0.3, -1.2, 0.7}, {2.1, -0.4, 1.6}};
const Tensor<double> x33{{0.3, -1.2, 0.7}, {2.1, -0.4, 1.6}, {-0.9, 0.2, 1.1}};
const Tensor<double> x34{{0.3, -1.2, 0.7, 0.1}, {2.1, -0.4, 1.6, -2.2}, {-0.9, 0.2, 1.1, 0.6}};

}  // namespace

TEST_CASE(
    "gradcheck: right gradients pass, to first and second order, with 2 and 4 points, by elements and "
    "directions") {
  const auto f = [](auto a, auto b) { return softmax(matmul(a, b) * 0.5, -1); };
  for (int order : {1, 2})
    for (int points : {2, 4})
      for (int directions : {0, 3}) {
        const auto report = gradcheck(f, {{"a", x23}, {"b", x34}},
                                      {.order = order, .points = points, .directions = directions});
        CAPTURE(report.text());
        CHECK(report);
        CHECK(report.checked == (directions ? (order == 1 ? 6 : 15) : (order == 1 ? 18 : 44)));
        CHECK(report.worst < 0.5);
      }
  CHECK(gradcheck(f, {{"a", x23}, {"b", x34}})
            .text()
            .find("gradcheck: 18 elements of a, b agree, the worst at ") == 0);
}

TEST_CASE("gradcheck: f may take a vector; inputs may be views; unnamed inputs are numbered") {
  const auto f = [](const std::vector<Tensor<double>>& x) { return x[0] * x[1].T(); };
  CHECK(gradcheck(f, {x33.T(), x33}, {.order = 2}));
  CHECK(gradcheck(cubed, {x23}, {.order = 2}));  // a function by its name
  const auto report = gradcheck(
      [](auto a) { return made(exp(a), a, [a](const auto& dy) { return dy * exp(a) * 2; }); }, {x23});
  CHECK(has(report.text(),
            "gradcheck: \"argument 0\", shape (2, 3): 6 of 6 elements disagree; the worst is argument 0["));
  CHECK(has(report.text(), "likeliest cause: a factor 2 is too many (2 is also its size along axis 0)"));
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
  const auto each = gradcheck(f, {{"a", x34}}), along = gradcheck(f, {{"a", x34}}, {.directions = 2});
  CHECK(has(each.text(),
            "\"a\", shape (3, 4): 1 of 12 elements disagree; the worst is a[1, 2]: the tape gives "));
  CHECK(has(along.text(),
            "\"a\", shape (3, 4): random direction 1 disagrees; narrowed down to a[1, 2]: the tape gives "));
}

TEST_CASE("gradcheck: the likeliest cause is named") {
  const Tensor<double> w{{1.5, -0.7, 0.4}, {0.2, 1.1, -2.0}, {0.8, -0.3, 0.6}};
  const auto cause = [&](const Tensor<double>& x, auto y, auto pullback) {
    const auto report = gradcheck([&](auto a) { return made(y(a), a, pullback); }, {{"x", x}});
    CHECK_FALSE(report);
    const std::string start = "likeliest cause: ";
    return report.text().substr(report.text().find(start) + start.size());
  };
  const auto square = [&](auto a) { return matmul(a, w); };
  const auto gradient = [&](const auto& dy) { return matmul(dy, w.T()); };
  CHECK(cause(x33, square, [&](const auto& dy) { return -gradient(dy); }) ==
        "the sign is wrong: it is the negative of the right gradient"sv);
  CHECK(cause(x33, square, [&](const auto& dy) {
          return gradient(dy) * 0;
        }).find("the gradient is zero: the way from it") == 0);
  CHECK(cause(x33, square, [&](const auto& dy) { return gradient(dy) * 2; }) == "a factor 2 is too many"sv);
  CHECK(cause(x33, square, [&](const auto& dy) { return gradient(dy) / 2; }) == "a factor 2 is missing"sv);
  CHECK(cause(x33, square, [&](const auto& dy) { return gradient(dy) / 3; }) ==
        "a factor 1/3 too many, 3 being its size along axis 0: a mean is taken where a sum belongs"sv);
  CHECK(cause(x33, square, [&](const auto& dy) { return gradient(dy) * 9; }) ==
        "a factor 9 too many, 9 being the number of its elements: the 1/n of a mean is missing, or copies "
        "are counted twice"sv);
  CHECK(cause(x33, square, [&](const auto& dy) { return gradient(dy) * -1.7; }) ==
        "a constant factor: every element is -1.7 times what it should be"sv);
  CHECK(cause(x33, square, [&](const auto& dy) { return gradient(dy).T(); }) ==
        "it is transposed: axes 0 and 1 are swapped"sv);
  CHECK(cause(x33, square, [&](const auto& dy) { return flip(gradient(dy), 1); }) ==
        "it stands in reverse along axis 1"sv);
  CHECK(cause(
            x34, [](auto a) { return a * 1; },
            [&](const auto& dy) {
              return cat<double>({slice(dy, 1, 1, 4), slice(dy, 1, 0, 1)}, 1);
            }) == "it is shifted by one position along axis 1"sv);
  CHECK(cause(x33, square, [&](const auto& dy) {
          return gradient(dy) + 0.1;
        }).find("it is off by the same amount all along axis 1") == 0);
  CHECK(cause(x33, square, [&](const auto& dy) {
          return gradient(dy) / 0;
        }).find("the tape's gradient is NaN or infinite") == 0);
  CHECK(cause(x33, square, [&](const auto& dy) {
          return exp(gradient(dy));
        }).find("none of the usual slips") == 0);
  CHECK(
      cause(
          Tensor<double>{0.0, 1, 2}, [](auto a) { return relu(a); }, [](const auto& dy) { return dy; }) ==
      "f has a kink or a jump at x[0] (or bends too sharply for the step), where a difference means nothing: "
      "name the value in .avoid, or set .skip_kinks"sv);

  // A row that is broadcast down 4 rows, with the gradient of one row only; summed where a mean was taken.
  const Tensor<double> row{0.5, -1.5, 2.5};
  CHECK(cause(
            row,
            [](auto a) {
              return broadcast_to(a, {4, 3}) * 1;
            },
            [](const auto& dy) { return dy[3]; })
            .find("a sum is missing: only position 3 along axis 0 of the result counts") == 0);
  CHECK(
      cause(
          row,
          [](auto a) {
            return broadcast_to(a, {4, 3}) * 1;
          },
          [](const auto& dy) { return mean(dy, 0); }) ==
      "a factor 1/4 too many, 4 being the result's size along axis 0: a mean is taken where a sum belongs"sv);
}

TEST_CASE("gradcheck: swapped arguments, and a pullback of the wrong shape") {
  const auto swapped = [](auto a, auto b) {
    return record(slip, detach(a * a * b), wrt(a, [a](const auto& dy) { return dy * a * a; }),
                  wrt(b, [a, b](const auto& dy) { return dy * a * b * 2; }));
  };
  const auto report = gradcheck(swapped, {{"a", x23}, {"b", x23 + 0.5}});
  CHECK(has(report.text(), "likeliest cause: it is the gradient of \"b\""));
  CHECK(has(report.text(), "likeliest cause: it is the gradient of \"a\""));
  const auto shape =
      gradcheck([](auto a) { return made(a.T(), a, [](const auto& dy) { return dy; }); }, {x23});
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
            "likeliest cause: the second derivative is zero: a pullback captures a float that the forward "
            "computed"));
  CHECK_FALSE(has(report.text(), "\"dy\", shape"));
}

TEST_CASE("gradcheck: it cannot pass without having checked anything") {
  const Tensor<double> empty = zeros<double>({0, 3});
  CHECK(has(gradcheck([](auto a) { return exp(a); }, {empty}).text(),
            "nothing was checked: the result of shape (0, 3) has no elements"));
  CHECK(has(gradcheck([](auto a) { return sum(a); }, {empty}).text(),
            "nothing was checked: no input has an element"));
  CHECK(has(gradcheck([](auto a) { return relu(a); }, {zeros<double>({2})}, {.skip_kinks = true}).text(),
            "every element lies at a kink"));
  CHECK(has(
      gradcheck([](auto a) { return relu(a); }, {zeros<double>({2})}, {.avoid = {0}, .directions = 2}).text(),
      "every element lies at a kink"));
  const auto constant = [](auto a) { return sum(softmax(a, -1)) * 0 + 3; };
  CHECK(has(gradcheck(constant, {x23}).text(), "every difference is 0: f does not depend on its inputs"));
  CHECK(has(gradcheck(constant, {x23}, {.directions = 3}).text(), "every difference is 0"));
  CHECK(gradcheck(constant, {x23}, {.may_be_zero = true}));
  CHECK(has(gradcheck([](auto a) { return detach(a) * 2; }, {x23}).text(),
            "the gradient is zero: the way from it to the result was never recorded"));
}

TEST_CASE("gradcheck: kinks are named, avoided or skipped, and never hide another error") {
  const Tensor<double> x{-1.5, 0.0, 2.0, 1e-7};
  CHECK_FALSE(gradcheck([](auto a) { return relu(a); }, {x}));
  for (const GradcheckOptions& o : {GradcheckOptions{.avoid = {0}}, GradcheckOptions{.skip_kinks = true}}) {
    const auto report = gradcheck([](auto a) { return relu(a); }, {x}, o);
    CHECK_MESSAGE(report, report.text());
    CHECK(report.checked == 2);
    CHECK(report.skipped == 2);
    CHECK_FALSE(gradcheck(
        [](auto a) {
          return made(relu(a), a, [a](const auto& dy) { return masked_fill(dy, a < 0, 0) * 1.01; });
        },
        {x}, o));
  }
  // Wherever in the step the kink lies.
  for (double at = -0.99; at < 1; at += 0.01) {
    const Tensor<double> near{at * 0x1p-17, 3.0};
    const auto report = gradcheck([](auto a) { return abs(a); }, {near}, {.skip_kinks = true});
    CAPTURE(at);
    CHECK_MESSAGE(report, report.text());
  }
}

TEST_CASE("gradcheck: differences that resolve nothing fail") {
  const auto report = gradcheck([](auto a) { return a * 1e-3 + 1e7; }, {x23});
  CHECK(has(report.text(), "uncertain, too much to check a gradient of"));
  CHECK(has(gradcheck([](auto a) { return log(a); }, {Tensor<double>{-1.0}}).text(), "NaN or infinite"));
}

TEST_CASE("gradcheck: what it refuses") {
  const auto f = [](auto a) { return exp(a); };
  CHECK(message<ValueError>([&] {
          gradcheck(f, {x23, x23});
        }) ==
        "gradcheck: f takes 1 tensors and 2 inputs are given; they must be as many (a function of a "
        "std::vector<Tensor<double>> takes "
        "any number)"sv);
  CHECK(message<ValueError>([&] { gradcheck(f, {x23}, {.order = 3}); }) ==
        "gradcheck: order 3; it must be 1 or 2"sv);
  CHECK(message<ValueError>([&] { gradcheck(f, {x23}, {.points = 3}); }) ==
        "gradcheck: 3 points; the differences have 2 or 4"sv);
  CHECK(has(message<ValueError>([&] { gradcheck(f, {x23}, {.tolerance = 0}); }), "none may be negative"));
  CHECK(message<ValueError>([&] {
          gradcheck([](const std::vector<Tensor<double>>& x) { return x[0]; }, {});
        }) == "gradcheck: no inputs; give at least one tensor"sv);
}

TEST_CASE_TEMPLATE("jacobian and hessian: the chapter's softmax Jacobian diag(a) - aaT, and its like", T,
                   float, double) {
  const Tensor<T> s{T(0.5), T(-1), T(2)};
  const auto a = softmax(s, -1);
  const auto J = jacobian([](const auto& x) { return softmax(x, -1); }, s);
  CHECK(J.shape() == Shape{3, 3});
  for (int m = 0; m < 3; ++m)
    for (int l = 0; l < 3; ++l)
      CHECK(J.at({m, l}) == doctest::Approx(a.at({m}) * ((m == l) - a.at({l}))).epsilon(1e-6));

  const Tensor<T> A{{2, 1}, {0, 3}, {5, 4}}, v{T(1), T(2)};
  CHECK(equal(jacobian([&](const auto& x) { return matmul(A, x); }, v), A));
  CHECK(equal(hessian([&](const auto& x) { return sum(matmul(A, x) * matmul(A, x)); }, v),
              matmul(A.T(), A) * 2));
  const Tensor<T> W{{1, 2, 3}, {4, 5, 6}};
  CHECK(jacobian([](const auto& x) { return x.T() * x.T(); }, W).shape() == Shape{3, 2, 2, 3});
  CHECK(equal(jacobian([](const auto& x) { return sum(x * x, 1); }, W).select(0, 1),
              Tensor<T>{{0, 0, 0}, {8, 10, 12}}));
  CHECK(equal(hessian([](const auto& x) { return sum(x * x * x); }, scalar(T(2))), scalar(T(12))));
  CHECK(equal(jacobian([](const auto& x) { return detach(x); }, v), zeros<T>({2, 2})));
  CHECK(equal(hessian([](const auto& x) { return sum(x); }, v), zeros<T>({2, 2})));
  CHECK(jacobian([](const auto& x) { return x; }, zeros<T>({0, 2})).shape() == Shape{0, 2, 0, 2});
}

TEST_CASE("jacobian: recorded on outer tapes; what the two refuse") {
  const auto square = [](const auto& x) { return x * x; };
  CHECK(gradcheck([&](auto x) { return jacobian(square, x) * 3; }, {Tensor<double>{1.0, 2.0}}, {.order = 2}));
  CHECK(gradcheck([](auto x) { return hessian([](const auto& u) { return sum(exp(u) * u); }, x); },
                  {Tensor<double>{0.3, -0.2}}));
  CHECK(message<GradientError>([&] {
          hessian(square, Tensor<double>{1.0, 2.0});
        }) ==
        "hessian: the function's result has shape (2,); only one element has a Hessian (jacobian takes any "
        "shape)"sv);
  CHECK(message<ShapeError>([&] {
          jacobian(square, zeros<double>({1, 1, 1, 1}));
        }) ==
        "jacobian: of (1, 1, 1, 1) by (1, 1, 1, 1) it would have 8 axes; a tensor has at most 6: reshape x "
        "or f's result"sv);
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
    if (n == 5) CHECK(has(report.text(), "a constant factor: every element is 1.25 times"));
  }
}
