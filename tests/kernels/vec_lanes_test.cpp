#include "kernels/vec_lanes.hpp"

#include "testing.hpp"

using namespace tapehead::kernels;

TEST_CASE_TEMPLATE("vec lanes: a square is transposed", T, float, double) {
  constexpr int L = lanes<T>;
  Vec<T> rows[L];
  for (int i = 0; i < L; ++i) {
    T row[L];
    for (int j = 0; j < L; ++j) row[j] = static_cast<T>(100 * i + j);
    rows[i] = load(row);
  }
  transpose(rows);
  for (int i = 0; i < L; ++i)
    for (int j = 0; j < L; ++j) CHECK(rows[i][j] == static_cast<T>(100 * j + i));
}

TEST_CASE_TEMPLATE("vec lanes: sum, maximum, any and all see every lane", T, float, double) {
  constexpr int L = lanes<T>;
  for (int place = 0; place < L; ++place) {
    T x[L] = {};
    x[place] = 5;
    const Vec<T> v = load(x), zero = T(0);
    for (int i = 0; i < L; ++i) CHECK((sum_all(v)[i] == 5 && max_all(v)[i] == 5));
    CHECK((horizontal_sum(v) == 5 && horizontal_max(-v) == 0));
    CHECK((any(v > zero) && !any(v < zero) && !all(v > zero) && all(v >= zero) && !all(v == zero)));
  }
}
