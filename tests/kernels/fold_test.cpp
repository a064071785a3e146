#include "kernels/fold.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "testing.hpp"
#include "threads.hpp"

using namespace tapehead::kernels;
using std::int64_t;

namespace {

/// An array of a shape whose axes lie in memory in the given order (the last one innermost).
struct Array {
  Array(const std::vector<int64_t>& shape, const std::vector<int>& order) : sizes(shape), strides(shape.size()) {
    int64_t step = 1;
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      strides[static_cast<std::size_t>(*axis)] = step;
      step *= sizes[static_cast<std::size_t>(*axis)];
    }
    data.resize(static_cast<std::size_t>(step));
    int i = 0;
    for_each_element(static_cast<int>(sizes.size()), sizes.data(), strides.data(),
                     [&](int64_t at) { data[static_cast<std::size_t>(at)] = std::sin(1.3 * ++i) + 1.5; });
  }
  /// The axes to fold, those of size 1 left out.
  FoldAxes axes(const std::vector<bool>& gone) const {
    FoldAxes a;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] == 1) continue;
      int& rank = gone[axis] ? a.gone_rank : a.kept_rank;
      (gone[axis] ? a.gone_sizes : a.kept_sizes)[rank] = sizes[axis];
      (gone[axis] ? a.gone_strides : a.kept_strides)[rank++] = strides[axis];
      a.innermost_goes = gone[axis];
    }
    return a;
  }
  std::vector<int64_t> sizes, strides;
  std::vector<double> data;
};

int64_t results_of(const FoldAxes& a) { return number_of_positions(a.kept_rank, a.kept_sizes); }

std::vector<double> summed(const FoldAxes& a, const double* x) {
  std::vector<double> y(static_cast<std::size_t>(results_of(a)), -7);
  fold_sum(a, x, [&](const double* v, int64_t n, int64_t k) { std::copy_n(v, n, y.data() + k); });
  return y;
}
std::vector<double> largest(const FoldAxes& a, const double* x, bool most) {
  std::vector<double> y(static_cast<std::size_t>(results_of(a)), -7);
  fold_extreme(a, x, most, [&](const double* v, int64_t n, int64_t k) { std::copy_n(v, n, y.data() + k); });
  return y;
}

}  // namespace

TEST_CASE("fold: every set of axes, any storage order and any number of threads give the same bits") {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{5, 7, 6}, {1, 40, 3}, {3, 1, 300}, {70, 2, 33}, {1, 1, 1}, {40, 50, 90}})
    for (int set = 0; set < 8; ++set) {
      const std::vector<bool> gone{(set & 4) != 0, (set & 2) != 0, (set & 1) != 0};
      const Array x(shape, {0, 1, 2});
      const FoldAxes axes = x.axes(gone);
      std::vector<double> plain(static_cast<std::size_t>(results_of(axes)));
      std::size_t next = 0;
      for_each_element(axes.kept_rank, axes.kept_sizes, axes.kept_strides, [&](int64_t kept) {
        double& total = plain[next++];
        for_each_element(axes.gone_rank, axes.gone_sizes, axes.gone_strides,
                         [&](int64_t at) { total += x.data[static_cast<std::size_t>(kept + at)]; });
      });
      std::vector<double> one;
      {
        const testing::Threads chosen(1);
        one = summed(axes, x.data.data());
      }
      for (std::size_t i = 0; i < plain.size(); ++i) CHECK(one[i] == doctest::Approx(plain[i]).epsilon(1e-12));
      const testing::Threads chosen(3);
      for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {2, 0, 1}}) {
        const Array stored(shape, order);
        CHECK(summed(stored.axes(gone), stored.data.data()) == one);
      }
    }
}

TEST_CASE("fold: squares, extremes, and integers that wrap around") {
  const Array x({4, 37}, {0, 1});
  const FoldAxes axes = x.axes({false, true});
  fold_squares(axes, x.data.data(), [&](const double* v, int64_t n, int64_t k) {
    for (int64_t i = 0; i < n; ++i) {
      double total = 0;
      for (std::size_t c = 0; c < 37; ++c) total += std::pow(x.data[static_cast<std::size_t>(k + i) * 37 + c], 2);
      CHECK(v[i] == doctest::Approx(total).epsilon(1e-12));
    }
  });
  for (std::size_t r = 0; r < 4; ++r) {
    const auto row = x.data.begin() + static_cast<std::ptrdiff_t>(37 * r);
    CHECK(largest(axes, x.data.data(), true)[r] == *std::max_element(row, row + 37));
    CHECK(largest(axes, x.data.data(), false)[r] == *std::min_element(row, row + 37));
  }
  const std::array<int64_t, 2> full{std::numeric_limits<int64_t>::max(), 2};
  FoldAxes two;
  two.gone_rank = 1, two.gone_sizes[0] = 2, two.gone_strides[0] = 1, two.innermost_goes = true;
  fold_sum(two, full.data(), [](const std::uint64_t* v, int64_t, int64_t) {
    CHECK(static_cast<int64_t>(*v) == std::numeric_limits<int64_t>::min() + 1);
  });
}

TEST_CASE("fold: NaN wins every extreme, and nothing has the neutral result") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (bool innermost : {true, false})
    for (int64_t place : {0, 5, 39}) {
      Array x(innermost ? std::vector<int64_t>{2, 40} : std::vector<int64_t>{40, 2}, {0, 1});
      x.data[static_cast<std::size_t>(innermost ? 40 + place : 2 * place + 1)] = nan;
      x.data[static_cast<std::size_t>(innermost ? 41 : 3)] = inf;
      for (bool most : {true, false}) {
        const auto y = largest(x.axes({!innermost, innermost}), x.data.data(), most);
        CHECK((std::isnan(y[1]) && std::isfinite(y[0])));
      }
    }
  for (bool innermost : {true, false}) {
    const Array x(innermost ? std::vector<int64_t>{3, 0} : std::vector<int64_t>{0, 3}, {0, 1});
    const FoldAxes axes = x.axes({!innermost, innermost});
    CHECK(summed(axes, x.data.data()) == std::vector<double>(3, 0));
    CHECK(largest(axes, x.data.data(), true) == std::vector<double>(3, -inf));
    CHECK(largest(axes, x.data.data(), false) == std::vector<double>(3, inf));
    CHECK(summed(x.axes({innermost, !innermost}), x.data.data()).empty());
  }
}
