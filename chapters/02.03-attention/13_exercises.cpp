// Exercises
//
// The numbers that the chapter's first four exercises ask for. The fifth, on temperature, has its own program.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "claims.hpp"
#include "saturation.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

const double inf = std::numeric_limits<double>::infinity();

// 1. One input in all three roles: the scores are symmetric. Are the weights?
void three_roles(Book& book) {
  const Tensor<double> x{{1, 0}, {1, 1}, {0, 2}};
  const auto S = matmul(x, x.T()) / std::sqrt(2.0);
  const auto A = softmax(S, -1);
  const double asymmetry = apart(A, A.T());
  fmt::print("1. query = key = x: scores\n{}\n   weights\n{}\n", round(S, 3), round(A, 3));
  book.claim("ex1_symmetry", {{"scores", S}, {"weights", A}, {"max_abs_asymmetry", asymmetry}})
      .holds(asymmetry < 1e-12,
             fmt::format("the scores are symmetric, the weights are not: each row has its own sum; "
                         "they differ by up to {:.3f}",
                         asymmetry));
}

// 2. A blend of three values, and a point that no blend reaches.
void inside_the_hull(Book& book) {
  const Tensor<double> V{{0, 0}, {10, 0}, {0, 10}}, a{0.5, 0.3, 0.2};
  fmt::print("\n2. a V = {}\n", matmul(a, V));
  book.claim("ex2_output", matmul(a, V)).printed(matmul(a, V));
  const double furthest = max(V.select(1, 0)).item();
  book.claim("ex2_hull", {{"max_first_coordinate", furthest}})
      .holds(furthest < 12, fmt::format("no value, and so no blend, goes beyond {}", furthest));
  const Tensor<double> apart{0, -800};
  book.claim("ex2_positive", softmax(apart, -1))
      .holds(std::isfinite(log_softmax(apart, -1).at({1})),
             "e^-800 is positive, and its logarithm says so; as a double it is 0");
}

// 3. Scores 12, 6, 0 at d_k = 36, raw and scaled.
void the_scale(Book& book) {
  const Tensor<double> raw{12, 6, 0}, scaled = raw / std::sqrt(36.0);
  const auto with_sum = [](const Tensor<double>& e) { return cat<double>({e, sum(e, 0, true)}); };
  for (const bool scale : {false, true}) {
    const auto s = scale ? scaled : raw;
    const auto a = softmax(s, -1), e = exp(s - max(s)), J = softmax_jacobian(a);
    fmt::print("{} {}: weights {:.5f}, largest Jacobian entry {:.4f}\n", scale ? "  " : "3.", s, a,
               largest(J));
    book.claim(scale ? "ex3b_exps" : "ex3a_exps", {{"exps", e}, {"sum", sum(e)}}).printed(with_sum(e));
    book.claim(scale ? "ex3b_weights" : "ex3a_weights", {{"weights", a}, {"jacobian", J}}).printed(a);
    book.claim(scale ? "ex3c_scaled" : "ex3c_raw", a).printed(a);
  }
}

// 4. Why -inf, and what it does to a row without any other score.
void minus_infinity(Book& book) {
  const Tensor<double> scores{2, 7, 1};
  const Tensor<bool> forbidden{false, true, false};
  const auto zeroed = softmax(masked_fill(scores, forbidden, 0), -1),
             removed = softmax(masked_fill(scores, forbidden, -inf), -1);
  fmt::print("4. key 1 forbidden: filled with 0 {}, with -inf {}\n", round(zeroed, 3), round(removed, 3));
  book.claim("ex4a_zero_mask", {{"filled_with_zero", zeroed}, {"filled_with_minus_inf", removed}})
      .holds(zeroed.at({1}) > 0 && removed.at({1}) == 0,
             fmt::format("{:.2f} with 0, none with -inf", zeroed.at({1})));
  book.claim("ex4b_partial", softmax(Tensor<double>{2, -inf, 1}, -1))
      .holds(std::isfinite(sum(removed).item()), "finite, and the -inf key gets 0");

  const Tensor<double> row{0.3, -1.2, 2.0, 0.5};
  const auto row32 = to<float>(row);
  const float lowest = std::numeric_limits<float>::lowest();
  const auto nothing = full<double>({4}, -inf);
  const auto uniform = softmax(full<double>({4}, -1e9), -1);
  fmt::print("   all forbidden: -inf {}, -1e9 {}, EmptyRows::zero {}\n", softmax(nothing, -1), uniform,
             softmax(nothing, -1, EmptyRows::zero));
  book.claim("ex4b_fully_masked", {{"minus_inf", softmax(nothing, -1)},
                                   {"zero_convention", softmax(nothing, -1, EmptyRows::zero)},
                                   {"replaced_by_1e9", uniform},
                                   {"replaced_by_float32_min", softmax(full<float>({4}, lowest), -1)},
                                   {"added_1e9_float32", softmax(row32 - 1e9, -1)},
                                   {"added_1e9_float64", softmax(row - 1e9, -1)},
                                   {"added_float32_min_float32", softmax(row32 + lowest, -1)},
                                   {"unmasked", softmax(row, -1)}})
      .holds(std::isnan(sum(softmax(nothing, -1)).item()) && uniform.at({0}) == 0.25,
             "NaN, and 1/4 each; added instead of filled in, -1e9 in double leaves the row as it was");
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Exercises 1 to 4");
  three_roles(book);
  inside_the_hull(book);
  the_scale(book);
  minus_infinity(book);
  return book.close();
}
