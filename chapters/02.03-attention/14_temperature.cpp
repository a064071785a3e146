// Exercise 5: temperature-controlled attention
//
// The listing of the NumPy section with one more line: the scaled scores are divided by a temperature.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "claims.hpp"
#include "three_keys.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

const double inf = std::numeric_limits<double>::infinity();

// Effective scores Q Kᵀ / (τ √d_k); τ = 1 is the chapter's attention. Throws ValueError unless τ > 0.
Attention<double> scaled_dot_product_attention(const Tensor<double>& Q, const Tensor<double>& K,
                                               const Tensor<double>& V,
                                               const std::optional<Tensor<bool>>& mask = {},
                                               double temperature = 1) {
  if (!(temperature > 0)) throw ValueError(fmt::format("temperature {}; it must be positive", temperature));
  const auto d_k = static_cast<double>(Q.size(-1));

  auto scores = matmul(Q, K.T());  // (n_q, n_k)
  scores = scores / std::sqrt(d_k);
  scores = scores / temperature;  // the new line

  if (mask) scores = where(*mask, scores, scalar(-inf));

  const auto weights = softmax(scores, -1);
  return {.out = matmul(weights, V), .weights = weights};
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Exercise 5: temperature-controlled attention");
  const Tensor<double> Q{{0.1, 3.0, 0.1, 0.0}};
  const Tensor<double> K{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
  const Tensor<double> V{{10, 10}, {20, 20}, {30, 30}};

  for (const char* tau : {"0.1", "1.0", "10.0"}) {
    const double t = std::stod(tau);
    const auto [out, w] = scaled_dot_product_attention(Q, K, V, {}, t);
    const auto line = fmt::format("{} {} {}", tau, round(w, 3), round(out, 2));
    fmt::print("{}\n", line);
    book.claim(fmt::format("ex5_tau_{}", tau), {{"scores", matmul(Q, K.T()) / 2 / t},
                                                {"weights", w},
                                                {"output", out},
                                                {"rounded3", round(w, 3)},
                                                {"real_weights", w[0]}})
        .note(line);
  }

  const auto [cold_out, cold] = scaled_dot_product_attention(Q, K, V, {}, 0.001);
  const auto [hot_out, hot] = scaled_dot_product_attention(Q, K, V, {}, 1e6);
  const auto twenty = full<double>({1, 2}, 20);
  fmt::print("\ntau = 0.001: {} {}\ntau = 1e6:   {} {}\n", round(cold, 3), round(cold_out, 2), round(hot, 3),
             round(hot_out, 2));
  book.claim("ex5_limits", {{"cold/weights", cold}, {"cold/output", cold_out}})
      .values({{"hot/weights", hot}, {"hot/output", hot_out}})
      .holds(equal(cold, Tensor<double>{{0, 1, 0}}) &&
                 allclose(hot, full<double>({1, 3}, 1.0 / 3), 0, 1e-6) && allclose(cold_out, twenty) &&
                 allclose(hot_out, twenty),
             "one-hot and even; [20, 20] always, because keys 0 and 2 weigh the same");

  // Temperature is a change of scale: τ = 2 is the chapter's attention with 1 / (2 √d_k).
  book.expect("attention(Q, K, V, {.scale = 1 / (τ √d_k)}) is the same",
              allclose(attention(Q, K, V, {.scale = 1 / (2.0 * 2.0)}).weights,
                       scaled_dot_product_attention(Q, K, V, {}, 2).weights, 0, 1e-14));

  const auto at = [&](double t) { return scaled_dot_product_attention(Q, K, V, {}, t); };
  book.draw("temperature", weights_of_three_keys(0.05, 100, at));
  // If the values are not placed evenly about the middle one, the output changes with the temperature too.
  const Tensor<double> uneven{{10, 10}, {20, 20}, {60, 0}};
  fmt::print("\nvalues (10, 10), (20, 20), (60, 0):\n");
  for (const double t : {0.1, 1.0, 10.0, 100.0})
    fmt::print("{:5} {}\n", t, round(scaled_dot_product_attention(Q, K, uneven, {}, t).out, 2));
  return book.close();
}
