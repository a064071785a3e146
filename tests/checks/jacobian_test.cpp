#include "tapehead/checks/jacobian.hpp"

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

TEST_CASE_TEMPLATE("jacobian and hessian: the chapter's softmax Jacobian diag(a) - aaT, and its like", T, float,
                   double) {
  const Tensor<T> s{T(0.5), T(-1), T(2)};
  const auto a = softmax(s, -1);
  const auto J = jacobian([](const auto& x) { return softmax(x, -1); }, s);
  CHECK(J.shape() == Shape{3, 3});
  for (int m = 0; m < 3; ++m)
    for (int l = 0; l < 3; ++l)
      CHECK(J.at({m, l}) == doctest::Approx(a.at({m}) * ((m == l) - a.at({l}))).epsilon(1e-6));

  const Tensor<T> A{{2, 1}, {0, 3}, {5, 4}}, v{T(1), T(2)};
  CHECK(equal(jacobian([&](const auto& x) { return matmul(A, x); }, v), A));
  CHECK(equal(hessian([&](const auto& x) { return sum(matmul(A, x) * matmul(A, x)); }, v), matmul(A.T(), A) * 2));
  const Tensor<T> W{{1, 2, 3}, {4, 5, 6}};
  CHECK(jacobian([](const auto& x) { return x.T() * x.T(); }, W).shape() == Shape{3, 2, 2, 3});
  CHECK(
      equal(jacobian([](const auto& x) { return sum(x * x, 1); }, W).select(0, 1), Tensor<T>{{0, 0, 0}, {8, 10, 12}}));
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
        }) == "hessian: f's result has shape (2,); sum it, or call jacobian"sv);
  CHECK(message<ShapeError>([&] {
          jacobian(square, zeros<double>({1, 1, 1, 1}));
        }) == "jacobian: of (1, 1, 1, 1) by (1, 1, 1, 1) it would have 8 axes, more than 6: reshape x or f's result"sv);
}

TEST_CASE_TEMPLATE("jacobian and hessian: the tensor itself, captured by the function, is a constant", T, float,
                   double) {
  const Tensor<T> x{T(0.5), T(-1), T(2)}, eye2 = eye<T>(3) * 2;
  const auto row = reshape(x, {1, 3});
  CHECK(equal(hessian([&](const auto& w) { return sum((w - x) * (w - x)); }, x), eye2));
  CHECK(equal(jacobian([&](const auto& y) { return x * y; }, x), eye<T>(3) * x));
  CHECK(equal(hessian([&](const auto& w) { return sum((w - row) * (w - row)); }, x), eye2));  // a view of it
  CHECK(equal(jacobian([&](const auto& y) { return reshape(row, {3}) * y; }, x), eye<T>(3) * x));
  CHECK(equal(jacobian([&](const auto&) { return x; }, x), zeros<T>({3, 3})));

  // On an outer tape both are variables: d/dx Σ J(y ↦ x y²) at y = x, which is Σ 2 x y, is 2 y + 2 x = 4 x.
  Tape<T> tape;
  tape.watch(x);
  const auto J = jacobian([&](const auto& y) { return x * y * y; }, x);
  CHECK(equal(J, eye<T>(3) * x * x * 2));
  CHECK(equal(tape.backward(sum(J))[x], x * 4));
}

TEST_CASE("jacobian: x may be a view, and what was computed from it before stays a constant") {
  const Tensor<double> X{{1, 2}, {3, 4}};
  const auto v = X.select(1, 0);  // 1, 3
  CHECK(equal(jacobian([](const auto& y) { return y * y; }, v), {{2, 0}, {0, 6}}));
  CHECK(equal(jacobian([&](const auto& y) { return y * X.select(1, 0); }, v), {{1, 0}, {0, 3}}));
  CHECK(equal(hessian([&](const auto& y) { return sum(y * y * v); }, v), {{2, 0}, {0, 6}}));
  CHECK(jacobian([](const auto& y) { return y; }, scalar(1.0)).shape() == Shape{});
}
