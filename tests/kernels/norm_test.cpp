#include "kernels/norm.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "testing.hpp"

// Every length there and back stands in rows_test.cpp; here is what is particular to norms.
using namespace tapehead::kernels;
using std::int64_t;

TEST_CASE_TEMPLATE("norm: a large mean costs no digits, because everything is accumulated in double", T, float,
                   double) {
  const T mean = sizeof(T) == 4 ? T(4096) : T(1 << 20);
  std::vector<T> x, plain, y(37), from_zero(37);
  for (int i = 0; i < 37; ++i) plain.push_back(T(i % 7) * T(0.25)), x.push_back(mean + plain.back());
  norm_row<T>(37, x.data(), nullptr, nullptr, 1e-5, true, y.data());
  norm_row<T>(37, plain.data(), nullptr, nullptr, 1e-5, true, from_zero.data());
  for (std::size_t i = 0; i < 37; ++i) CHECK(std::abs(y[i] - from_zero[i]) <= (sizeof(T) == 4 ? T(1e-6) : T(1e-9)));
}

TEST_CASE_TEMPLATE("norm: gradients that are not asked for are not touched, the others do not change", T, float,
                   double) {
  std::vector<T> x, dy, w, dx(21), alone(21);
  for (int i = 0; i < 21; ++i) x.push_back(T(std::sin(i))), dy.push_back(T(std::cos(i))), w.push_back(T(1 + i % 3));
  std::vector<double> dw(21, 1), db(21, 1);
  for (bool centred : {true, false}) {
    norm_pull_row(21, x.data(), dy.data(), w.data(), 1e-5, centred, dx.data(), dw.data(), db.data());
    norm_pull_row<T>(21, x.data(), dy.data(), w.data(), 1e-5, centred, alone.data(), nullptr, nullptr);
    CHECK(dx == alone);
  }
  for (std::size_t i = 0; i < 21; ++i) CHECK(db[i] == doctest::Approx(1 + 2 * static_cast<double>(dy[i])));
  norm_pull_row<T>(21, x.data(), dy.data(), w.data(), 1e-5, true, nullptr, nullptr, nullptr);
}

TEST_CASE_TEMPLATE("norm: a constant row has output b and gradient 0", T, float, double) {
  const std::vector<T> x(19, T(3)), b(19, T(0.5)), dy(19, T(2));
  std::vector<T> y(19), dx(19);
  norm_row<T>(19, x.data(), nullptr, b.data(), 1e-5, true, y.data());
  CHECK(y == b);
  norm_pull_row<T>(19, x.data(), dy.data(), nullptr, 1e-5, true, dx.data(), nullptr, nullptr);
  CHECK(dx == std::vector<T>(19, T(0)));
}
