#include "kernels/gemm_block.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/gemm_problem.hpp"
#include "testing.hpp"

using namespace gemm_test;

TEST_CASE_TEMPLATE("block: every layout and size, added to nothing, to C and to one row", T, float, double) {
  for (Layout layout : {Layout::rows, Layout::columns, Layout::padded, Layout::reversed})
    for (const auto& of : Sizes<3>{{1, 1, 1}, {13, 33, 20}, {49, 40, 7}, {60, 65, 384}, {7, 128, 100}}) {
      const int64_t m = of[0], n = of[1], k = of[2], c_row = n + 2;
      const Factor<T> A(m, k, layout), B(k, n, layout), row(1, n, Layout::rows);
      for (int onto = 0; onto < 3; ++onto) {
        std::vector<T> C(static_cast<std::size_t>(m * c_row), T(0.5));
        const Start<T> D{onto == 0 ? nullptr : onto == 1 ? C.data() : row.data(), onto == 1 ? c_row : 0};
        block<T>(m, n, k, {A.data(), A.row, A.col}, {B.data(), B.row, B.col}, C.data(), c_row, D);
        double worst = 0;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double want = onto == 0 ? 0 : onto == 1 ? 0.5 : static_cast<double>(row.at(0, j)), size = std::abs(want);
            for (int64_t p = 0; p < k; ++p) {
              const double product = static_cast<double>(A.at(i, p)) * static_cast<double>(B.at(p, j));
              want += product, size += std::abs(product);
            }
            const double got = static_cast<double>(C[static_cast<std::size_t>(i * c_row + j)]);
            worst = std::max(worst, std::abs(got - want) / (size + 1e-30));
          }
          CHECK((C[static_cast<std::size_t>(i * c_row + n)] == T(0.5) &&
                 C[static_cast<std::size_t>(i * c_row + n + 1)] == T(0.5)));
        }
        CHECK(worst <= (gemm_error(k) + 1) * static_cast<double>(std::numeric_limits<T>::epsilon()));
      }
    }
}
