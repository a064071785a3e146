// Products of floats on a matrix unit for bfloat16 (Intel's AMX), as accurate as in vectors and faster.
//
// With a = a0 + a1 + a2 (bf16_planes.hpp) a product of floats is nine products of bfloat16, and the unit
// takes these exactly and sums them in float. Three of them (a1 b2, a2 b1, a2 b2) are together about half of
// the last bit of a b at most and are left out. The other six cost the unit less time than the vector units
// need for the one, since an instruction does 16 x 16 x 32 multiply-adds:
//
//     C (16 x 16 floats)  +=  A (16 rows of 32 bfloat16)  B (32 rows of 16 bfloat16)
//
// Of eight tile registers C has 2 x 2, A and B two each. Loads come from near:
//
//     B: up to 384 x 512, in planes, in the second-level cache
//     for each strip of 32 rows       A: 32 x 384, in planes
//       for each 128 of the depth     A: 32 x 128, 24 KB, in the first-level cache
//         for each group of columns   B: 128 x 32, the other 24 KB; C: 32 x 32, in registers
//
// Splitting A into planes takes the vector units a third of the time that the products take. So the next
// strip is split while this one is multiplied, a few rows of it after every four instructions to the unit.
//
// Lines with numbers that the unit gets wrong (infinities, NaN, the very small) are multiplied in vectors. If
// a row is added to the product, the sums start from it: it is loaded into every row of the registers and
// costs no extra pass.

#include "kernels/gemm_bf16.hpp"

#if defined(__AMX_BF16__) && defined(TAPEHEAD_AVX512) && defined(__linux__)

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/bf16_planes.hpp"
#include "kernels/scratch.hpp"

namespace tapehead::kernels {
namespace {

using namespace bf16;
using std::int64_t;

constexpr int64_t near_steps = 4;  // 24 KB of A and 24 KB of B

/// Eight full tiles. Constant, not on the stack: compilers take the instruction that loads it to read eight
/// bytes only and would leave the others unwritten.
struct alignas(64) Config {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr Config full_tiles;

/// The unit, set to full tiles, until the end of the scope.
struct Unit {
  Unit() { _tile_loadconfig(&full_tiles); }
  ~Unit() { _tile_release(); }
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;
};

/// 32 x 32 floats, a row every `row`.
struct Square {
  float* data;
  int64_t row;
};

/// C = D + A B for a group of rows and one of columns. Products go from the small ones to the large one;
/// after each of the six, beside(step, which) may do something for the vector units.
template <class Beside> [[gnu::noinline]] void multiply(int64_t steps, const Word* a, const Word* b,
                                                        const Start<float>& D, Square C, Beside beside) {
  const int64_t in = D.row * static_cast<int64_t>(sizeof(float)), out = C.row * static_cast<int64_t>(sizeof(float));
  if (D.data != nullptr) {
    _tile_loadd(0, D.data, in);
    _tile_loadd(1, D.data + side, in);
    _tile_loadd(2, D.data + side * D.row, in);
    _tile_loadd(3, D.data + side * D.row + side, in);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const auto load_a = [&a](int64_t plane) {
    _tile_loadd(4, a + plane * plane_words, 64);
    _tile_loadd(5, a + plane * plane_words + tile_words, 64);
  };
  const auto load_b = [&b](int64_t plane) {
    _tile_loadd(6, b + plane * plane_words, 64);
    _tile_loadd(7, b + plane * plane_words + tile_words, 64);
  };
  const auto add = [] {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  };
  for (int64_t step = 0; step < steps; ++step, a += step_words, b += step_words) {
    load_a(2), load_b(0), add(), beside(step, 0);
    load_a(1), add(), beside(step, 1);
    load_b(1), add(), beside(step, 2);
    load_a(0), add(), beside(step, 3);
    load_b(2), add(), beside(step, 4);
    load_b(0), add(), beside(step, 5);
  }
  _tile_stored(0, C.data, out);
  _tile_stored(1, C.data + side, out);
  _tile_stored(2, C.data + side * C.row, out);
  _tile_stored(3, C.data + side * C.row + side, out);
}

/// Replaces products that the unit gets wrong by products in vectors.
[[gnu::noinline]] void mend(int64_t rows, int64_t cols, int64_t k, const Matrix<float>& A, const Matrix<float>& B,
                            const Start<float>& D, const Flags& in_a, const bool* in_b, float* sums) {
  float exact[group * group];
  block<float>(rows, cols, k, A, B, exact, group, D);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      if (in_a.line[r] || in_b[c]) sums[r * group + c] = exact[r * group + c];
}

/// One row of C = D + sums (or sums alone), from squares that lie one after the other.
void put_row(int64_t n, const float* sums, const float* D, float* C) {
  for (int64_t j = 0; j < n; j += side) {
    const int64_t count = std::min(side, n - j);
    const Real sum = load(sums + j / group * group * group + j % group);
    store_up_to(C + j, D == nullptr ? sum : load_up_to(D + j, count) + sum, count);
  }
}

/// The unit treats subnormal numbers as zero. So `start` becomes the row without them, and `rest` has only
/// them, with -0 elsewhere, which changes no sum. Returns whether there were any.
bool take_out_subnormals(int64_t n, const float* row, float* start, float* rest) {
  bool any = false;
  for (int64_t j = 0; j < n; ++j) {
    const bool subnormal = row[j] != 0 && std::abs(row[j]) < std::numeric_limits<float>::min();
    start[j] = subnormal ? 0 : row[j], rest[j] = subnormal ? row[j] : -0.0f;
    any = any || subnormal;
  }
  return any;
}

/// Whether the system permits this process to use the unit.
bool granted() {
  constexpr int request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool yes = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return yes;
}

std::atomic<bool> wanted = true;

}  // namespace

void use_bf16(bool yes) { wanted = yes; }

bool bf16_pays(int64_t m, int64_t n, int64_t k) {
  const auto filled = [](int64_t x) { return (x + group - 1) / group * group; };
  return m * n * k >= 80 * 80 * 80 && 2 * filled(m) * filled(n) * filled(k) <= 3 * m * n * k &&
         wanted.load(std::memory_order_relaxed) && granted();
}

void bf16_block(int64_t m, int64_t n, int64_t k, const Matrix<float>& A, const Matrix<float>& B, float* C,
                int64_t c_row, const Start<float>& D) {
  const int64_t steps = (k + depth - 1) / depth, panels = (n + group - 1) / group, words = steps * step_words;
  const int64_t numbers = panels * group;
  const Scratch<Word> packed((2 + panels) * words + (group + 2) * numbers);
  Word* packed_a = packed + 0;
  Word* next_a = packed_a + words;
  Word* const packed_b = next_a + words;
  float* const sums = reinterpret_cast<float*>(packed_b + panels * words);  // of a strip, square after square

  // Sums start from nothing or from a row; what else there is to add is added at the end.
  Start<float> start{nullptr, 0}, later = D;
  if (D.data != nullptr && D.row == 0) {
    float* const row = sums + group * numbers;
    std::fill(row + n, row + numbers, 0.0f);
    const bool rest = take_out_subnormals(n, D.data, row, row + numbers);
    start.data = row, later.data = rest ? row + numbers : nullptr;
  }

  Packing<false> all_of_b(n, k, {B.data, B.col, B.row}, packed_b);
  all_of_b.all();
  Flags in_a, in_b;
  all_of_b.find(in_b);
  Packing<true> first(std::min(group, m), k, A, packed_a);
  first.all();
  first.find(in_a);

  const Unit unit;
  for (int64_t i = 0; i < m; i += group) {
    const int64_t rows = std::min(group, m - i);
    const bool more = i + group < m;
    Packing<true> next(std::min(group, m - i - rows), k, {A.at(i + rows, 0), A.row, A.col}, next_a);
    // Whole squares to which nothing is to be added go where they belong at once.
    const bool mended = in_a.any || in_b.any;
    const int64_t direct = later.data == nullptr && rows == group && !mended ? n / group : 0;
    for (int64_t s = 0; s < steps; s += near_steps)
      for (int64_t panel = 0; panel < panels; ++panel) {
        const Square sum{sums + panel * group * group, group}, place{C + i * c_row + panel * group, c_row};
        const bool last = s + near_steps >= steps;
        const Start<float> before = s > 0 ? Start<float>{sum.data, sum.row} : start.at(0, panel * group);
        const auto times = [&](auto beside) {
          multiply(std::min(near_steps, steps - s), packed_a + s * step_words,
                   packed_b + panel * words + s * step_words, before, panel < direct && last ? place : sum, beside);
        };
        if (more && panel < 2)  // beside the first two panels, the two halves of the next strip
          times([&](int64_t step, int64_t which) {
            if (which == 0) next.turn_to(panel * side, (s + step) * depth);
            next.rows(3 * which, std::min(3 * which + 3, side));
          });
        else
          times([](int64_t, int64_t) {});
      }
    if (more && panels == 1)
      for (int64_t p = 0; p < k; p += depth) next.turn_to(side, p), next.rows(0, side);

    for (int64_t j = 0; j < n; j += group)
      if (in_a.any || in_b.in_group(j))
        mend(rows, std::min(group, n - j), k, {A.at(i, 0), A.row, A.col}, {B.at(0, j), B.row, B.col}, start.at(0, j),
             in_a, in_b.line + j, sums + j * group);
    for (int64_t r = 0, j = direct * group; r < rows && j < n; ++r)
      put_row(n - j, sums + j * group + r * group, later.at(i + r, j).data, C + (i + r) * c_row + j);
    if (more) next.find(in_a), std::swap(packed_a, next_a);
  }
}

}  // namespace tapehead::kernels

#else

namespace tapehead::kernels {

void use_bf16(bool) {}
bool bf16_pays(std::int64_t, std::int64_t, std::int64_t) { return false; }
void bf16_block(std::int64_t, std::int64_t, std::int64_t, const Matrix<float>&, const Matrix<float>&, float*,
                std::int64_t, const Start<float>&) {}

}  // namespace tapehead::kernels

#endif
