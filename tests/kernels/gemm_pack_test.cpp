#include "kernels/gemm_pack.hpp"

#include <cstdint>
#include <vector>

#include "kernels/gemm_problem.hpp"
#include "testing.hpp"

using namespace gemm_test;

TEST_CASE_TEMPLATE("pack: lines of every layout lie side by side, zeros behind them", T, float, double) {
  for (Layout layout : all_layouts)
    for (const auto& of : Sizes<3>{{1, 1, 1}, {5, 8, 3}, {16, 16, 16}, {17, 32, 21}, {32, 32, 40}, {3, 3, 50}}) {
      const int64_t count = of[0], width = of[1], depth = of[2];
      const Factor<T> A(count, depth, layout);
      std::vector<T> to(static_cast<std::size_t>(width * depth + 1), T(-7));
      pack<T>(count, width, depth, {A.data(), A.row, A.col}, to.data());
      bool good = to.back() == T(-7);
      for (int64_t p = 0; p < depth; ++p)
        for (int64_t i = 0; i < width; ++i)
          good &= to[static_cast<std::size_t>(p * width + i)] == (i < count ? A.at(i, p) : T(0));
      CHECK(good);
    }
}
