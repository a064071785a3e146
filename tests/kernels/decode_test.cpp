// The kernel that attends to a cache where it lies, beside softmax written out in double.
#include "kernels/decode.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "testing.hpp"

using namespace tapehead::kernels;
using std::int64_t;

namespace {

double next_number() {
  static std::uint64_t state = 7;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(static_cast<int64_t>(state >> 40) - (1 << 23)) * 0x1p-23;
}

/// A cache in runs of `run_rows` rows that lie in reversed order, one block of head_rows rows a head.
template <class T> struct Cache {
  int64_t heads, length, d, dv, run_rows, runs;
  std::vector<T> keys, values;
  std::vector<int64_t> first_rows;

  Cache(int64_t h, int64_t n, int64_t key_width, int64_t value_width, int64_t rows)
      : heads(h), length(n), d(key_width), dv(value_width), run_rows(rows), runs((n + rows - 1) / rows) {
    keys.resize(static_cast<std::size_t>(heads * runs * run_rows * d));
    values.resize(static_cast<std::size_t>(heads * runs * run_rows * dv));
    for (T& x : keys) x = T(next_number());
    for (T& x : values) x = T(next_number());
    for (int64_t r = 0; r < runs; ++r) first_rows.push_back((runs - 1 - r) * run_rows);
  }
  int64_t row(int64_t h, int64_t j) const {
    return first_rows[static_cast<std::size_t>(j / run_rows)] + h * runs * run_rows + j % run_rows;
  }
  T& key(int64_t h, int64_t j, int64_t c) { return keys[static_cast<std::size_t>(row(h, j) * d + c)]; }
  T& value(int64_t h, int64_t j, int64_t c) { return values[static_cast<std::size_t>(row(h, j) * dv + c)]; }

  std::vector<T> run(int64_t group, int64_t queries, const std::vector<T>& q, T scale, int64_t window, const T* sinks) {
    const CachedRows<T> rows{keys.data(), values.data(), heads, length, d, dv, runs * run_rows, run_rows, first_rows};
    std::vector<T> out(static_cast<std::size_t>(heads * group * queries * dv), T(77));
    decode_rows(rows, group, queries, q.data(), scale, window, out.data(), sinks);
    return out;
  }
  double truth(int64_t head, int64_t group, int64_t own, const T* q, double scale, int64_t window, double sink,
               int64_t c) {
    std::vector<double> s;
    double m = sink;
    for (int64_t j = std::max<int64_t>(0, window > 0 ? own + 1 - window : 0); j <= own; ++j) {
      double dot = 0;
      for (int64_t e = 0; e < d; ++e) dot += double(q[e]) * double(key(head / group, j, e));
      s.push_back(dot * scale), m = std::max(m, s.back());
    }
    double l = sink > -std::numeric_limits<double>::infinity() ? std::exp(sink - m) : 0, sum = 0;
    for (std::size_t n = 0; n < s.size(); ++n) {
      const double p = std::exp(s[n] - m);
      l += p, sum += p * double(value(head / group, own + 1 - static_cast<int64_t>(s.size() - n), c));
    }
    return l == 0 ? 0 : sum / l;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("decode: widths, groups, windows, chunks, runs and sinks", T, float, double) {
  for (int64_t length : {1, 5, 512, 513, 1100})
    for (const auto& widths : {std::pair<int64_t, int64_t>{1, 1}, {16, 16}, {7, 19}, {64, 33}})
      for (auto [group, queries] : {std::pair<int64_t, int64_t>{1, 1}, {3, 2}, {1, 5}, {7, 1}})
        for (int64_t window : {0, 3})
          for (bool with_sinks : {false, true}) {
            const int64_t d = widths.first, dv = widths.second;
            if (queries > length) continue;
            Cache<T> cache(2, length, d, dv, length == 513 ? 16 : length);
            std::vector<T> q(static_cast<std::size_t>(2 * group * queries * d)), sinks;
            for (T& x : q) x = T(next_number());
            for (int64_t h = 0; h < 2 * group; ++h) sinks.push_back(T(next_number()));
            const auto out = cache.run(group, queries, q, T(0.5), window, with_sinks ? sinks.data() : nullptr);
            double worst = 0;
            for (int64_t row = 0; row < 2 * group * queries; ++row)
              for (int64_t c = 0; c < dv; ++c) {
                const double sink = with_sinks ? double(sinks[static_cast<std::size_t>(row / queries)])
                                               : -std::numeric_limits<double>::infinity();
                const double want = cache.truth(row / queries, group, length - queries + row % queries,
                                                q.data() + row * d, 0.5, window, sink, c);
                worst = std::max(worst, std::abs(double(out[static_cast<std::size_t>(row * dv + c)]) - want));
              }
            CAPTURE(length);
            CAPTURE(dv);
            CHECK(worst < 16 * double(std::numeric_limits<T>::epsilon()));
          }
}

TEST_CASE_TEMPLATE("decode: scores of any finite size, infinities and NaN, and nothing to read", T, float, double) {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN(),
          largest = std::numeric_limits<T>::max();
  const auto over = [&](const std::vector<T>& scores) {
    const auto n = static_cast<int64_t>(scores.size());
    Cache<T> cache(1, n, 1, 1, n);
    for (int64_t j = 0; j < n; ++j)
      cache.key(0, j, 0) = scores[static_cast<std::size_t>(j)], cache.value(0, j, 0) = T(1 + 2 * j);
    return cache.run(1, 1, {T(1)}, T(1), 0, nullptr)[0];
  };
  for (T level : {T(1e7), T(-1e9), T(1e20), T(-1e20), largest, -largest}) {
    CHECK(over({level, level}) == 2);
    CHECK(over({level, -level}) == (level > 0 ? 1 : 3));
  }
  for (const auto& row : {std::vector<T>{nan, nan}, {-inf, nan}, {inf, nan}, {nan, inf}, {inf, 0}})
    CHECK(std::isnan(over(row)));
  std::vector<T> long_row(600, T(0));  // the NaN is in another chunk than the infinity
  long_row[2] = inf, long_row[590] = nan;
  CHECK(std::isnan(over(long_row)));
  CHECK(over({-inf, -inf}) == 0);
  for (auto [heads, length, d, dv] : {std::array<int64_t, 4>{0, 3, 2, 2}, {1, 0, 2, 2}, {1, 3, 0, 2}, {1, 3, 2, 0}}) {
    Cache<T> cache(heads, length, d, dv, std::max<int64_t>(length, 1));
    const auto out = cache.run(1, length > 0 ? 1 : 0, std::vector<T>(4, T(1)), T(1), 0, nullptr);
    for (T x : out) CHECK(std::isfinite(x));
  }
}
