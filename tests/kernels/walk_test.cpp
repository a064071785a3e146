#include "kernels/walk.hpp"

#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/parallel.hpp"
#include "testing.hpp"
#include "threads.hpp"

using namespace tapehead::kernels;
using std::int64_t;

namespace {

/// A walk over arrays of one element type, whose strides are given in elements.
template <class T>
Walk walk_of(const std::vector<int64_t>& sizes, const std::vector<std::pair<const T*, std::vector<int64_t>>>& arrays) {
  Walk w;
  w.rank = static_cast<int>(sizes.size());
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) w.sizes[axis] = sizes[axis];
  for (const auto& [data, strides] : arrays) {
    w.base[w.operands] = reinterpret_cast<char*>(const_cast<T*>(data));
    w.bytes[w.operands] = sizeof(T);
    for (std::size_t axis = 0; axis < sizes.size(); ++axis)
      w.strides[w.operands][axis] = strides[axis] * static_cast<int64_t>(sizeof(T));
    ++w.operands;
  }
  return w;
}

std::vector<float> numbers(int64_t n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  std::iota(x.begin(), x.end(), 1.0f);
  return x;
}

void subtract(int64_t n, char* const* p, const void* calls) {
  ++*static_cast<int*>(const_cast<void*>(calls));
  for (int64_t i = 0; i < n; ++i)
    reinterpret_cast<float*>(p[0])[i] =
        reinterpret_cast<const float*>(p[1])[i] - reinterpret_cast<const float*>(p[2])[i];
}

}  // namespace

TEST_CASE("for_each_position: row-major order from any position to any other") {
  const int64_t sizes[] = {2, 3, 4}, a[] = {12, 4, 1}, b[] = {1, 0, -5};
  const int64_t* const strides[] = {a, b};
  CHECK(number_of_positions(3, sizes) == 24);
  for (int64_t first = 0; first <= 24; ++first)
    for (int64_t last = first; last <= 24; ++last) {
      int64_t position = first;
      bool good = true;
      for_each_position(3, sizes, strides, first, last, [&](const int64_t* at) {
        good &= at[0] == position && at[1] == position / 12 - 5 * (position % 4);
        ++position;
      });
      CHECK((good && position == last));
    }
}

TEST_CASE("for_each_element: one element for rank 0, none where a size is 0") {
  const int64_t sizes[] = {3, 0, 2}, strides[] = {2, 2, 1};
  int calls = 0;
  for_each_element(0, sizes, strides, [&](int64_t offset) { calls += 1 + static_cast<int>(offset); });
  CHECK(calls == 1);
  for_each_element(3, sizes, strides, [&](int64_t) { ++calls; });
  CHECK(calls == 1);
  constexpr int64_t longest = std::numeric_limits<int64_t>::max();
  const int64_t beside_nothing[] = {longest, longest, 0};
  CHECK(number_of_positions(3, beside_nothing) == 0);
  for_each_element(3, beside_nothing, strides, [&](int64_t) { ++calls; });
  CHECK(calls == 1);
}

TEST_CASE("walk: broadcast, transposed, reversed and gapped operands, in rows of every length") {
  for (int64_t n : {1, 2, 7, 511, 513, 40'000})
    for (int64_t m : {1, 3}) {
      CAPTURE(n);
      CAPTURE(m);
      const std::vector<float> a = numbers(2 * m * n), b = numbers(n);
      std::vector<float> c(static_cast<std::size_t>(m * n));
      struct Layout {
        std::vector<int64_t> a, b;
        int64_t a_first, b_first;
      };
      for (const Layout& l :
           {Layout{{n, 1}, {0, 1}, 0, 0}, Layout{{1, m}, {0, 0}, 0, 0}, Layout{{2 * n, 2}, {0, -1}, 0, n - 1},
            Layout{{0, 0}, {0, 1}, 3 % (m * n), 0}, Layout{{-n, 1}, {0, 1}, (m - 1) * n, 0}}) {
        int calls = 0;
        walk(walk_of<float>({m, n}, {{c.data(), {n, 1}}, {a.data() + l.a_first, l.a}, {b.data() + l.b_first, l.b}}),
             subtract, &calls);
        bool good = true;
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j)
            good &= c[static_cast<std::size_t>(i * n + j)] ==
                    a[static_cast<std::size_t>(l.a_first + i * l.a[0] + j * l.a[1])] -
                        b[static_cast<std::size_t>(l.b_first + j * l.b[1])];
        CHECK(good);
        CHECK(calls > 0);
      }
    }
}

TEST_CASE("walk: nothing is called for an empty space, and a space of rank 0 has one element") {
  const float a = 5, b = 3;
  float c = 0;
  int calls = 0;
  walk(walk_of<float>({2, 0, 3}, {{&c, {0, 3, 1}}, {&a, {0, 0, 0}}, {&b, {0, 0, 0}}}), subtract, &calls);
  CHECK((calls == 0 && c == 0));
  walk(walk_of<float>({}, {{&c, {}}, {&a, {}}, {&b, {}}}), subtract, &calls);
  CHECK((calls == 1 && c == 2));
}

TEST_CASE("walk: neighbouring axes that are stored one after the other become one call") {
  const auto a = numbers(24);
  std::vector<float> c(24);
  int calls = 0;
  const Walk w =
      walk_of<float>({2, 3, 1, 4}, {{c.data(), {12, 4, 4, 1}}, {a.data(), {12, 4, 9, 1}}, {a.data(), {12, 4, 0, 1}}});
  walk(w, subtract, &calls);
  CHECK(calls == 1);
}

TEST_CASE_TEMPLATE("copy: elements of 1, 4 and 8 bytes, to and from any strides", T, unsigned char, float, double) {
  std::vector<T> from(60), to(60, T(0));
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i + 1);
  copy(walk_of<T>({3, 4, 5}, {{to.data(), {1, 3, 12}}, {from.data(), {20, 5, 1}}}));  // axes reversed
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      for (std::size_t k = 0; k < 5; ++k) CHECK(to[i + 3 * j + 12 * k] == from[20 * i + 5 * j + k]);
  copy(walk_of<T>({3, 20}, {{to.data(), {20, 1}}, {from.data() + 7, {0, 0}}}));
  CHECK(to == std::vector<T>(60, from[7]));
  copy(walk_of<T>({60}, {{to.data(), {1}}, {from.data(), {1}}}));
  CHECK(to == from);
}
