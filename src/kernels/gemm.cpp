// Products are cut into parts for the threads, and parts into blocks for the caches. gemm_block.cpp
// multiplies a block in vectors, gemm_bf16.cpp on a matrix unit. Products with a vector, which are limited by
// memory, are in gemv.hpp.

#include "kernels/gemm.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/gemm_bf16.hpp"
#include "kernels/gemm_block.hpp"
#include "kernels/gemv.hpp"
#include "kernels/parallel.hpp"

namespace tapehead::kernels {
namespace {

using std::int64_t;

/// Each thread takes several parts, so that no thread waits long for another one that was held up. A part is
/// at least two panels wide, or so many rows tall.
constexpr int64_t parts_per_thread = 2, part_panels = 2, part_rows = 48;

/// A whole product on one thread.
template <class T> void product(bool bf16, int64_t m, int64_t n, int64_t k, const Matrix<T>& A, const Matrix<T>& B,
                                T* C, int64_t c_row, const Start<T>& D) {
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
  auto* multiply = &block<T>;
  if constexpr (std::is_same_v<T, float>)
    if (bf16) multiply = &bf16_block;
  const int64_t width = bf16 ? bf16_cols : block_cols<T>;
  for (int64_t j = 0; j < n; j += width)
    for (int64_t p = 0; p < k; p += gemm_depth)
      multiply(m, std::min(width, n - j), std::min(gemm_depth, k - p), {A.at(0, p), A.row, A.col},
               {B.at(p, j), B.row, B.col}, C + j, c_row, p > 0 ? Start<T>{C + j, c_row} : D.at(0, j));
}

/// Cuts the products into parts for the threads to take. A batch is cut between its products. If these are
/// few, each is cut into blocks of columns, which share nothing, and then into blocks of rows, which have to
/// pack B again.
template <class T> void share_out(int64_t batch, int64_t m, int64_t n, int64_t k, const Matrix<T>& A,
                                  const int64_t* a_at, const Matrix<T>& B, const int64_t* b_at, T* C, int64_t c_row,
                                  const Start<T>& D) {
  if (batch == 0 || m == 0 || n == 0) return;
  constexpr int64_t W = tile_cols<T>;
  const bool bf16 = std::is_same_v<T, float> && bf16_pays(m, n, k);
  const int64_t work = batch * m * n * k / lanes<T>, threads = work < parallel_work ? 1 : available_threads();
  if (threads == 1) {
    for (int64_t b = 0; b < batch; ++b)
      product<T>(bf16, m, n, k, {A.data + a_at[b], A.row, A.col}, {B.data + b_at[b], B.row, B.col}, C + b * m * n,
                 c_row, D.at(b * m, 0));
    return;
  }
  const int64_t parts = (bf16 ? 1 : parts_per_thread) * threads, groups = std::min(batch, parts), each = parts / groups;
  const int64_t wide = std::clamp<int64_t>(n / (part_panels * W), 1, each),
                tall = std::clamp<int64_t>(m / part_rows, 1, each);
  // The unit needs A in planes too. So there are fewer parts, and if C is tall, each row is packed only once.
  const int64_t down = bf16 && m > n ? tall : std::min(tall, each / wide), across = std::min(wide, each / down);
  const auto column = [&](int64_t c) { return c == across ? n : n * c / across / W * W; };
  parallel_for(groups * down * across, work, [&](int64_t part) {
    const int64_t g = part / (down * across), r = part / across % down, c = part % across;
    const int64_t i = m * r / down, rows = m * (r + 1) / down - i, j = column(c), cols = column(c + 1) - j;
    for (int64_t b = batch * g / groups; b < batch * (g + 1) / groups; ++b)
      product<T>(bf16, rows, cols, k, {A.at(i, 0) + a_at[b], A.row, A.col}, {B.at(0, j) + b_at[b], B.row, B.col},
                 C + b * m * n + i * c_row + j, c_row, D.at(b * m + i, j));
  });
}

}  // namespace

template <class T> void gemm_batch(int64_t batch, int64_t m, int64_t n, int64_t k, const T* A, const int64_t* a_at,
                                   int64_t a_row, int64_t a_col, const T* B, const int64_t* b_at, int64_t b_row,
                                   int64_t b_col, T* C, bool accumulate) {
  share_out<T>(batch, m, n, k, {A, a_row, a_col}, a_at, {B, b_row, b_col}, b_at, C, n, {accumulate ? C : nullptr, n});
}

template <class T> void gemm(int64_t m, int64_t n, int64_t k, const T* A, int64_t a_row, int64_t a_col, const T* B,
                             int64_t b_row, int64_t b_col, T* C, int64_t c_row, bool accumulate) {
  const int64_t at = 0;
  share_out<T>(1, m, n, k, {A, a_row, a_col}, &at, {B, b_row, b_col}, &at, C, c_row, {accumulate ? C : nullptr, c_row});
}

template <class T> void gemm_row(int64_t m, int64_t n, int64_t k, const T* A, int64_t a_row, int64_t a_col, const T* B,
                                 int64_t b_row, int64_t b_col, const T* row, T* C, int64_t c_row) {
  const int64_t at = 0;
  share_out<T>(1, m, n, k, {A, a_row, a_col}, &at, {B, b_row, b_col}, &at, C, c_row, {row, 0});
}

#define TAPEHEAD_GEMM(T)                                                                                              \
  template void gemm(int64_t, int64_t, int64_t, const T*, int64_t, int64_t, const T*, int64_t, int64_t, T*, int64_t,  \
                     bool);                                                                                           \
  template void gemm_row(int64_t, int64_t, int64_t, const T*, int64_t, int64_t, const T*, int64_t, int64_t, const T*, \
                         T*, int64_t);                                                                                \
  template void gemm_batch(int64_t, int64_t, int64_t, int64_t, const T*, const int64_t*, int64_t, int64_t, const T*,  \
                           const int64_t*, int64_t, int64_t, T*, bool);
TAPEHEAD_GEMM(float)
TAPEHEAD_GEMM(double)
#undef TAPEHEAD_GEMM

}  // namespace tapehead::kernels
