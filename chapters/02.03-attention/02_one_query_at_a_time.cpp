// Scaled Dot-Product Attention, One Query at a Time
//
// Four steps for one query: score, scale, softmax, blend. Then all queries at once: the matrix-vector product
// becomes a matrix-matrix product, and nothing else changes.
#include <fmt/format.h>

#include <cmath>

#include "claims.hpp"

using namespace tapehead;
using chapter::Book;

namespace {

constexpr std::int64_t n = 5, d_k = 4, d_v = 2;
const double sqrt_dk = std::sqrt(static_cast<double>(d_k));

struct Answer {
  Tensor<double> scores, weights, output;
};

// q is (d_k,), K (n, d_k), V (n, d_v); the output is (d_v,).
Answer attend(const Tensor<double>& q, const Tensor<double>& K, const Tensor<double>& V) {
  const auto s = matmul(K, q);         // Step 1  s_j = q · k_j              (n,)
  const auto scaled = s / sqrt_dk;     // Step 2  s_j / √d_k                 (n,)
  const auto a = softmax(scaled, -1);  // Step 3  a_j, weights that sum to 1 (n,)
  const auto o = matmul(a, V);         // Step 4  Σ_j a_j v_j                (d_v,)
  return {s, a, o};
}

// Score every key against the query: large where they point the same way, 0 where they are orthogonal,
// negative where opposed.
void what_a_score_says(Book& book) {
  const Tensor<double> q{1, 2, 0, 0};
  const Tensor<double> K{{1, 2, 0, 0}, {2, 4, 0, 0}, {-2, 1, 0, 0}, {0, 0, 3, 1}, {-1, -2, 0, 0}};
  const auto s = matmul(K, q);
  fmt::print("q = {}\nK @ q = {}    itself, twice as long, orthogonal, orthogonal, opposed\n\n", q, s);
  book.expect("scores of the query itself, of twice it, of two orthogonal keys and of its opposite",
              equal(s, Tensor<double>{5, 10, 0, 0, -5}));
}

void one_query(Book& book, const Tensor<double>& q, const Tensor<double>& K, const Tensor<double>& V) {
  const auto [s, a, o] = attend(q, K, V);
  fmt::print("scores  s = {}\nweights a = {}    sum {:.1f}\noutput  o = {}\n\n", round(s, 3), round(a, 3),
             sum(a).item(), round(o, 3));
  book.expect("the weights are positive and sum to 1",
              min(a).item() > 0 && std::abs(sum(a).item() - 1) < 1e-14);
  // A convex combination lies between the values in every direction: here 360 directions are checked.
  bool inside = true;
  for (int degree = 0; degree < 360; ++degree) {
    const double angle = degree * std::acos(-1) / 180;
    const Tensor<double> direction{std::cos(angle), std::sin(angle)};
    inside &= matmul(o, direction).item() <= max(matmul(V, direction)).item() + 1e-14;
  }
  book.expect("the output lies inside the convex hull of the values", inside);
}

void all_queries(Book& book, const Tensor<double>& Q, const Tensor<double>& K, const Tensor<double>& V) {
  const auto S = matmul(Q, K.T()) / sqrt_dk;  // (n, n): row i, query i against all keys
  const auto A = softmax(S, -1);              // along each row: the key axis
  const auto O = matmul(A, V);                // (n, d_v)
  fmt::print("A = softmax(Q Kᵀ / √d_k) =\n{}\nO = A V =\n{}\n", round(A, 3), round(O, 3));

  const auto first = V.select(1, 0).to_vector(), second = V.select(1, 1).to_vector();
  const Series values{"values", first, second, Style::points, {"v₀", "v₁", "v₂", "v₃", "v₄"}};
  Series hull = convex_hull(values);
  hull.name = "their convex hull";
  const Series outputs{"outputs",
                       O.select(1, 0).to_vector(),
                       O.select(1, 1).to_vector(),
                       Style::points,
                       {"o₀", "o₁", "o₂", "o₃", "o₄"}};
  book.draw("convex_hull", {hull, values, outputs});

  bool same = true;
  for (std::int64_t i = 0; i < n; ++i) same &= allclose(O[i], attend(Q[i], K, V).output, 0, 1e-14);
  book.expect("row i of the batch is what query i gives alone", same);
  book.expect("every row of A sums to 1", allclose(sum(A, -1), ones<double>({n}), 0, 1e-14));
  book.expect("with softmax along the other axis the rows would not sum to 1",
              !allclose(sum(softmax(S, 0), -1), ones<double>({n}), 0, 1e-2));
  book.expect("attention(Q, K, V) gives what these three lines give",
              allclose(attention(Q, K, V).out, O, 0, 1e-14));
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Scaled Dot-Product Attention, One Query at a Time");
  NumpyRandom rng(0);
  const auto Q = rng.randn({n, d_k});
  const auto K = rng.randn({n, d_k});
  const auto V = rng.randn({n, d_v});

  what_a_score_says(book);
  one_query(book, Q[0], K, V);
  all_queries(book, Q, K, V);
  return book.close();
}
