// Why Divide by √d_k? The Variance Argument
//
// The score of two random vectors spreads like √d_k; softmax of widely spread scores is one-hot; the Jacobian
// of a one-hot softmax is zero. Each link is measured here, and then the division that breaks the chain.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "claims.hpp"
#include "saturation.hpp"

using namespace tapehead;
using chapter::Book;
using chapter::softmax_jacobian;

namespace {

// One term q_c k_c. Mean 0 and variance 1 do not need a bell curve: here are two lopsided coins, all four
// outcomes.
double one_term(Book& book) {
  const Tensor<double> q{-2, 0.5}, p_q{0.2, 0.8};      // mean 0, variance 1
  const Tensor<double> k{-3, 1.0 / 3}, p_k{0.1, 0.9};  // mean 0, variance 1
  const auto product = unsqueeze(q, 1) * k, chance = unsqueeze(p_q, 1) * p_k;
  const auto mean = sum(chance * product);
  const auto variance = sum(chance * product * product) - mean * mean;
  book.claim("var_one_term", {{"mean", mean}, {"var", variance}})
      .holds(std::abs(variance.item() - 1) < 1e-14, "mean 0, variance 1, of two lopsided coins too");
  return variance.item();
}

// The sum of d_k such terms: variances of independent terms add. Beside it, 4096 dot products as the book's
// seed draws them.
void spread_of_scores(Book& book, double one) {
  fmt::print("  d_k   Var(q·k)    std    measured Var, std      Var(q·k / √d_k)  measured\n");
  for (const std::int64_t d_k : {64, 128}) {
    const double variance = static_cast<double>(d_k) * one, scale = 1 / std::sqrt(static_cast<double>(d_k));
    NumpyRandom rng(0);
    const auto q = rng.randn({4096, d_k}), k = rng.randn({4096, d_k});
    const auto s = sum(q * k, 1);
    fmt::print("{:5} {:9.0f} {:8.1f} {:12.1f} {:7.1f} {:17.0f} {:13.2f}\n", d_k, variance,
               std::sqrt(variance), var(s, {}, 0).item(), std_dev(s, {}, 0).item(), variance * scale * scale,
               var(s * scale, {}, 0).item());
    book.claim(fmt::format("var_qk_{}", d_k), {{"variance", variance},
                                               {"std", std::sqrt(variance)},
                                               {"scaled_variance", variance * scale * scale},
                                               {"scaled_std", std::sqrt(variance) * scale},
                                               {"sample_mean", mean(s)},
                                               {"sample_var", var(s, {}, 0)},
                                               {"sample_std", std_dev(s, {}, 0)},
                                               {"sample_scaled_var", var(s * scale, {}, 0)},
                                               {"sample_abs_max", max(abs(s))}})
        .printed(std::sqrt(variance));
  }
  const auto is = [](double x, double y) { return std::abs(x - y) < 1e-14; };
  book.claim("var_scaled", {{"variance", 64 * one / 64}})
      .holds(is(64 * one / 64, 1), "d_k / d_k = 1, whatever d_k");
  book.claim("var_divide_by_dk", {{"variance", 64 * one / (64 * 64)}, {"std", std::sqrt(64 * one) / 64}})
      .holds(is(64 * one / (64 * 64), 1 / 64.0),
             "d_k / d_k² = 1/64 at d_k = 64: too flat, as unscaled is too sharp");
  const double tail = std::erfc(20 / 8.0 / std::sqrt(2.0)), mean_abs = 8 * std::sqrt(2 / std::acos(-1));
  book.claim("raw_scores_64",
             {{"std", std::sqrt(64 * one)}, {"normal_tail_at_20", tail}, {"normal_mean_abs", mean_abs}})
      .holds(mean_abs > 4 && mean_abs < 12 && tail > 0.005 && tail < 0.05,
             fmt::format("{:.1f} on average, beyond ±20 one in {:.0f}", mean_abs, 1 / tail));
}

// What one size of head gives: the variance of 1024 scores under three scales; and in rows of 16 of them,
// what softmax makes of the raw and of the scaled ones.
struct Sweep {
  Series raw{"no scale"}, rooted{"over √d_k"}, divided{"over d_k"};
  Series weight{"weight, no scale"}, weight_scaled{"weight, over √d_k"};
  Series slope{"|J|, no scale", {}, {}, Style::dashed}, slope_scaled{"|J|, over √d_k", {}, {}, Style::dashed};
};

void soften(const Tensor<double>& scores, double d_k, Series& weight, Series& slope) {
  const auto A = softmax(scores.reshape({64, 16}), -1);
  weight.x.push_back(d_k), weight.y.push_back(chapter::largest_weight(A));
  slope.x.push_back(d_k), slope.y.push_back(chapter::jacobian_norm(A));
}

Sweep every_size() {
  NumpyRandom rng(0);
  Sweep w;
  const auto add = [](Series& series, double d, const Tensor<double>& s) {
    series.x.push_back(d), series.y.push_back(var(s, {}, 0).item());
  };
  fmt::print("\n          variance                      largest weight     |J|\n");
  fmt::print("  d_k     raw     over √d_k  over d_k   raw    scaled      raw    scaled\n");
  for (std::int64_t d_k = 1; d_k <= 1024; d_k *= 2) {
    const auto d = static_cast<double>(d_k);
    const auto s = sum(rng.randn({1024, d_k}) * rng.randn({1024, d_k}), 1);
    add(w.raw, d, s);
    add(w.rooted, d, s / std::sqrt(d));
    add(w.divided, d, s / d);
    soften(s, d, w.weight, w.slope);
    soften(s / std::sqrt(d), d, w.weight_scaled, w.slope_scaled);
    fmt::print("{:5} {:8.2f} {:9.2f} {:12.5f} {:7.3f} {:7.3f} {:10.4f} {:7.4f}\n", d_k, w.raw.y.back(),
               w.rooted.y.back(), w.divided.y.back(), w.weight.y.back(), w.weight_scaled.y.back(),
               w.slope.y.back(), w.slope_scaled.y.back());
  }
  const auto exponent = [](const Series& s) { return chapter::fitted_exponent(s.x, s.y); };
  fmt::print("variance grows like d_k to the power {:.1f}, {:.1f}, {:.1f}\n", exponent(w.raw),
             std::abs(exponent(w.rooted)), exponent(w.divided));
  return w;
}

void draw(Book& book, const Sweep& w) {
  book.draw("variance", {w.raw, w.rooted, w.divided});
  book.draw("saturation", {w.weight, w.slope, w.weight_scaled, w.slope_scaled});
  book.expect("scaled, neither weights nor gradient know how large d_k is",
              std::abs(w.slope_scaled.y.back() - w.slope_scaled.y[4]) < 0.05);
}

// A logit three standard deviations out at d_k = 64, the rest at 0: nearly one-hot, and nearly no gradient.
void saturation(Book& book) {
  book.claim("three_sigma_64").value(24 / std::sqrt(64.0)).printed(24 / std::sqrt(64.0));
  book.claim("e24").value(exp(scalar(24.0))).printed(exp(scalar(24.0)));

  const Tensor<double> scores{24, 0, 0, 0};
  const auto a = softmax(scores, -1);
  const auto J = softmax_jacobian(a);
  fmt::print("\nsoftmax({}) = {}\nits Jacobian, at most {:.1e}\n", scores, a, max(abs(J)).item());
  book.claim("e24_one_hot", {{"weights", a}, {"jacobian", J}, {"jacobian_max_abs", max(abs(J))}})
      .holds(a.at({0}) > 1 - 1e-9 && max(abs(J)).item() < 1.2e-10,
             fmt::format("all but {:.1e} on one key, Jacobian below 1.2e-10", 1 - a.at({0})));
  const auto J1 = softmax_jacobian(Tensor<double>{0, 1, 0});
  book.claim("jacobian_one_hot").value(J1).holds(equal(J1, zeros<double>({3, 3})), "all zeros, exactly");
}

// The same four scores with and without the scale.
void worked_example(Book& book) {
  const Tensor<double> scores{20, 4, -3, 1};
  const auto unscaled = softmax(scores, -1);
  const auto scaled_scores = scores / std::sqrt(64.0);
  const auto scaled = softmax(scaled_scores, -1);
  fmt::print("\nscores      {}   weights {:.8f}\n/ √64       {}   weights {:.2f}\n", scores, unscaled,
             scaled_scores, scaled);
  fmt::print("largest Jacobian entry: {:.1e} and {:.2f}\n", max(abs(softmax_jacobian(unscaled))).item(),
             max(abs(softmax_jacobian(scaled))).item());

  book.claim("scale_example_exps").value(exp(scores)).printed(exp(scores));
  book.claim("scale_example_unscaled", {{"weights", unscaled}, {"jacobian", softmax_jacobian(unscaled)}})
      .printed(unscaled.slice(0, 0, 2))
      .holds(max(unscaled.slice(0, 2, 4)).item() < 1e-8, "the other two below 1e-8");
  book.claim("scale_example_scaled_scores").value(scaled_scores).printed(scaled_scores);
  book.claim("scale_example_scaled", {{"weights", scaled}, {"jacobian", softmax_jacobian(scaled)}})
      .printed(scaled);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Why Divide by √d_k? The Variance Argument");
  spread_of_scores(book, one_term(book));
  draw(book, every_size());
  saturation(book);
  worked_example(book);
  return book.close();
}
