// The product of small tiles that attention is made of.
#include "kernels/tile_product.hpp"

#include "kernels/flash_problem.hpp"
#include "kernels/vec.hpp"

using namespace flash_test;

TEST_CASE_TEMPLATE("tile product: every size, nothing else touched", T, float, double) {
  const auto random = [](int64_t rows, int64_t cols) {
    Array<T> x(1, 1, rows, cols);
    x.fill(next_uniform);
    return x;
  };
  for (int64_t rows = 1; rows <= 14; ++rows)
    for (int64_t vectors = 1; vectors <= 6; ++vectors)
      for (int64_t depth : {0, 1, 2, 7})
        for (bool down : {false, true})
          for (Onto onto : {Onto::nothing, Onto::sum, Onto::scaled_sum}) {
            const int64_t cols = vectors * lanes<T>, ldb = cols + 3, ldc = cols + 5;
            const auto A = down ? random(depth, rows) : random(rows, depth), B = random(depth, ldb),
                       f = random(1, rows);
            auto C = random(rows, ldc);
            Array<T> want(1, 1, rows, ldc);
            want.each([&](int64_t, int64_t, int64_t m, int64_t n) {
              double sum = 0;
              const double c = double(C(0, 0, m, n));
              for (int64_t k = 0; k < depth; ++k)
                sum += double(down ? A(0, 0, k, m) : A(0, 0, m, k)) * double(B(0, 0, k, n));
              if (onto == Onto::sum) sum += c;
              if (onto == Onto::scaled_sum) sum += c * double(f(0, 0, 0, m));
              want(0, 0, m, n) = n < cols ? T(sum) : C(0, 0, m, n);
            });
            const Matrix<T> a{A.view.data, down ? 1 : depth, down ? rows : 1};
            tile_product<T>(rows, cols, depth, a, B.view.data, ldb, C.view.data, ldc, onto, f.view.data);
            double worst = 0, outside = 0;
            want.each([&](int64_t, int64_t, int64_t m, int64_t n) {
              double& e = n < cols ? worst : outside;
              e = std::max(e, std::abs(double(C(0, 0, m, n) - want(0, 0, m, n))));
            });
            CHECK(worst < 8 * std::numeric_limits<T>::epsilon());  // sums of at most 8 terms below 1
            CHECK(outside == 0);
          }
}
