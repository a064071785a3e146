#include "kernels/tile_product.hpp"

#include "kernels/vec.hpp"

namespace tapehead::kernels {
namespace {

// Six rows by four vectors need 24 registers for sums, four for B and one for A: what AVX-512 and NEON have
// room for. With 16 registers it is six by two.
#if defined(TAPEHEAD_AVX512) || defined(__aarch64__)
constexpr int strip_vectors = 4;
#else
constexpr int strip_vectors = 2;
#endif

/// Rows x (Vectors * lanes) of C. Sums start at zero, and C is added at the end: loading it first costs
/// registers. The loops over rows and vectors are written out in full, so that the sums have names and not
/// addresses; inline, because a call and its registers saved are a twentieth of the work at a depth of 64.
template <int Rows, int Vectors, class T>
TAPEHEAD_INLINE void strip(std::int64_t depth, Operand<T> A, const T* B, std::int64_t ldb, T* C,
                           std::int64_t ldc, Onto onto, const T* factors) {
  Vec<T> sum[Rows][Vectors];
  for (std::int64_t k = 0; k < depth; ++k, A.data += A.col, B += ldb) {
    Vec<T> b[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) b[v] = load(B + v * lanes<T>);
#pragma GCC unroll 6
    for (int m = 0; m < Rows; ++m) {
      const Vec<T> a = broadcast(A.data[m * A.row]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[m][v] = fma(a, b[v], sum[m][v]);
    }
  }
#pragma GCC unroll 6
  for (int m = 0; m < Rows; ++m, C += ldc) {
    const Vec<T> f = onto == Onto::scaled_sum ? factors[m] : T(1);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      T* c = C + v * lanes<T>;
      store(c, onto == Onto::nothing ? sum[m][v] : fma(load(c), f, sum[m][v]));
    }
  }
}

/// All rows, strip by strip, for one column of B's vectors.
template <int Vectors, class T>
void strips(std::int64_t rows, std::int64_t depth, Operand<T> A, const T* B, std::int64_t ldb, T* C,
            std::int64_t ldc, Onto onto, const T* factors) {
  for (std::int64_t m = 0, n; m < rows; m += n) {
    const std::int64_t left = rows - m;
    const Operand<T> a{A.data + m * A.row, A.row, A.col};
    n = left >= 6 ? 6 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    if (n == 6) strip<6, Vectors>(depth, a, B, ldb, C + m * ldc, ldc, onto, factors ? factors + m : factors);
    if (n == 4) strip<4, Vectors>(depth, a, B, ldb, C + m * ldc, ldc, onto, factors ? factors + m : factors);
    if (n == 2) strip<2, Vectors>(depth, a, B, ldb, C + m * ldc, ldc, onto, factors ? factors + m : factors);
    if (n == 1) strip<1, Vectors>(depth, a, B, ldb, C + m * ldc, ldc, onto, factors ? factors + m : factors);
  }
}

/// The remaining vectors of B, at most Vectors of them at a time.
template <int Vectors, class T>
void columns(std::int64_t rows, std::int64_t vectors, std::int64_t depth, Operand<T> A, const T* B,
             std::int64_t ldb, T* C, std::int64_t ldc, Onto onto, const T* factors) {
  for (; vectors >= Vectors; vectors -= Vectors) {
    strips<Vectors>(rows, depth, A, B, ldb, C, ldc, onto, factors);
    B += Vectors * lanes<T>, C += Vectors * lanes<T>;
  }
  if constexpr (Vectors > 1)
    if (vectors > 0) columns<Vectors - 1>(rows, vectors, depth, A, B, ldb, C, ldc, onto, factors);
}

}  // namespace

template <class T>
void tile_product(std::int64_t rows, std::int64_t cols, std::int64_t depth, Operand<T> A, const T* B,
                  std::int64_t ldb, T* C, std::int64_t ldc, Onto onto, const T* factors) {
  columns<strip_vectors>(rows, cols / lanes<T>, depth, A, B, ldb, C, ldc, onto, factors);
}

template void tile_product(std::int64_t, std::int64_t, std::int64_t, Operand<float>, const float*,
                           std::int64_t, float*, std::int64_t, Onto, const float*);
template void tile_product(std::int64_t, std::int64_t, std::int64_t, Operand<double>, const double*,
                           std::int64_t, double*, std::int64_t, Onto, const double*);

}  // namespace tapehead::kernels
