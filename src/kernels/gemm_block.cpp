// Matrix product near the processor's peak. tests/bench/gemm_ladder.hpp gets here from three plain loops, one
// idea at a time.
//
// The peak needs two multiply-adds of whole vectors every cycle, but a load feeds only one of them. So every
// loaded value must be used several times from registers. A *tile* of C, 12 rows by 2 vectors with AVX-512,
// stays in 24 registers while p runs over the depth: each step loads 2 vectors of B and 12 numbers of A, and
// does 24 multiply-adds.
//
// The loads must then hit the near caches. The depth is cut into blocks of 384, the columns into blocks of
// 512 (for float; 256 for double):
//
//     for each block of columns            C: m x 512
//       for each block of the depth        B: 384 x 512, packed: 3/4 MB, in the second-level cache
//         for each strip of 12 rows        A: 12 x 384, not packed: 18 KB, in the first-level cache
//           for each pair of vectors       C: 12 x 32, in registers
//
// *Packing* copies B so that each tile reads it sequentially: 384 steps of 32 numbers. If few rows would use
// the copy, B is read in place too.

#include "kernels/gemm_block.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "kernels/scratch.hpp"
#include "kernels/tile_product.hpp"
#include "kernels/vec.hpp"

namespace tapehead::kernels {
namespace {

using std::int64_t;

/// A copy of B pays for itself if more rows than few_rows use it, and if rows of B are more than close_rows
/// bytes apart, because then they compete for the same sets of the caches.
constexpr int64_t few_rows = 48, close_rows = 1024;

/// Writes the columns that C has of a tile's sums. (Factors come only with whole vectors.)
template <class T> [[gnu::noinline]] void put_part(int64_t rows, int64_t cols, const T* sums, int64_t sums_row, T* c,
                                                   int64_t c_row, const Start<T>& D) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      const T sum = sums[i * sums_row + j];
      c[i * c_row + j] = D.data == nullptr ? sum : D.data[i * D.row + j] + sum;
    }
}

/// C = D + A B for one tile: Rows rows, `cols` columns in Vecs vectors, the last one perhaps partly used. B
/// is read in whole vectors, one row of them every b_row elements.
template <class T, int Rows, int Vecs> void tile(int64_t k, const Matrix<T>& A, const T* b, int64_t b_row, T* c,
                                                 int64_t c_row, int64_t cols, const Start<T>& D) {
  constexpr int L = lanes<T>, groups = (Rows + 3) / 4;
  const T* a[groups];  // every fourth row; a multiple of the stride reaches the others
#pragma GCC unroll 4
  for (int g = 0; g < groups; ++g) a[g] = A.data + 4 * g * A.row;

  Vec<T> sum[Rows][Vecs];
  int64_t left = k;  // at least 1: otherwise compilers would set the sums to zero in memory
  do {
    Vec<T> row[Vecs];
#pragma GCC unroll 2
    for (int v = 0; v < Vecs; ++v) row[v] = load(b + v * L);
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {
      const Vec<T> x = a[i / 4][(i % 4) * A.row];
#pragma GCC unroll 2
      for (int v = 0; v < Vecs; ++v) sum[i][v] = fma(x, row[v], sum[i][v]);
    }
#pragma GCC unroll 4
    for (int g = 0; g < groups; ++g) a[g] += A.col;
    b += b_row;
  } while (--left > 0);

  if (cols == Vecs * L && D.data == nullptr) {
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < Vecs; ++v) store(c + i * c_row + v * L, sum[i][v]);
  } else if (cols == Vecs * L) {
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {
      const Vec<T> f = D.factors == nullptr ? T(1) : D.factors[i];
#pragma GCC unroll 2
      for (int v = 0; v < Vecs; ++v) store(c + i * c_row + v * L, fma(load(D.data + i * D.row + v * L), f, sum[i][v]));
    }
  } else {
    alignas(64) T part[Rows * Vecs * L];
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < Vecs; ++v) store(part + (i * Vecs + v) * L, sum[i][v]);
    put_part(Rows, cols, part, Vecs * L, c, c_row, D);
  }
}

/// Every tile size that can occur at an edge, so that no work is spent on rows that are not there.
template <class T>
using Tile = void (*)(int64_t, const Matrix<T>&, const T*, int64_t, T*, int64_t, int64_t, const Start<T>&);
template <class T, int Vecs, int... I>
constexpr std::array<Tile<T>, tile_rows> tiles_of(std::integer_sequence<int, I...>) {
  return {&tile<T, I + 1, Vecs>...};
}
template <class T> constexpr std::array<std::array<Tile<T>, tile_rows>, 2> tiles = {
    tiles_of<T, 1>(std::make_integer_sequence<int, tile_rows>{}),
    tiles_of<T, 2>(std::make_integer_sequence<int, tile_rows>{})};

template <class T> void any_tile(int64_t rows, int64_t cols, int64_t k, const Matrix<T>& A, const T* b, int64_t b_row,
                                 T* c, int64_t c_row, const Start<T>& D) {
  tiles<T>[cols > lanes<T>][static_cast<std::size_t>(rows - 1)](k, A, b, b_row, c, c_row, cols, D);
}

/// Calls f(i, rows) for strips of at most tile_rows rows, of nearly equal height.
template <class F> void for_each_strip(int64_t m, const F& f) {
  const int64_t strips = (m + tile_rows - 1) / tile_rows;
  const int64_t height = strips == 1 ? m : m / strips, taller = m - height * strips;
  for (int64_t i = 0, s = 0; s < strips; ++s) {
    const int64_t rows = height + (s < taller);
    f(i, rows);
    i += rows;
  }
}

}  // namespace

template <class T> void block(int64_t m, int64_t n, int64_t k, const Matrix<T>& A, const Matrix<T>& B, T* C,
                              int64_t c_row, const Start<T>& D) {
  constexpr int64_t L = lanes<T>, W = tile_cols<T>;
  const int64_t panels = (n + W - 1) / W;
  const int64_t apart = std::abs(B.row) * static_cast<int64_t>(sizeof(T));
  const bool close = apart <= close_rows;
  // B is read in place in whole panels; the last, partial one is always packed.
  const int64_t in_place = B.col == 1 && (m <= few_rows || close) ? n / W : 0;
  const bool pack_a = A.col != 1 && panels > 1;
  const int64_t of_b = (panels - in_place) * W * k;
  const Scratch<T> packed(of_b + (pack_a ? tile_rows * k : 0));
  T *const packed_b = packed + 0, *const packed_a = packed + of_b;
  const auto width = [&](int64_t j) { return n - j * W <= L ? L : W; };
  // Contiguous rows of B are read a few at a time, across all panels. Packing panel after panel would load
  // each row's pages and lines again for every panel.
  const int64_t at_once = B.col == 1 ? 16 : k;
  for (int64_t p = 0; p < k; p += at_once)
    for (int64_t j = in_place; j < panels; ++j)
      pack<T>(std::min(W, n - j * W), width(j), std::min(at_once, k - p), {B.at(p, j * W), B.col, B.row},
              packed_b + (j - in_place) * W * k + p * width(j));

  for_each_strip(m, [&](int64_t i, int64_t rows) {
    Matrix<T> a{A.at(i, 0), A.row, A.col};
    if (pack_a) {
      pack(rows, rows, k, a, packed_a);
      a = {packed_a, 1, rows};
    }
    for (int64_t j = 0; j < panels; ++j) {
      const bool direct = j < in_place;
      any_tile(rows, std::min(W, n - j * W), k, a, direct ? B.at(0, j * W) : packed_b + (j - in_place) * W * k,
               direct ? B.row : width(j), C + i * c_row + j * W, c_row, D.at(i, j * W));
    }
  });
}

template <class T> void tile_product(int64_t m, int64_t n, int64_t k, const Matrix<T>& A, const T* B, int64_t b_row,
                                     T* C, int64_t c_row, Onto onto, const T* factors) {
  if (k == 0) {
    for (int64_t i = 0; i < m && onto != Onto::sum; ++i)
      for (int64_t j = 0; j < n; ++j) C[i * c_row + j] = onto == Onto::nothing ? T(0) : factors[i] * C[i * c_row + j];
    return;
  }
  const Start<T> D{onto == Onto::nothing ? nullptr : C, c_row, onto == Onto::scaled_sum ? factors : nullptr};
  for_each_strip(m, [&](int64_t i, int64_t rows) {
    for (int64_t j = 0; j < n; j += tile_cols<T>)
      any_tile(rows, std::min(tile_cols<T>, n - j), k, {A.at(i, 0), A.row, A.col}, B + j, b_row, C + i * c_row + j,
               c_row, D.at(i, j));
  });
}

#define TAPEHEAD_BLOCK(T)                                                                                           \
  template void block(int64_t, int64_t, int64_t, const Matrix<T>&, const Matrix<T>&, T*, int64_t, const Start<T>&); \
  template void tile_product(int64_t, int64_t, int64_t, const Matrix<T>&, const T*, int64_t, T*, int64_t, Onto,     \
                             const T*);
TAPEHEAD_BLOCK(float)
TAPEHEAD_BLOCK(double)
#undef TAPEHEAD_BLOCK

}  // namespace tapehead::kernels
