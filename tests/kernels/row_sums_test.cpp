#include "kernels/row_sums.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "testing.hpp"

using namespace tapehead::kernels;
using std::int64_t;

TEST_CASE_TEMPLATE("row sums: several sums of every length, each in 16 interleaved parts", T, float, double) {
  std::vector<T> x, y;
  for (int i = 0; i < 70; ++i) x.push_back(T(std::sin(i + 1))), y.push_back(T(std::cos(3 * i)));
  for (int64_t n = 0; n <= 70; ++n) {
    const T *a = x.data(), *b = y.data();
    const auto total = sums<2>(n, [=](auto at) { return std::array{at(a) * at(b), at(a)}; });
    double part[16] = {}, sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      part[i % 16] += static_cast<double>(a[i]);
      sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
    for (int half = 8; half > 0; half /= 2)
      for (int w = 0; w < half; ++w) part[w] += part[w + half];
    CHECK(total[0] == doctest::Approx(sum).epsilon(1e-12));
    CHECK(total[1] == part[0]);  // to the bit, whatever the width of a vector
  }
}

TEST_CASE_TEMPLATE("row sums: for_each_place writes every element and nothing behind", T, float, double) {
  for (int64_t n = 0; n <= 40; ++n) {
    std::vector<T> x(static_cast<std::size_t>(n + 1), T(0.1)), y(x.size(), T(-7));
    for_each_place(n, [from = x.data(), to = y.data()](auto at) { at.put(to, at(from) * 3.0 + 1.0); });
    for (int64_t i = 0; i < n; ++i)
      CHECK(y[static_cast<std::size_t>(i)] == doctest::Approx(static_cast<double>(T(0.1)) * 3.0 + 1.0).epsilon(1e-7));
    CHECK(y.back() == T(-7));
  }
}
