// Matrix products against three plain loops, and against each other: an element must not depend on the path
// it took.
#include "kernels/gemm.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <type_traits>
#include <vector>

#include "kernels/gemm_problem.hpp"
#include "kernels/vec.hpp"
#include "testing.hpp"
#include "threads.hpp"

using namespace tapehead::kernels;
using std::int64_t;
using namespace gemm_test;

namespace {

/// Checks C (+)= A B against plain loops in double (for double itself: in long double, where that is wider),
/// within the bound that gemm.hpp states, and that nothing beside C was written. `shift` moves all three off
/// alignment.
template <class T> void check(int64_t m, int64_t n, int64_t k, Layout a = Layout::rows, Layout b = Layout::rows,
                              bool accumulate = false, int64_t shift = 0) {
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CAPTURE(static_cast<int>(a));
  CAPTURE(static_cast<int>(b));
  using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;
  const Factor<T> A(m, k, a, shift), B(k, n, b, shift);
  const int64_t c_row = n + 2;
  std::vector<T> C(static_cast<std::size_t>(shift + m * c_row + 2)), before;
  for (T& x : C) x = static_cast<T>(next());
  before = C;
  multiply(A, B, C.data() + shift, c_row, accumulate);

  double worst = 0;  // in units of epsilon (|A| |B|)
  bool untouched = true;
  std::vector<char> inside(C.size(), 0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(shift + i * c_row + j);
      inside[at] = 1;
      Wide sum = accumulate ? before[at] : T(0), size = std::abs(sum);
      for (int64_t p = 0; p < k; ++p) {
        const Wide product = static_cast<Wide>(A.at(i, p)) * B.at(p, j);
        sum += product, size += std::abs(product);
      }
      const double error = static_cast<double>(std::abs(sum - C[at]));
      if (!(error <= 0)) worst = std::max(worst, error / static_cast<double>(size) / std::numeric_limits<T>::epsilon());
      if (std::isnan(error)) worst = infinity<double>;
    }
  for (std::size_t i = 0; i < C.size(); ++i) untouched = untouched && (inside[i] || C[i] == before[i]);
  // With double measured in a long double no wider than itself, the reference errs as much again.
  const double reference = std::numeric_limits<Wide>::digits > std::numeric_limits<T>::digits ? 1 : 2;
  CHECK(worst <= reference * gemm_error(k));
  CHECK(untouched);
}

/// n numbers that end where a page begins which nobody may touch.
template <class T> class Guarded {
 public:
  explicit Guarded(int64_t n) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
    size_ = (bytes / page_ + 2) * page_;
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    memory_ = static_cast<char*>(memory);
    REQUIRE(mprotect(memory_ + size_ - page_, page_, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(memory_ + size_ - page_ - bytes);
    for (int64_t i = 0; i < n; ++i) data_[i] = static_cast<T>(next());
  }
  ~Guarded() { munmap(memory_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  T* data() const { return data_; }

 private:
  std::size_t page_, size_;
  char* memory_;
  T* data_;
};

// The tile is 12 x 2 vectors or 6 x 2, and a vector 2 to 16 elements: one below, at and above every edge for
// each.
constexpr int64_t edges[] = {1,  2,  3,  5,  6,  7,  11, 12, 13, 15, 16, 17, 23,
                             24, 25, 31, 32, 33, 47, 48, 49, 63, 64, 65, 70};

}  // namespace

TEST_CASE_TEMPLATE("gemm: every size around the edges of a tile", T, float, double) {
  for (int64_t m : edges)
    for (int64_t n : edges) check<T>(m, n, (m * 7 + n) % 19 + 1);
  for (int64_t k : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 70})
    for (int64_t n : {1, 3, 8, 17, 40}) check<T>(13, n, k), check<T>(n, 13, k), check<T>(1, n, k);
}

TEST_CASE_TEMPLATE("gemm: sizes around the blocks of depth, columns and rows", T, float, double) {
  for (int64_t k : {gemm_depth - 1, gemm_depth, gemm_depth + 1, 2 * gemm_depth, 8 * gemm_depth, 9 * gemm_depth + 5}) {
    check<T>(13, 37, k), check<T>(30, 5, k), check<T>(1, 19, k), check<T>(19, 1, k), check<T>(1, 1, k);
    check<T>(5, 6, k, Layout::rows, Layout::columns), check<T>(1, 19, k, Layout::rows, Layout::columns);
    check<T>(26, 40, k, Layout::columns, Layout::rows, true),
        check<T>(1, 1, k, Layout::every_other, Layout::rows, true);
  }
  for (int64_t n : {95, 96, 97, 255, 256, 257, 511, 512, 513, 1023, 1025, 1100}) {
    check<T>(25, n, 3), check<T>(24, n, 3), check<T>(1, n, 5), check<T>(n, 1, 5), check<T>(n, 1, 5, Layout::columns);
    check<T>(n, 9, 4, Layout::columns, Layout::columns);
  }
  check<T>(100, 130, 300), check<T>(257, 100, 258, Layout::columns, Layout::columns);
}

TEST_CASE_TEMPLATE("gemm: every pair of layouts, at every alignment", T, float, double) {
  for (Layout a : all_layouts)
    for (Layout b : all_layouts)
      for (bool accumulate : {false, true}) {
        check<T>(29, 71, 21, a, b, accumulate);
        check<T>(7, 6, 8, a, b, accumulate);
        check<T>(1, 37, 19, a, b, accumulate), check<T>(37, 1, 19, a, b, accumulate),
            check<T>(1, 1, 300, a, b, accumulate);
      }
  for (int64_t shift = 0; shift < 16; ++shift) {
    check<T>(25, 67, 33, Layout::rows, Layout::rows, false, shift);
    check<T>(13, 110, 18, Layout::columns, Layout::columns, true, shift);
    check<T>(1, 50, 18, Layout::rows, Layout::rows, false, shift),
        check<T>(50, 1, 18, Layout::rows, Layout::rows, false, shift);
  }
}

TEST_CASE_TEMPLATE("gemm: an element has the same bits on every path of vectors", T, float, double) {
  const InVectors vectors;
  const int64_t m = 61, n = 150, k = 3 * gemm_depth + 37;
  const auto size = static_cast<std::size_t>(m * n);
  for (Layout a : all_layouts)
    for (Layout b : all_layouts) {
      CAPTURE(static_cast<int>(a));
      CAPTURE(static_cast<int>(b));
      const Factor<T> A(m, k, a), B(k, n, b), plain_A = A.plain(), plain_B = B.plain();
      std::vector<T> whole(size), copy(size), part(size);
      multiply(A, B, whole.data(), n);
      multiply(plain_A, plain_B, copy.data(), n);
      CHECK(whole == copy);
      // Any rectangle of C by itself: one element, a row, a column, a few of each.
      for (const auto& of : Sizes<4>{{5, 7, 1, 1},
                                     {0, 0, 1, n},
                                     {m - 1, 3, 1, 5},
                                     {0, n - 1, m, 1},
                                     {1, 2, 7, 9},
                                     {20, 0, 30, 33},
                                     {0, 40, m, 97}}) {
        const int64_t i = of[0], j = of[1], rows = of[2], cols = of[3];
        gemm(rows, cols, k, A.data() + i * A.row, A.row, A.col, B.data() + j * B.col, B.row, B.col, part.data(), cols);
        bool ok = true;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < cols; ++c)
            ok = ok && same(part[static_cast<std::size_t>(r * cols + c)],
                            whole[static_cast<std::size_t>((i + r) * n + j + c)]);
        CAPTURE(rows);
        CAPTURE(cols);
        CHECK(ok);
      }
    }
}

TEST_CASE_TEMPLATE("gemm: nothing is read or written behind the end", T, float, double) {
  for (const auto& of : Sizes<3>{{1, 1, 1},
                                 {6, 8, 6},
                                 {6, 6, 8},
                                 {13, 37, 19},
                                 {1, 37, 19},
                                 {37, 1, 19},
                                 {50, 70, 33},
                                 {60, 131, 9},
                                 {95, 126, 90}}) {
    const int64_t m = of[0], n = of[1], k = of[2];
    const Guarded<T> A(m * k), B(k * n), C(m * n);
    for (bool a_turned : {false, true})
      for (bool b_turned : {false, true}) {  // a fault ends the program: that these are reached is the test
        gemm(m, n, k, A.data(), a_turned ? 1 : k, a_turned ? m : 1, B.data(), b_turned ? 1 : n, b_turned ? k : 1,
             C.data(), n);
        gemm(m, n, k, A.data(), a_turned ? 1 : k, a_turned ? m : 1, B.data(), b_turned ? 1 : n, b_turned ? k : 1,
             C.data(), n, true);
        CHECK(std::isfinite(C.data()[m * n - 1]));
      }
  }
}

TEST_CASE_TEMPLATE("gemm: nothing to do, nothing to sum", T, float, double) {
  std::vector<T> C{1, 2, 3, 4, 5, 6};
  const std::vector<T> zeros(6, T(0)), before = C;
  gemm<T>(0, 3, 4, nullptr, 4, 1, nullptr, 3, 1, C.data(), 3);
  gemm<T>(2, 0, 4, nullptr, 4, 1, nullptr, 0, 1, C.data(), 3);
  gemm<T>(2, 3, 0, nullptr, 0, 1, nullptr, 3, 1, C.data(), 3, true);
  gemm_batch<T>(0, 2, 3, 4, nullptr, nullptr, 4, 1, nullptr, nullptr, 3, 1, C.data());
  CHECK(C == before);
  gemm<T>(2, 3, 0, nullptr, 0, 1, nullptr, 3, 1, C.data(), 3);
  CHECK(C == zeros);
  for (const auto& of : Sizes<2>{{1, 1}, {1, 3}, {3, 1}}) {
    const int64_t m = of[0], n = of[1];
    C = before;
    gemm<T>(m, n, 0, nullptr, 0, 1, nullptr, n, 1, C.data(), n);
    for (int64_t i = 0; i < 6; ++i) CHECK(C[static_cast<std::size_t>(i)] == (i < m * n ? T(0) : T(i + 1)));
  }
}

TEST_CASE_TEMPLATE("gemm: infinity, NaN, zero and subnormal spread as in plain loops", T, float, double) {
  const T tiny = std::numeric_limits<T>::denorm_min();
  const T specials[] = {infinity<T>, -infinity<T>, not_a_number<T>, T(0), T(-0.0), tiny, std::numeric_limits<T>::max()};
  for (const auto& of :
       Sizes<3>{{13, 37, 20}, {1, 37, 20}, {37, 1, 20}, {1, 1, 20}, {6, 8, 6}, {30, 130, 20}, {96, 90, 120}}) {
    const int64_t m = of[0], n = of[1], k = of[2];
    for (Layout layout : {Layout::rows, Layout::columns, Layout::every_other})
      for (T x : specials)
        for (bool in_A : {true, false}) {
          // One special number, small integers besides: every sum is exact, so its order does not matter.
          Factor<T> A(m, k, layout), B(k, n, layout);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t p = 0; p < k; ++p) A.at(i, p) = static_cast<T>((i + 2 * p) % 5 - 2);
          for (int64_t p = 0; p < k; ++p)
            for (int64_t j = 0; j < n; ++j) B.at(p, j) = static_cast<T>((3 * p + j) % 7 - 3);
          (in_A ? A.at(m / 2, k / 2) : B.at(k / 2, n / 2)) = x;
          std::vector<T> C(static_cast<std::size_t>(m * n));
          multiply(A, B, C.data(), n);
          bool ok = true;
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              T sum = 0;
              for (int64_t p = 0; p < k; ++p) sum += A.at(i, p) * B.at(p, j);
              ok = ok && same(C[static_cast<std::size_t>(i * n + j)], sum);
            }
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(x);
          CHECK(ok);
        }
  }
  // A subnormal result is kept, not flushed to zero.
  const T half = T(0.5), twice = tiny * 2;
  T c = 0;
  gemm<T>(1, 1, 1, &half, 1, 1, &twice, 1, 1, &c, 1);
  CHECK(c == tiny);
}

TEST_CASE_TEMPLATE("gemm: the same bits for any number of threads", T, float, double) {
  for (const auto& of : Sizes<3>{{300, 310, 320}, {1000, 40, 200}, {13, 2000, 300}, {1, 3000, 700}, {2500, 1, 900}}) {
    const int64_t m = of[0], n = of[1], k = of[2];
    const Factor<T> A(m, k, Layout::rows), B(k, n, Layout::rows);
    std::vector<T> one(static_cast<std::size_t>(m * n)), many(one.size());
    {
      const testing::Threads chosen(1);
      multiply(A, B, one.data(), n);
    }
    for (int threads : {2, 3, 5, 8}) {
      const testing::Threads chosen(threads);
      std::fill(many.begin(), many.end(), T(-1));
      multiply(A, B, many.data(), n);
      CHECK(one == many);
    }
  }
}

TEST_CASE_TEMPLATE("gemm: from several threads at once", T, float, double) {
  const Factor<T> A(150, 160, Layout::rows), B(160, 170, Layout::columns);
  std::vector<T> alone(150 * 170);
  multiply(A, B, alone.data(), 170);
  std::atomic<bool> ok = true;
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user)
    users.emplace_back([&] {
      for (int i = 0; i < 2; ++i) {
        std::vector<T> C(150 * 170);
        multiply(A, B, C.data(), 170);
        if (C != alone) ok = false;
      }
    });
  for (std::thread& user : users) user.join();
  CHECK(ok.load());
}
