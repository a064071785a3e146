// What gives the same as a product of matrices by another way: batches, a row added, and the ladder's rungs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "bench/gemm_ladder.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_bf16.hpp"
#include "kernels/gemm_problem.hpp"
#include "testing.hpp"

using namespace tapehead::kernels;
using namespace gemm_test;
using std::int64_t;

TEST_CASE_TEMPLATE("gemm_batch: each product is the one gemm gives", T, float, double) {
  for (const auto& of : Sizes<4>{{5, 6, 8, 6}, {40, 17, 33, 65}, {3, 130, 150, 140}, {70, 1, 64, 64}}) {
    const int64_t batch = of[0], m = of[1], n = of[2], k = of[3];
    for (bool accumulate : {false, true}) {
      const Factor<T> A(batch * m, k, Layout::rows), B(batch * k, n, Layout::padded);
      std::vector<int64_t> a_at, b_at;
      for (int64_t b = 0; b < batch; ++b) {
        a_at.push_back((batch - 1 - b) * m * k);  // in reverse
        b_at.push_back(b / 2 * k * B.row);        // two share one
      }
      std::vector<T> C(static_cast<std::size_t>(batch * m * n), T(0.25)), one = C;
      gemm_batch(batch, m, n, k, A.data(), a_at.data(), A.row, A.col, B.data(), b_at.data(), B.row, B.col, C.data(),
                 accumulate);
      for (int64_t b = 0; b < batch; ++b) {
        const auto i = static_cast<std::size_t>(b);
        gemm(m, n, k, A.data() + a_at[i], A.row, A.col, B.data() + b_at[i], B.row, B.col, one.data() + b * m * n, n,
             accumulate);
      }
      CHECK(C == one);
    }
  }
}

TEST_CASE_TEMPLATE("gemm_row: the row is what the product is added to", T, float, double) {
  const InVectors vectors;  // on a matrix unit it is what the sums start from: kernels_gemm_bf16_test.cpp
  for (const auto& of :
       Sizes<3>{{7, 70, 20}, {50, 17, 800}, {1, 40, 9}, {40, 1, 9}, {1, 1, 5}, {6, 5, 0}, {300, 130, 400}}) {
    const int64_t m = of[0], n = of[1], k = of[2];
    CAPTURE(m);
    CAPTURE(k);
    const Factor<T> A(m, k, Layout::rows), B(k, n, Layout::columns), row(1, n, Layout::rows);
    const int64_t c_row = n + 3;
    std::vector<T> C(static_cast<std::size_t>(m * c_row), T(9)), filled = C, plain = C, none = C;
    for (int64_t i = 0; i < m; ++i) std::copy_n(row.data(), n, filled.data() + i * c_row);
    gemm_row<T>(m, n, k, A.data(), A.row, A.col, B.data(), B.row, B.col, row.data(), C.data(), c_row);
    gemm<T>(m, n, k, A.data(), A.row, A.col, B.data(), B.row, B.col, filled.data(), c_row, true);
    CHECK(C[static_cast<std::size_t>(n)] == T(9));  // nothing between the rows
    CHECK(C == filled);
    gemm<T>(m, n, k, A.data(), A.row, A.col, B.data(), B.row, B.col, plain.data(), c_row);
    gemm_row<T>(m, n, k, A.data(), A.row, A.col, B.data(), B.row, B.col, static_cast<const T*>(nullptr), none.data(),
                c_row);
    CHECK(none == plain);
  }
}

TEST_CASE_TEMPLATE("ladder: every rung agrees with the one before", T, float, double) {
  for (const auto& of : Sizes<3>{{1, 1, 1}, {5, 7, 3}, {13, 33, 257}, {64, 64, 64}, {50, 530, 130}, {31, 9, 600}}) {
    const int64_t m = of[0], n = of[1], k = of[2];
    const Factor<T> A(m, k, Layout::rows), B(k, n, Layout::rows);
    const auto size = static_cast<std::size_t>(m * n);
    std::vector<T> sizes(size), rung(size), before(size);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < n; ++j) sizes[static_cast<std::size_t>(i * n + j)] += std::abs(A.at(i, p) * B.at(p, j));
    // Two sums of k products in different orders, each off by at most (k + 1) / 2 epsilon of what was summed.
    const auto agrees = [&] {
      bool ok = true;
      for (std::size_t i = 0; i < size; ++i)
        ok =
            ok && std::abs(rung[i] - before[i]) <= static_cast<T>(k + 2) * std::numeric_limits<T>::epsilon() * sizes[i];
      before = rung;
      return ok;
    };
    ladder::naive(m, n, k, A.data(), B.data(), before.data());
    ladder::blocked(m, n, k, A.data(), B.data(), rung.data());
    CHECK(agrees());
    ladder::packed(m, n, k, A.data(), B.data(), rung.data());
    CHECK(agrees());
    ladder::vectors(m, n, k, A.data(), B.data(), rung.data());
    CHECK(agrees());
    multiply(A, B, rung.data(), n);
    CHECK(agrees());
  }
}
