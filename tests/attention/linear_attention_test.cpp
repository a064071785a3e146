#include "tapehead/attention/linear_attention.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "attention/rungs.hpp"
#include "models/modules.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace modules;
using testing::message;

namespace {

// The definition: all L x L weights φ(q)·φ(k), each row divided by its sum.
Tensor<double> quadratic(const Tensor<double>& Q, const Tensor<double>& K, const Tensor<double>& V, bool causal) {
  const auto phi = [](const Tensor<double>& x) {
    return where(x > 0, x + 1, exp(clamp(x, -std::numeric_limits<double>::infinity(), 0)));
  };
  const Tensor<double> all = matmul(phi(Q), mT(phi(K))), A = causal ? tril(all) : all;
  return matmul(A / sum(A, -1, true), V);
}

}  // namespace

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
    const auto whole = quadratic(q, k, v, causal);
    const auto expected = gradients([&] { return quadratic(q, k, v, causal); });
    for (std::int64_t chunk : {1, 2, 4, 11, 64}) {
      CHECK(close(linear_attention(q, k, v, causal, chunk), whole));
      const auto got = gradients([&] { return linear_attention(q, k, v, causal, chunk); });
      for (std::size_t i = 0; i < 3; ++i) CHECK(close(got[i], expected[i]));
    }
  }
  // φ, by hand: one query, two keys.
  const auto phi = [](double x) { return x > 0 ? x + 1 : std::exp(x); };
  const double a = phi(0.5) * phi(2), b = phi(0.5) * phi(-3);
  CHECK(linear_attention(Tensor<double>{{0.5}}, Tensor<double>{{2}, {-3}}, Tensor<double>{{10}, {20}}).item() ==
        doctest::Approx((a * 10 + b * 20) / (a + b)).epsilon(1e-14));
  const auto report =
      gradcheck([](const auto& Q, const auto& K, const auto& V) { return linear_attention(Q, K, V, true, 2); },
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
  const auto slope =
      tape.backward(sum(linear_attention(large, Tensor<double>{{1, 2}, {2, 1}}, Tensor<double>{{1}, {2}})))[large];
  CHECK(equal(slope, slope));  // no NaN

  CHECK(message<ShapeError>([&] { linear_attention(q, slice(k, 2, 0, 5), slice(v, 2, 0, 5), true); }) ==
        "linear_attention: Q (2, 3, 11, 4), K (2, 3, 5, 4), V (2, 3, 5, 5); they must be (…, Lq, d), (…, Lk, "
        "d) and (…, Lk, d_v), and "
        "Lq = Lk where causal"sv);
  CHECK(message<ValueError>([&] { linear_attention(q, k, v, true, 0); }) ==
        "linear_attention: chunk 0; it must be 1 or more"sv);
}

TEST_CASE_TEMPLATE("linear attention: rows far below 0 keep their weights, values and gradients", T, float, double) {
  const double far = sizeof(T) == 4 ? -104 : -800;
  const auto tensor = [](const std::vector<double>& x, const Shape& shape) { return to<T>(from_vector(x, shape)); };
  const auto V = tensor({1, 3, 8}, {3, 1});
  for (double q_level : {0.0, far, -1e6})
    for (double k_level : {0.0, far, -1e6})
      for (bool causal : {false, true})
        for (std::int64_t chunk : {1, 2, 64}) {
          const auto Q = tensor({q_level - 1, q_level - 2, q_level - 3, q_level, q_level, q_level - 5}, {3, 2});
          const auto K = tensor({k_level - 1, k_level - 1.5, k_level - 2, k_level - 1, k_level, k_level - 3}, {3, 2});
          // All elements below 0: φ = exp, and the levels cancel.
          const auto phi = [](double a, double b, double c, double d) { return std::exp(a + c) + std::exp(b + d); };
          const double q[3][2] = {{-1, -2}, {-3, 0}, {0, -5}}, k[3][2] = {{-1, -1.5}, {-2, -1}, {0, -3}},
                       v[3] = {1, 3, 8};
          Tape<T> tape;
          tape.watch({Q, K, V});
          const auto out = linear_attention(Q, K, V, causal, chunk);
          const auto grad = tape.backward(sum(out));
          for (int i = 0; i < 3; ++i) {
            double top = 0, total = 0;
            for (int j = 0; j < (causal ? i + 1 : 3); ++j) {
              const double w = phi(q[i][0], q[i][1], k[j][0], k[j][1]);
              top += w * v[j], total += w;
            }
            CHECK(double(out.at({i, 0})) == doctest::Approx(top / total).epsilon(1e-5));
            for (int c = 0; c < 2; ++c) {
              CHECK(std::isfinite(grad[Q].at({i, c})));
              CHECK(std::isfinite(grad[K].at({i, c})));
            }
          }
        }
  // One key far below the others, and first: the causal query that sees it alone gets its value.
  const auto Q = tensor({0.5, 0.5}, {2, 1}), K = tensor({far * 2, 1}, {2, 1}), two = tensor({4, 9}, {2, 1});
  for (std::int64_t chunk : {1, 2}) {
    const auto out = linear_attention(Q, K, two, true, chunk);
    CHECK(out.at({0, 0}) == 4);
    CHECK(out.at({1, 0}) == 9);
  }
  // Features that underflow against each other have no weights: an error says so.
  CHECK(message<ValueError>([&] {
          linear_attention(tensor({0, 4 * far}, {1, 2}), tensor({4 * far, 0}, {1, 2}), tensor({1}, {1, 1}));
        }).find("linear_attention: the weights of a query underflow") == 0);
}

TEST_CASE("linear attention: no keys, no queries, third order with one tensor in every role") {
  CHECK(linear_attention(ones<double>({2, 3}), ones<double>({0, 3}), ones<double>({0, 2})).to_vector() ==
        std::vector<double>(4, 0.0));
  CHECK(linear_attention(ones<double>({0, 3}), ones<double>({2, 3}), ones<double>({2, 2})).shape() == Shape{0, 2});
  CHECK(linear_attention(ones<double>({0, 3}), ones<double>({0, 3}), ones<double>({0, 2}), true).shape() ==
        Shape{0, 2});
  const Tensor<double> x = randn({4, 3}), u = randn({4, 3}, 2), w = randn({4, 3}, 3);
  for (bool causal : {false, true})
    CHECK(rungs::third_order_error([&](const auto& t) { return sum(linear_attention(t, t, t, causal, 2) * w); }, x, u) <
          1e-6);
}

TEST_CASE("linear attention: rows of width 0 are refused with that reason, unless there is no key to weigh") {
  for (bool causal : {false, true})
    CHECK(message<ShapeError>([&] {
            linear_attention(randn({2, 0}), randn({2, 0}), randn({2, 3}), causal);
          }) == "linear_attention: Q (2, 0), K (2, 0); rows of width 0 have no features to weigh keys by"sv);
  CHECK(equal(linear_attention(randn({2, 0}), randn({0, 0}), randn({0, 3})), zeros<double>({2, 3})));
}
