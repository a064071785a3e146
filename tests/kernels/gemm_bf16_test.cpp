// Products large enough for a matrix unit: where there is none, the same tests hold for vectors.
#include "kernels/gemm_bf16.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "testing.hpp"

using namespace tapehead::kernels;
using std::int64_t;

namespace {

/// The next of a fixed sequence of numbers in (-1, 1).
float next() {
  static std::uint64_t s = 2463534242u;
  s ^= s << 13, s ^= s >> 7, s ^= s << 17;
  return static_cast<float>(static_cast<double>(s >> 11) * 0x1p-52 - 1);
}

struct Sizes {
  int64_t m, n, k;
};

/// An m x n matrix, row by row or column by column, with one number of nothing between the lines.
struct Numbers {
  int64_t m, n, row, col;
  std::vector<float> data;
  Numbers(int64_t rows, int64_t cols, bool turned)
      : m(rows), n(cols), row(turned ? 1 : cols + 1), col(turned ? rows + 1 : 1) {
    data.assign(static_cast<std::size_t>((m + 1) * (n + 1)), std::numeric_limits<float>::quiet_NaN());
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) at(i, j) = next();
  }
  float& at(int64_t i, int64_t j) { return data[static_cast<std::size_t>(i * row + j * col)]; }
  float at(int64_t i, int64_t j) const { return data[static_cast<std::size_t>(i * row + j * col)]; }
};

/// Of sizes that go to the matrix unit, where there is one.
std::vector<float> product(const Numbers& A, const Numbers& B) {
  REQUIRE(bf16_pays(A.m, B.n, A.n) == bf16_pays(512, 512, 512));
  std::vector<float> C(static_cast<std::size_t>(A.m * B.n));
  gemm<float>(A.m, B.n, A.n, A.data.data(), A.row, A.col, B.data.data(), B.row, B.col, C.data(), B.n);
  return C;
}

/// The largest error of C = row + A B in what gemm.hpp allows: gemm_error(k) epsilon (|row| + |A| |B|), and
/// `lost` to underflow.
double worst_error(const Numbers& A, const Numbers& B, const std::vector<float>& C, double lost = 0,
                   const std::vector<float>* row = nullptr) {
  double worst = 0;
  for (int64_t i = 0; i < A.m; ++i)
    for (int64_t j = 0; j < B.n; ++j) {
      double sum = row == nullptr ? 0 : static_cast<double>((*row)[static_cast<std::size_t>(j)]), size = std::abs(sum);
      if (std::isinf(sum)) continue;
      for (int64_t p = 0; p < A.n; ++p) {
        const double x = static_cast<double>(A.at(i, p)) * static_cast<double>(B.at(p, j));
        sum += x, size += std::abs(x);
      }
      const double error = std::abs(sum - static_cast<double>(C[static_cast<std::size_t>(i * B.n + j)]));
      const double allowed = gemm_error(A.n) * static_cast<double>(std::numeric_limits<float>::epsilon()) * size;
      if (!(error <= 0)) worst = std::max(worst, error / (allowed + lost));
      if (std::isnan(error)) return error;
    }
  return worst;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("gemm_bf16: every edge of tiles, groups and blocks, in every orientation") {
  for (const Sizes& of : {Sizes{96, 96, 96},
                          {95, 127, 130},
                          {65, 192, 160},
                          {190, 31, 160},
                          {1000, 22, 64},
                          {64, 1030, 32},
                          {161, 159, 383},
                          {63, 95, 900},
                          {130, 520, 400}})
    for (bool a_turned : {false, true})
      for (bool b_turned : {false, true}) {
        CAPTURE(of.m);
        CAPTURE(a_turned);
        CAPTURE(b_turned);
        const Numbers A(of.m, of.k, a_turned), B(of.k, of.n, b_turned);
        CHECK(worst_error(A, B, product(A, B)) <= 1);
      }
}

TEST_CASE("gemm_bf16: more exact than the order of a loop") {
  const Numbers A(128, 384, false), B(384, 128, false);
  if (!bf16_pays(128, 128, 384)) return;
  double ours = 0, loop = 0;
  const std::vector<float> C = product(A, B);
  for (int64_t i = 0; i < A.m; ++i)
    for (int64_t j = 0; j < B.n; ++j) {
      double sum = 0;
      float chain = 0;
      for (int64_t p = 0; p < A.n; ++p) {
        sum += static_cast<double>(A.at(i, p)) * static_cast<double>(B.at(p, j));
        chain = std::fma(A.at(i, p), B.at(p, j), chain);
      }
      ours += std::pow(static_cast<double>(C[static_cast<std::size_t>(i * B.n + j)]) - sum, 2);
      loop += std::pow(static_cast<double>(chain) - sum, 2);
    }
  CHECK(ours < loop);
}

TEST_CASE("gemm_bf16: whole numbers come out whole, zeros without a sign") {
  Numbers A(96, 120, false), B(120, 150, true);
  for (int64_t i = 0; i < A.m; ++i)
    for (int64_t p = 0; p < A.n; ++p) A.at(i, p) = static_cast<float>((i * 7919 + p * 104729) % 4001 - 2000);
  for (int64_t p = 0; p < B.m; ++p)
    for (int64_t j = 0; j < B.n; ++j) B.at(p, j) = static_cast<float>((p * 31 + j * 17) % 81 - 40);
  for (int64_t p = 0; p < A.n; ++p) A.at(5, p) = -0.0F;
  const std::vector<float> C = product(A, B);
  bool ok = true;
  for (int64_t i = 0; i < A.m; ++i)
    for (int64_t j = 0; j < B.n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < A.n; ++p) sum += A.at(i, p) * B.at(p, j);
      const float c = C[static_cast<std::size_t>(i * B.n + j)];
      ok = ok && c == sum && std::signbit(c) == std::signbit(sum);
    }
  CHECK(ok);
}

TEST_CASE("gemm_bf16: lines of every size, down to the subnormal and up to overflow") {
  for (bool turned : {false, true}) {
    Numbers A(128, 128, turned), B(128, 96, turned);
    for (int64_t i = 0; i < A.m; ++i)  // 2^-140 … 2^114
      for (int64_t p = 0; p < A.n; ++p) A.at(i, p) = std::ldexp(A.at(i, p), static_cast<int>(2 * i - 140));
    CHECK(worst_error(A, B, product(A, B), 0x1p-140) <= 1);
    for (int64_t p = 0; p < B.m; ++p)
      for (int64_t j = 0; j < B.n; ++j) B.at(p, j) = std::ldexp(B.at(p, j), static_cast<int>(j % 12 - 6));
    CHECK(worst_error(A, B, product(A, B), 0x1p-140) <= 1);
  }
}

TEST_CASE("gemm_bf16: small times small, where parts of products are subnormal") {
  for (bool turned : {false, true}) {
    Numbers A(96, 96, turned), B(96, 96, turned);
    for (float& x : A.data) x = std::ldexp(x, -60);
    for (float& x : B.data) x = std::ldexp(x, -62);
    CHECK(worst_error(A, B, product(A, B), 0x1p-140) <= 1);
  }
}

TEST_CASE("gemm_bf16: a matrix times one is that matrix, subnormal numbers, infinities and all") {
  Numbers one(128, 128, false), B(128, 128, false);
  for (int64_t i = 0; i < 128; ++i)
    for (int64_t j = 0; j < 128; ++j) one.at(i, j) = i == j ? 1.0F : 0.0F;
  for (int64_t p = 0; p < 128; ++p)
    for (int64_t j = 0; j < 128; ++j) {
      const int e = static_cast<int>((p * 37 + j * 11) % 190 - 148);
      B.at(p, j) = j % 3 == 0 ? B.at(p, j) : std::ldexp(B.at(p, j), e);
    }
  const auto equal = [](const std::vector<float>& C, const Numbers& M) {
    bool ok = true;
    for (int64_t i = 0; i < M.m; ++i)
      for (int64_t j = 0; j < M.n; ++j) ok = ok && C[static_cast<std::size_t>(i * M.n + j)] == M.at(i, j);
    return ok;
  };
  CHECK(equal(product(one, B), B));
  CHECK(equal(product(B, one), B));
}

TEST_CASE("gemm_bf16: infinity and NaN spoil their own row or column, to the bit nothing else") {
  const float all_ones = std::bit_cast<float>(0xffffffffu), inf = std::numeric_limits<float>::infinity();
  for (const float x : {inf, -inf, std::numeric_limits<float>::quiet_NaN(), all_ones, std::bit_cast<float>(0x7fffffffu),
                        std::numeric_limits<float>::max(), 1e-40F})
    for (bool turned : {false, true}) {
      CAPTURE(x);
      Numbers A(121, 150, turned), B(150, 125, turned);
      const std::vector<float> before = product(A, B);
      Numbers A2 = A, B2 = B;
      A2.at(41, 77) = x, B2.at(140, 63) = x;
      const std::vector<float> row = product(A2, B), column = product(A, B2);
      bool others = true, own = true;
      for (int64_t i = 0; i < 121; ++i)
        for (int64_t j = 0; j < 125; ++j) {
          const auto at = static_cast<std::size_t>(i * 125 + j);
          const auto right = [&](const Numbers& a, const Numbers& b, float c) {
            float sum = 0;
            for (int64_t p = 0; p < 150; ++p) sum += a.at(i, p) * b.at(p, j);
            return std::isnan(sum) ? std::isnan(c) : std::isinf(sum) ? c == sum : std::isfinite(c);
          };
          others = others && (i == 41 || std::memcmp(&row[at], &before[at], 4) == 0) &&
                   (j == 63 || std::memcmp(&column[at], &before[at], 4) == 0);
          own = own && (i != 41 || right(A2, B, row[at])) && (j != 63 || right(A, B2, column[at]));
        }
      CHECK(others);
      CHECK(own);
    }
}

TEST_CASE("gemm_bf16: the same bits for a part, however it lies") {
  const Numbers A(200, 420, false), B(420, 210, false);
  const std::vector<float> whole = product(A, B);
  Numbers turned(200, 420, true);
  for (int64_t i = 0; i < 200; ++i)
    for (int64_t p = 0; p < 420; ++p) turned.at(i, p) = A.at(i, p);
  CHECK(same_bits(product(turned, B), whole));

  std::vector<float> part(static_cast<std::size_t>(90 * 127));
  gemm<float>(90, 127, 420, A.data.data() + 11 * A.row, A.row, A.col, B.data.data() + 7, B.row, B.col, part.data(),
              127);
  bool ok = true;
  for (int64_t i = 0; i < 90; ++i)
    for (int64_t j = 0; j < 127; ++j)
      ok = ok && part[static_cast<std::size_t>(i * 127 + j)] == whole[static_cast<std::size_t>((i + 11) * 210 + j + 7)];
  CHECK(ok);
}

TEST_CASE("gemm_bf16: sums start from a row, and a part of it gives the same bits") {
  for (const bool subnormal : {false, true}) {
    CAPTURE(subnormal);
    Numbers A(200, 420, false);
    const Numbers B(420, 210, false);
    for (int64_t p = 0; p < A.n; ++p) A.at(20, p) = 0, A.at(31, p) = std::ldexp(A.at(31, p), -130);
    std::vector<float> row(210), whole(200 * 210), part(90 * 127);
    for (float& x : row) x = 3 * next();
    row[40] = std::numeric_limits<float>::infinity();
    if (subnormal) row[13] = 1e-40F, row[150] = -3e-42F;
    const auto into = [&](int64_t m, int64_t n, int64_t i, int64_t j, std::vector<float>& C) {
      gemm_row<float>(m, n, 420, A.data.data() + i * A.row, A.row, A.col, B.data.data() + j, B.row, B.col,
                      row.data() + j, C.data(), n);
    };
    into(200, 210, 0, 0, whole), into(90, 127, 11, 7, part);
    bool ok = true, own = true;
    for (int64_t i = 0; i < 90; ++i)
      ok = ok && std::memcmp(&part[static_cast<std::size_t>(i * 127)],
                             &whole[static_cast<std::size_t>((i + 11) * 210 + 7)], 127 * 4) == 0;
    for (int64_t j = 0; j < 210; ++j)
      own = own && whole[static_cast<std::size_t>(20 * 210 + j)] == row[static_cast<std::size_t>(j)];
    CHECK(ok);
    CHECK(own);  // no product is added to it
    CHECK(worst_error(A, B, whole, 0, &row) <= 1);
  }
}
