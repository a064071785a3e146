#include "kernels/gemv.hpp"

#include <cstdint>
#include <vector>

#include "kernels/gemm_problem.hpp"
#include "testing.hpp"

using namespace gemm_test;

namespace {

/// What one lane of gemm computes: blocks of gemm_depth products, each summed from 0 in order of p, and the blocks
/// in order.
template <class T> T in_order(int64_t k, const T* x, int64_t x_step, const T* y, int64_t y_step, T start) {
  for (int64_t p = 0; p < k; p += gemm_depth) {
    T sum = 0;
    for (int64_t q = p; q < std::min(k, p + gemm_depth); ++q) sum = multiply_add(x[q * x_step], y[q * y_step], sum);
    start += sum;
  }
  return start;
}

}  // namespace

TEST_CASE_TEMPLATE("gemv: matrix times vector for rows and columns that lie along memory, to the bit", T, float,
                   double) {
  for (Layout layout : {Layout::rows, Layout::columns})
    for (const auto& of : Sizes<2>{{1, 1}, {5, 9}, {16, 16}, {40, 33}, {17, 800}, {1100, 30}})
      for (int64_t step : {1, 3})
        for (bool add : {false, true}) {
          const int64_t m = of[0], k = of[1];
          const Factor<T> M(m, k, layout), x(k, 3, Layout::rows);
          std::vector<T> y(static_cast<std::size_t>(m * step), T(0.25));
          matrix_vector<T>(m, k, {M.data(), M.row, M.col}, x.data(), 3, y.data(), step, add);
          bool good = true;
          for (int64_t i = 0; i < m; ++i) {
            const T want = in_order(k, M.data() + i * M.row, M.col, x.data(), 3, T(0));
            good &= y[static_cast<std::size_t>(i * step)] ==
                    (k <= gemm_depth ? (add ? T(0.25) + want : want)
                                     : in_order(k, M.data() + i * M.row, M.col, x.data(), 3, add ? T(0.25) : T(0)));
            for (int64_t gap = 1; gap < step; ++gap) good &= y[static_cast<std::size_t>(i * step + gap)] == T(0.25);
          }
          CHECK(good);
        }
}

TEST_CASE_TEMPLATE("gemv: dot product of two vectors with any strides, to the bit", T, float, double) {
  for (int64_t k : {0, 1, 7, 384, 385, 4000})
    for (int64_t step : {1, 2, -1}) {
      const Factor<T> x(1, 2 * k + 1, Layout::rows), y(1, k + 1, Layout::rows);
      const T* first = x.data() + (step < 0 ? k : 0);
      CHECK(dot(k, first, step, y.data(), int64_t(1), T(2)) == in_order(k, first, step, y.data(), int64_t(1), T(2)));
    }
}
