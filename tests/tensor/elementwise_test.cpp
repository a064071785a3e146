// The loop that every elementwise operation shares: inputs are gathered in pieces of 512, long rows cut at
// 32,768.
#include <vector>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;

namespace {

template <class E> std::vector<E> chosen(const std::vector<bool>& m, const std::vector<E>& a, const std::vector<E>& b) {
  std::vector<E> c(m.size());
  for (std::size_t i = 0; i < m.size(); ++i) c[i] = m[i] ? a[i] : b[i];
  return c;
}

}  // namespace

TEST_CASE_TEMPLATE("elementwise: rows of every length, stored with gaps, backwards, repeated", E, float, double, bool,
                   std::int64_t) {
  NumpyRandom rng(5);
  for (std::int64_t n : {1, 2, 15, 511, 512, 513, 1500, 32'768, 32'769, 70'001}) {
    CAPTURE(n);
    const auto drawn = [&](std::int64_t rows, std::int64_t columns) {
      return to<E>(rng.randint(0, 5, {rows, columns}));
    };
    const Tensor<bool> m = to<bool>(rng.randint(0, 2, {n, 3})).select(1, 1);  // every third
    const Tensor<E> a = flip(drawn(1, n)[0], 0), b = drawn(n, 2).select(1, 0), one = drawn(1, 1)[0];
    const auto wide = [&](const Tensor<E>& x) { return broadcast_to(x, {n}).to_vector(); };
    CHECK(where(m, a, b).to_vector() == chosen(m.to_vector(), a.to_vector(), b.to_vector()));
    CHECK(where(m, b, one).to_vector() == chosen(m.to_vector(), b.to_vector(), wide(one)));
    CHECK(where(contiguous(m), one, contiguous(a)).to_vector() == chosen(m.to_vector(), wide(one), a.to_vector()));
    CHECK(contiguous(b).to_vector() == b.to_vector());
  }
}

TEST_CASE("elementwise: axes that change places, and broadcast ones between them") {
  NumpyRandom rng(6);
  const auto a = rng.randn({7, 1, 600}), b = rng.randn({600, 5, 7});
  const auto c = a + permute(b, {2, 1, 0});
  REQUIRE(c.shape() == Shape{7, 5, 600});
  for (std::int64_t i = 0; i < 7; ++i)
    for (std::int64_t j = 0; j < 5; ++j)
      for (std::int64_t k : {0, 1, 511, 512, 599}) CHECK(c.at({i, j, k}) == a.at({i, 0, k}) + b.at({k, j, i}));
  CHECK((a < zeros<double>({7, 3, 600})).to_vector() == broadcast_to(a < 0.0, {7, 3, 600}).to_vector());
}
