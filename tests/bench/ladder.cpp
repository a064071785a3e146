// From three loops to the matrix product of the library: what each idea brings.

#include <cmath>
#include <cstdint>
#include <vector>

#include "bench.hpp"
#include "gemm_ladder.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_bf16.hpp"

using namespace bench;
namespace kernels = tapehead::kernels;

int main(int, char** argv) {
  Report report("ladder", argv[0]);
  use_threads(1);
  report.note("C = A B in float, one thread; tests/bench/gemm_ladder.hpp explains the idea of each rung.");
  for (int64_t n : {128, 512, 1024}) {
    std::vector<float> A(static_cast<std::size_t>(n * n)), B = A, C = A;
    for (std::size_t i = 0; i < A.size(); ++i)
      A[i] = std::sin(static_cast<float>(i)), B[i] = std::cos(static_cast<float>(i));
    const auto rung = [&](const char* name, auto function) {
      return here(name, [&, function] { function(n, n, n, A.data(), B.data(), C.data()); });
    };
    const auto product = [&](bool matrix_unit) {
      kernels::use_bf16(matrix_unit);
      kernels::gemm(n, n, n, A.data(), n, 1, B.data(), n, 1, C.data(), n);
      kernels::use_bf16(true);
    };
    const double peak = ceiling<float>(), operations = 2.0 * static_cast<double>(n * n * n);
    const auto results =
        race({rung("naive", ladder::naive<float>), rung("blocked", ladder::blocked<float>),
              rung("packed", ladder::packed<float>), rung("vectors", ladder::vectors<float>),
              here("gemm, in vectors", [&] { product(false); }),
              here(kernels::bf16_pays(n, n, n) ? "gemm, matrix unit" : "gemm, no matrix unit", [&] { product(true); })},
             0.2);
    report.table(fmt::format("n = {}", n), {"GFLOP/s", "± %", "% of peak", "x naive"});
    for (const Result& r : results) {
      const double speed = 1e-9 * operations / r.seconds;
      report.row(r.name, {speed, 100 * r.spread, 100 * speed / peak, 1 / r.ratio});
    }
  }
}
