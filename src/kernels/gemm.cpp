// Matrix product near the processor's peak. gemm_ladder.cpp climbs here from three plain loops, one idea a
// rung.
//
// The peak needs two multiply-adds of whole vectors every cycle, and a load feeds only one: so what is loaded
// must be used several times from registers. A *tile* of C, 12 rows by 2 vectors with AVX-512, stays in 24
// registers while p runs over the depth: each step loads 2 vectors of B and 12 numbers of A, and does 24
// multiply-adds.
//
// The loads must then come from near. The depth is cut into blocks of 384, the columns into blocks of 512
// (for float; 256 for double):
//
//     for each block of columns            C: m x 512
//       for each block of the depth        B: 384 x 512, packed: 3/4 MB, in the second-level cache
//         for each strip of 12 rows        A: 12 x 384, where it lies: 18 KB, in the first-level cache
//           for each pair of vectors       C: 12 x 32, in registers
//
// *Packing* copies B so that each tile reads it from end to end: 384 steps of 32 numbers, one after the
// other. Where few rows would use the copy, B is read where it lies as well.

#include "kernels/gemm.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "kernels/gemm_pack.hpp"
#include "kernels/gemv.hpp"
#include "kernels/parallel.hpp"
#include "kernels/vec.hpp"

namespace tapehead::kernels {
namespace {

using std::int64_t;

#if defined(TAPEHEAD_AVX512) || defined(__aarch64__)
constexpr int tile_rows = 12;  // 32 registers: 12 x 2 sums, 2 of B, 1 of A
#else
constexpr int tile_rows = 6;  // 16 registers: 6 x 2 sums, 2 of B, 1 of A
#endif
template <class T>
constexpr int64_t tile_cols = 2 * lanes<T>;
/// Columns of B that are packed at a time, to lie in the second-level cache.
template <class T>
constexpr int64_t block_cols = (3 << 18) / (gemm_depth * static_cast<int64_t>(sizeof(T)));
/// A copy of B pays for itself if more rows than these use it, and if rows of B are more than so many bytes
/// apart: then they get into each other's way in the caches.
constexpr int64_t few_rows = 48, close_rows = 1024;

/// Threads take parts: some to each, so that none waits long for one that was held up, and each two panels
/// wide.
constexpr int64_t parts_per_thread = 2, part_panels = 2;

/// What a product is added to: nothing, C itself, or one row for all (row = 0).
template <class T>
struct Start {
  const T* data;
  int64_t row;
  Start at(int64_t i, int64_t j) const { return data == nullptr ? *this : Start{data + i * row + j, row}; }
};

/// Writes the columns there are of a tile's sums.
template <class T>
[[gnu::noinline]] void put_part(int64_t rows, int64_t cols, const T* sums, int64_t sums_row, T* c,
                                int64_t c_row, const Start<T>& D) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      const T sum = sums[i * sums_row + j];
      c[i * c_row + j] = D.data == nullptr ? sum : D.data[i * D.row + j] + sum;
    }
}

/// C = D + A B for one tile: Rows rows, `cols` columns in Vecs vectors, the last one perhaps partly used. B
/// is read in whole vectors, one row of them every b_row elements.
template <class T, int Rows, int Vecs>
void tile(int64_t k, const Matrix<T>& A, const T* b, int64_t b_row, T* c, int64_t c_row, int64_t cols,
          const Start<T>& D) {
  constexpr int L = lanes<T>, groups = (Rows + 3) / 4;
  const T* a[groups];  // every fourth row: the others are reached by a multiple of the stride
#pragma GCC unroll 4
  for (int g = 0; g < groups; ++g) a[g] = A.data + 4 * g * A.row;

  Vec<T> sum[Rows][Vecs];
  int64_t left = k;  // at least 1: the sums need no place in memory for a depth of none
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

  alignas(64) T part[Rows * Vecs * L];
  const bool whole = cols == Vecs * L;
  T* to = whole ? c : part;
  const int64_t to_row = whole ? c_row : Vecs * L;
  if (whole && D.data != nullptr) {
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < Vecs; ++v) sum[i][v] = load(D.data + i * D.row + v * L) + sum[i][v];
  }
#pragma GCC unroll 12
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < Vecs; ++v) store(to + i * to_row + v * L, sum[i][v]);
  if (!whole) put_part(Rows, cols, part, Vecs * L, c, c_row, D);
}

/// Every tile size that can occur at an edge, so that no work is spent on rows that are not there.
template <class T>
using Tile = void (*)(int64_t, const Matrix<T>&, const T*, int64_t, T*, int64_t, int64_t, const Start<T>&);
template <class T, int Vecs, int... I>
constexpr std::array<Tile<T>, tile_rows> tiles_of(std::integer_sequence<int, I...>) {
  return {&tile<T, I + 1, Vecs>...};
}
template <class T>
constexpr std::array<std::array<Tile<T>, tile_rows>, 2> tiles = {
    tiles_of<T, 1>(std::make_integer_sequence<int, tile_rows>{}),
    tiles_of<T, 2>(std::make_integer_sequence<int, tile_rows>{})};

/// Memory for packed panels, kept from call to call: fresh pages cost more than the product.
template <class T>
T* workspace(int64_t size) {
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  thread_local std::unique_ptr<T, Free> memory;
  thread_local int64_t capacity = 0;
  if (size > capacity) {
    memory.reset();
    memory.reset(
        static_cast<T*>(::operator new(static_cast<std::size_t>(size) * sizeof(T), std::align_val_t(64))));
    capacity = size;
  }
  return memory.get();
}

/// One block of columns and of the depth, all rows.
template <class T>
void block(int64_t m, int64_t n, int64_t k, const Matrix<T>& A, const Matrix<T>& B, T* C, int64_t c_row,
           const Start<T>& D) {
  constexpr int64_t L = lanes<T>, W = tile_cols<T>;
  const int64_t strips = (m + tile_rows - 1) / tile_rows, panels = (n + W - 1) / W;
  const int64_t apart = std::abs(B.row) * static_cast<int64_t>(sizeof(T));
  const bool close = apart <= close_rows;
  // B is read in place in whole panels; the last, partial one is always packed.
  const int64_t in_place = B.col == 1 && (m <= few_rows || close) ? n / W : 0;
  const bool pack_a = A.col != 1 && panels > 1;
  T* const packed_b = workspace<T>((panels - in_place) * W * k + (pack_a ? tile_rows * k : 0));
  T* const packed_a = packed_b + (panels - in_place) * W * k;
  const auto width = [&](int64_t j) { return n - j * W <= L ? L : W; };
  for (int64_t j = in_place; j < panels; ++j)
    pack<T>(std::min(W, n - j * W), width(j), k, {B.at(0, j * W), B.col, B.row},
            packed_b + (j - in_place) * W * k);

  // Strips of nearly equal height: the first `taller` ones have one row more.
  const int64_t height = strips == 1 ? m : m / strips, taller = m - height * strips;
  for (int64_t i = 0, s = 0, rows; s < strips; i += rows, ++s) {
    rows = height + (s < taller);
    Matrix<T> a{A.at(i, 0), A.row, A.col};
    if (pack_a) {
      pack(rows, rows, k, a, packed_a);
      a = {packed_a, 1, rows};
    }
    for (int64_t j = 0; j < panels; ++j) {
      const bool direct = j < in_place;
      const T* b = direct ? B.at(0, j * W) : packed_b + (j - in_place) * W * k;
      tiles<T>[width(j) > L][static_cast<std::size_t>(rows - 1)](k, a, b, direct ? B.row : width(j),
                                                                 C + i * c_row + j * W, c_row,
                                                                 std::min(W, n - j * W), D.at(i, j * W));
    }
  }
}

/// A whole product on one thread.
template <class T>
void product(int64_t m, int64_t n, int64_t k, const Matrix<T>& A, const Matrix<T>& B, T* C, int64_t c_row,
             const Start<T>& D) {
  const bool add = D.data == C;
  const bool vectors = m == 1 ? n == 1 || B.row == 1 || B.col == 1 : n == 1 && (A.row == 1 || A.col == 1);
  if (!add && (k == 0 || (vectors && D.data != nullptr)))
    for (int64_t i = 0; i < m; ++i) {
      if (D.data == nullptr)
        std::fill_n(C + i * c_row, n, T(0));
      else
        std::copy_n(D.data + i * D.row, n, C + i * c_row);
    }
  if (vectors) {
    const bool onto = D.data != nullptr;
    if (m == 1 && n == 1)
      *C = dot(k, A.data, A.col, B.data, B.row, onto ? *C : T(0));
    else if (m == 1)
      matrix_vector<T>(n, k, {B.data, B.col, B.row}, A.data, A.col, C, 1, onto);
    else
      matrix_vector(m, k, A, B.data, B.row, C, c_row, onto);
    return;
  }
  for (int64_t j = 0; j < n; j += block_cols<T>)
    for (int64_t p = 0; p < k; p += gemm_depth)
      block<T>(m, std::min(block_cols<T>, n - j), std::min(gemm_depth, k - p), {A.at(0, p), A.row, A.col},
               {B.at(p, j), B.row, B.col}, C + j, c_row, p > 0 ? Start<T>{C + j, c_row} : D.at(0, j));
}

/// Cuts the products into parts for the threads to take. A batch is cut between its products; where these are
/// few, each is cut into blocks of columns, which share nothing, and only then into blocks of rows, which
/// pack B once more.
template <class T>
void share_out(int64_t batch, int64_t m, int64_t n, int64_t k, const Matrix<T>& A, const int64_t* a_at,
               const Matrix<T>& B, const int64_t* b_at, T* C, int64_t c_row, const Start<T>& D) {
  if (batch == 0 || m == 0 || n == 0) return;
  constexpr int64_t W = tile_cols<T>;
  const int64_t work = batch * m * n * k / lanes<T>, threads = work < parallel_work ? 1 : available_threads();
  if (threads == 1) {
    for (int64_t b = 0; b < batch; ++b)
      product<T>(m, n, k, {A.data + a_at[b], A.row, A.col}, {B.data + b_at[b], B.row, B.col}, C + b * m * n,
                 c_row, D.at(b * m, 0));
    return;
  }
  const int64_t parts = parts_per_thread * threads, groups = std::min(batch, parts), each = parts / groups;
  const int64_t across = std::clamp<int64_t>(n / (part_panels * W), 1, each);
  const int64_t down = std::clamp<int64_t>(m / (4 * tile_rows), 1, each / across);
  const auto column = [&](int64_t c) { return c == across ? n : n * c / across / W * W; };
  parallel_for(groups * down * across, work, [&](int64_t part) {
    const int64_t g = part / (down * across), r = part / across % down, c = part % across;
    const int64_t i = m * r / down, rows = m * (r + 1) / down - i, j = column(c), cols = column(c + 1) - j;
    for (int64_t b = batch * g / groups; b < batch * (g + 1) / groups; ++b)
      product<T>(rows, cols, k, {A.at(i, 0) + a_at[b], A.row, A.col}, {B.at(0, j) + b_at[b], B.row, B.col},
                 C + b * m * n + i * c_row + j, c_row, D.at(b * m + i, j));
  });
}

}  // namespace

template <class T>
void gemm_batch(int64_t batch, int64_t m, int64_t n, int64_t k, const T* A, const int64_t* a_at,
                int64_t a_row, int64_t a_col, const T* B, const int64_t* b_at, int64_t b_row, int64_t b_col,
                T* C, bool accumulate) {
  share_out<T>(batch, m, n, k, {A, a_row, a_col}, a_at, {B, b_row, b_col}, b_at, C, n,
               {accumulate ? C : nullptr, n});
}

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, const T* A, int64_t a_row, int64_t a_col, const T* B,
          int64_t b_row, int64_t b_col, T* C, int64_t c_row, bool accumulate) {
  const int64_t at = 0;
  share_out<T>(1, m, n, k, {A, a_row, a_col}, &at, {B, b_row, b_col}, &at, C, c_row,
               {accumulate ? C : nullptr, c_row});
}

template <class T>
void gemm_row(int64_t m, int64_t n, int64_t k, const T* A, int64_t a_row, int64_t a_col, const T* B,
              int64_t b_row, int64_t b_col, const T* row, T* C, int64_t c_row) {
  const int64_t at = 0;
  share_out<T>(1, m, n, k, {A, a_row, a_col}, &at, {B, b_row, b_col}, &at, C, c_row, {row, 0});
}

#define TAPEHEAD_GEMM(T)                                                                                    \
  template void gemm(int64_t, int64_t, int64_t, const T*, int64_t, int64_t, const T*, int64_t, int64_t, T*, \
                     int64_t, bool);                                                                        \
  template void gemm_row(int64_t, int64_t, int64_t, const T*, int64_t, int64_t, const T*, int64_t, int64_t, \
                         const T*, T*, int64_t);                                                            \
  template void gemm_batch(int64_t, int64_t, int64_t, int64_t, const T*, const int64_t*, int64_t, int64_t,  \
                           const T*, const int64_t*, int64_t, int64_t, T*, bool);
TAPEHEAD_GEMM(float)
TAPEHEAD_GEMM(double)
#undef TAPEHEAD_GEMM

}  // namespace tapehead::kernels
