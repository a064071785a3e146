#include "tapehead/attention/linear_attention.hpp"

#include <cmath>
#include <vector>

#include "models/modules.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace modules;
using testing::message;

TEST_CASE("linear attention: equal to its quadratic form, values and gradients, for every chunk") {
  const auto q = randn({2, 3, 11, 4}), k = randn({2, 3, 11, 4}, 2), v = randn({2, 3, 11, 5}, 3),
             dO = randn({2, 3, 11, 5}, 4);
  const auto gradients = [&](const auto& f) {
    Tape<double> tape;
    tape.watch({q, k, v});
    const auto grad = tape.backward(f(), dO);
    return std::vector<Tensor<double>>{grad[q], grad[k], grad[v]};
  };
  for (bool causal : {false, true}) {
    const auto whole = linear_attention_quadratic(q, k, v, causal);
    const auto expected = gradients([&] { return linear_attention_quadratic(q, k, v, causal); });
    for (std::int64_t chunk : {1, 2, 4, 11, 64}) {
      CHECK(close(linear_attention(q, k, v, causal, chunk), whole));
      const auto got = gradients([&] { return linear_attention(q, k, v, causal, chunk); });
      for (std::size_t i = 0; i < 3; ++i) CHECK(close(got[i], expected[i]));
    }
  }
  // φ, by hand: one query, two keys.
  const auto phi = [](double x) { return x > 0 ? x + 1 : std::exp(x); };
  const double a = phi(0.5) * phi(2), b = phi(0.5) * phi(-3);
  CHECK(
      linear_attention(Tensor<double>{{0.5}}, Tensor<double>{{2}, {-3}}, Tensor<double>{{10}, {20}}).item() ==
      doctest::Approx((a * 10 + b * 20) / (a + b)).epsilon(1e-14));
  const auto report = gradcheck(
      [](const auto& Q, const auto& K, const auto& V) { return linear_attention(Q, K, V, true, 2); },
      {{"Q", randn({5, 2})}, {"K", randn({5, 2}, 2)}, {"V", randn({5, 3}, 3)}}, {.order = 2});
  CHECK_MESSAGE(report.ok, report.text());
  // Where φ has its corner, both sides have slope 1.
  const auto corner = gradcheck(
      [](const auto& Q) {
        return linear_attention(Q, Tensor<double>{{1, 0.5}, {-1, 2}}, Tensor<double>{{1}, {3}});
      },
      {{"Q", zeros<double>({1, 2})}}, {.tolerance = 1e-4});
  CHECK_MESSAGE(corner.ok, corner.text());
  // Where exp(x) would be infinite, it is not what was chosen.
  const Tensor<double> large{{1000, -1000}};
  Tape<double> tape;
  tape.watch(large);
  const auto slope = tape.backward(
      sum(linear_attention(large, Tensor<double>{{1, 2}, {2, 1}}, Tensor<double>{{1}, {2}})))[large];
  CHECK(equal(slope, slope));  // no NaN

  CHECK(message<ShapeError>([&] { linear_attention(q, slice(k, 2, 0, 5), slice(v, 2, 0, 5), true); }) ==
        "linear_attention: Q (2, 3, 11, 4), K (2, 3, 5, 4), V (2, 3, 5, 5); they must be (…, Lq, d), (…, Lk, "
        "d) and (…, Lk, d_v), and "
        "Lq = Lk where causal"sv);
  CHECK(message<ValueError>([&] { linear_attention(q, k, v, true, 0); }) ==
        "linear_attention: chunk 0; it must be 1 or more"sv);
}
