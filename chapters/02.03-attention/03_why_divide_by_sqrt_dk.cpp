// Why Divide by √d_k? The Variance Argument
//
// The standard deviation of a score grows like √d_k; the softmax of widely spread scores is one-hot; the
// Jacobian of a one-hot softmax is zero. This program measures each step, and then what the division changes.
#include <fmt/format.h>

#include <cmath>

#include "claims.hpp"
#include "saturation.hpp"
#include "table.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

double variance_of(const Tensor<double>& x) { return var(x, {}, 0).item(); }
bool near(double x, double y) { return std::abs(x - y) < 1e-14; }

// Variances of independent terms add. Beside the sum, 4096 dot products as the book's seed draws them.
void spread_of_scores(Book& book) {
  // One term q_c k_c. The argument needs mean 0 and variance 1, not a normal distribution: here q_c and k_c
  // have two unequal outcomes each, and all pairs are listed.
  const Tensor<double> q_c{-2, 0.5, 0.5, 0.5, 0.5}, k_c = -q_c;  // equally likely: mean 0, variance 1
  const auto term = unsqueeze(q_c, 1) * k_c;
  const double one = variance_of(term);
  book.claim("var_one_term", {{"mean", mean(term)}, {"var", one}})
      .holds(near(one, 1), "mean 0, variance 1, also for two variables that are not normal");

  fmt::print("  d_k   Var(q·k)    std    measured Var, std      Var(q·k / √d_k)  measured\n");
  for (const std::int64_t d_k : {64, 128}) {
    const double d = static_cast<double>(d_k), variance = d * one, scaled = variance / d;
    NumpyRandom rng(0);
    const auto q = rng.randn({4096, d_k}), k = rng.randn({4096, d_k});
    const auto s = sum(q * k, 1), s_scaled = s / std::sqrt(d);
    fmt::print("{:5} {:9.0f} {:8.1f} {:12.1f} {:7.1f} {:17.0f} {:13.2f}\n", d_k, variance,
               std::sqrt(variance), variance_of(s), std::sqrt(variance_of(s)), scaled, variance_of(s_scaled));
    book.claim(fmt::format("var_qk_{}", d_k), {{"variance", variance}, {"std", std::sqrt(variance)}})
        .values({{"scaled_variance", scaled}, {"scaled_std", std::sqrt(scaled)}})
        .values({{"sample_mean", mean(s)}, {"sample_var", variance_of(s)}, {"sample_std", std_dev(s, {}, 0)}})
        .values({{"sample_scaled_var", variance_of(s_scaled)}, {"sample_abs_max", largest(s)}})
        .printed(std::sqrt(variance));
  }
  const double unit = 64 * one / 64, flat = 64 * one / (64 * 64);
  book.claim("var_scaled", {{"variance", unit}}).holds(near(unit, 1), "d_k / d_k = 1, whatever d_k");
  book.claim("var_divide_by_dk", {{"variance", flat}, {"std", std::sqrt(flat)}})
      .holds(near(flat, 1 / 64.0), "d_k / d_k² = 1/64 at d_k = 64: too flat, as unscaled is too sharp");
  const double sigma = std::sqrt(64 * one), mean_abs = sigma * std::sqrt(2 / std::acos(-1));
  const double tail = std::erfc(20 / sigma / std::sqrt(2.0));
  book.claim("raw_scores_64", {{"std", sigma}, {"normal_tail_at_20", tail}, {"normal_mean_abs", mean_abs}})
      .holds(mean_abs > 4 && mean_abs < 12 && tail > 0.005 && tail < 0.05,
             fmt::format("{:.1f} on average, beyond ±20 one in {:.0f}", mean_abs, 1 / tail));
}

// For every head size: the variance of 1024 scores, and the softmax of these scores in rows of 16.
void every_size(Book& book) {
  NumpyRandom rng(0);
  Table table({"d_k", "no scale", "over √d_k", "over d_k"});  // variances
  Table weight({"d_k", "no scale", "over √d_k", "over d_k", "uniform: 1/16"}),
      slope({"d_k", "no scale", "over √d_k", "over d_k"});
  for (std::int64_t d_k = 1; d_k <= 1024; d_k *= 2) {
    const auto d = static_cast<double>(d_k);
    const auto s = sum(rng.randn({1024, d_k}) * rng.randn({1024, d_k}), 1);
    const auto rows = s.reshape({64, 16}), raw = softmax(rows, -1),
               by_root = softmax(rows / std::sqrt(d), -1), by_d = softmax(rows / d, -1);
    table.add(d, variance_of(s), variance_of(s / std::sqrt(d)), variance_of(s / d));
    weight.add(d, largest_weight(raw), largest_weight(by_root), largest_weight(by_d), 1 / 16.0);
    slope.add(d, jacobian_norm(raw), jacobian_norm(by_root), jacobian_norm(by_d));
  }
  fmt::print("\nvariance\n  d_k  no scale  over √d_k  over d_k\n");
  table.print("{:5.0f} {:9.2f} {:10.2f} {:9.5f}\n");
  fmt::print("variance grows like d_k to the power {:.1f}, {:.1f}, {:.1f}\n", table.exponent("no scale"),
             std::abs(table.exponent("over √d_k")), table.exponent("over d_k"));
  book.draw("variance", {table.curve("no scale"), table.curve("over √d_k"), table.curve("over d_k")});
  fmt::print("\nlargest of 16 weights\n  d_k  no scale  over √d_k  over d_k  uniform\n");
  weight.print("{:5.0f} {:9.3f} {:10.3f} {:9.3f} {:8.4f}\n");
  fmt::print("\nFrobenius norm of J\n  d_k  no scale  over √d_k  over d_k\n");
  slope.print("{:5.0f} {:9.3f} {:10.3f} {:9.3f}\n");
  book.draw("largest_weight", {weight.curve("no scale"), weight.curve("over √d_k"), weight.curve("over d_k"),
                               weight.curve("uniform: 1/16", Style::dashed)});
  book.draw("jacobian_norm", {slope.curve("no scale"), slope.curve("over √d_k"), slope.curve("over d_k")});
  const auto scaled = slope.column("over √d_k");
  book.expect("with the scale neither the weights nor the Jacobian depend on d_k",
              std::abs(scaled.at({10}) - scaled.at({4})) < 0.05);
  book.expect("divided by d_k the weights approach 1/16", weight.column("over d_k").at({10}) < 0.07);
}

// A logit three standard deviations out at d_k = 64, the rest at 0: nearly one-hot, and nearly no gradient.
void saturation(Book& book) {
  book.claim("three_sigma_64", 24 / std::sqrt(64.0)).printed(24 / std::sqrt(64.0));
  book.claim("e24", exp(scalar(24.0))).printed(exp(scalar(24.0)));
  const Tensor<double> scores{24, 0, 0, 0};
  const auto a = softmax(scores, -1), J = softmax_jacobian(a);
  fmt::print("\nsoftmax({}) = {}\nlargest entry of its Jacobian: {:.1e}\n", scores, a, largest(J));
  book.claim("e24_one_hot", {{"weights", a}, {"jacobian", J}, {"jacobian_max_abs", largest(J)}})
      .holds(a.at({0}) > 1 - 1e-9 && largest(J) < 1.2e-10,
             fmt::format("all but {:.1e} on one key, Jacobian below 1.2e-10", 1 - a.at({0})));
  const auto J1 = softmax_jacobian(Tensor<double>{0, 1, 0});
  book.claim("jacobian_one_hot", J1).holds(equal(J1, zeros<double>({3, 3})), "all zeros, exactly");
}

// The same four scores with and without the scale.
void worked_example(Book& book) {
  const Tensor<double> scores{20, 4, -3, 1};
  const double divisor = std::sqrt(64.0);
  const auto scaled_scores = scores / divisor;
  const auto a = softmax(scores, -1), a_scaled = softmax(scaled_scores, -1);
  const auto J = softmax_jacobian(a), J_scaled = softmax_jacobian(a_scaled);
  fmt::print("\nscores      {}   weights {:.8f}\n", scores, a);
  fmt::print("/ {:<9} {}   weights {:.2f}\n", divisor, scaled_scores, a_scaled);
  fmt::print("largest Jacobian entry: {:.1e} and {:.2f}\n", largest(J), largest(J_scaled));
  book.claim("scale_example_exps", exp(scores)).printed(exp(scores));
  book.claim("scale_example_unscaled", {{"weights", a}, {"jacobian", J}})
      .printed(a.slice(0, 0, 2))
      .holds(largest(a.slice(0, 2, 4)) < 1e-8, "the other two below 1e-8");
  book.claim("scale_example_scaled_scores", scaled_scores).printed(scaled_scores);
  book.claim("scale_example_scaled", {{"weights", a_scaled}, {"jacobian", J_scaled}}).printed(a_scaled);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Why Divide by √d_k? The Variance Argument");
  spread_of_scores(book);
  every_size(book);
  saturation(book);
  worked_example(book);
  return book.close();
}
