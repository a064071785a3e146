#include "kernels/gemm_pack.hpp"

namespace tapehead::kernels {

template <class T>
void pack(std::int64_t count, std::int64_t width, std::int64_t depth, const Matrix<T>& lines, T* to) {
  constexpr std::int64_t L = lanes<T>;
  for (std::int64_t i = 0; i < width; i += L) {
    const std::int64_t n = std::min(L, count - i), w = std::min(L, width - i);
    if (lines.row == 1) {
      for (std::int64_t p = 0; p < depth; ++p) store_up_to(to + p * width + i, load_up_to(lines.at(i, p), n), w);
    } else if (lines.col == 1) {
      for (std::int64_t p = 0; p < depth; p += L) {
        Vec<T> square[L];
        const std::int64_t d = std::min(L, depth - p);
        load_transposed({lines.at(i, p), lines.row, 1}, n, d, square);
#pragma GCC unroll 16
        for (std::int64_t r = 0; r < L; ++r)
          if (r < d) store_up_to(to + (p + r) * width + i, square[r], w);
      }
    } else {
      for (std::int64_t p = 0; p < depth; ++p)
        for (std::int64_t r = 0; r < w; ++r) to[p * width + i + r] = r < n ? *lines.at(i + r, p) : T(0);
    }
  }
}

template void pack(std::int64_t, std::int64_t, std::int64_t, const Matrix<float>&, float*);
template void pack(std::int64_t, std::int64_t, std::int64_t, const Matrix<double>&, double*);

}  // namespace tapehead::kernels
