// The softmax Jacobian and why values get clean gradients
//
// The gradient flows back from the output along two paths: to the values, where it is multiplied by the weights,
// and through the softmax to queries and keys, where it is multiplied by the Jacobian diag(a) - a aᵀ.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "claims.hpp"
#include "saturation.hpp"
#include "tapehead/checks/jacobian.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

// The Jacobian of softmax at these scores, drawn; the title says what the weights are.
void draw(Book& book, const char* figure, const Tensor<double>& scores) {
  const auto a = softmax(scores, -1);
  const auto J = softmax_jacobian(a);
  auto caption = heatmap_caption(figure);
  caption.title = fmt::format("Softmax Jacobian for weights {:.2f}", fmt::join(a.to_vector(), ", "));
  const bool one_hot = largest(J) < 1e-3;
  if (largest(a) < 0.4) caption.description = "Weights nearly even: ";
  if (one_hot) caption.description = "One key has all the weight: ";
  caption.description += fmt::format(
      "4 by 4 matrix, row m for weight m and column l for score l. The largest entry is {:.2g}, in row {}",
      largest(J), argmax(max(J, 1), 0).item());
  caption.description += one_hot ? "; every cell is grey." : ".";
  book.draw(figure, J, caption);
}

// J = diag(a) - a aᵀ, that is J[m, l] = ∂a_m / ∂s_l = a_m (δ_ml - a_l), and what the tape says.
void one(Book& book, const char* id, const char* what, const Tensor<double>& scores) {
  const auto a = softmax(scores, -1);
  const auto J = softmax_jacobian(a);
  const auto by_tape = jacobian([](const Tensor<double>& s) { return softmax(s, -1); }, scores);
  fmt::print("{}: a = {}\n{}\n", what, round(a, 4), round(J, 4));
  fmt::print("largest entry {:.3g}, Frobenius norm {:.3g}\n\n", largest(J), norm(J).item());
  book.claim(id, {{"J", J},
                  {"max_abs", largest(J)},
                  {"frobenius", norm(J)},
                  {"row_sums_max_abs", largest(sum(J, 1))}})
      .holds(allclose(by_tape, J, 0, 1e-14), "the tape gives the same, one weight at a time");
}

// ∂o / ∂v_j = a_j: with dO = (1, 0), the gradient of each value's first component is its weight.
void value_path(Book& book) {
  const Tensor<double> Q{{0.1, 3.0, 0.1, 0.0}}, K{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
  const Tensor<double> V{{10, 10}, {20, 20}, {30, 30}};
  Tape<double> tape;
  tape.watch({{"Q", Q}, {"K", K}, {"V", V}});
  const auto [out, w] = attention(Q, K, V);
  const auto grad = tape.backward(out, Tensor<double>{{1, 0}});
  fmt::print("weights          {}\nd o[0] / d V[:, 0] {}\nd o[0] / d V[:, 1] {}\n", w[0],
             grad[V].select(1, 0), grad[V].select(1, 1));
  book.claim("value_gradient", grad[V].select(1, 0))
      .holds(
          allclose(grad[V].select(1, 0), w[0], 0, 1e-14) && equal(grad[V].select(1, 1), zeros<double>({3})),
          "the gradient of value j is its weight; other components get none");
}

// One input in all three roles: how much of its gradient comes through the values, how much through queries and
// keys? And how many rows of the scores does it come from?
void both_paths(Book& book) {
  NumpyRandom rng(0);
  const auto x = rng.randn({6, 64}), dO = rng.randn({6, 64});
  const auto W_q = rng.randn({64, 64}) / 8, W_k = rng.randn({64, 64}) / 8, W_v = rng.randn({64, 64}) / 8;
  for (const double divisor : {8.0, 1.0}) {
    Tape<double> tape;
    tape.watch({{"x", x}});
    const auto Q = matmul(x, W_q), K = matmul(x, W_k), V = matmul(x, W_v);
    tape.watch({{"Q", Q}, {"K", K}, {"V", V}});
    const auto A = softmax(matmul(Q, K.T()) / divisor, -1);
    const auto O = matmul(A, V);
    tape.watch({{"A", A}, {"O", O}});
    const auto routes = explain(tape.backward(O, dO), x);
    fmt::print("\nscores / {}: {}", divisor, routes.text());
    book.expect("three routes lead to x", routes.routes.size() == 3);
    const auto steps = attention_backward(Q, K, V, dO, {.scale = 1 / divisor});
    const auto row = sum(steps.dS * steps.dS, -1);
    fmt::print("largest weight of each row      {}\n", round(max(A, -1), 2));
    fmt::print("|dS|² of each row, in percent   {}\n", round(100.0 * row / sum(row)));
  }
}

// d_k = 64: raw scores, scores over √d_k, and scores over d_k. How much gradient passes the softmax?
void query_path(Book& book) {
  const std::int64_t d_k = 64, n = 16, queries = 256;
  const auto d = static_cast<double>(d_k);
  NumpyRandom rng(0);
  const auto Q = rng.randn({queries, d_k}), K = rng.randn({n, d_k});
  fmt::print("\nd_k = 64, 16 keys, 256 queries   largest weight   Frobenius norm of J\n");
  std::vector<double> sizes;
  for (const auto& [label, scale] :
       {std::pair{"no scale", 1.0}, {"1 / √d_k", 1 / std::sqrt(d)}, {"1 / d_k ", 1 / d}}) {
    const auto A = softmax(matmul(Q, K.T()) * scale, -1);
    sizes.push_back(jacobian_norm(A));
    fmt::print("{:32} {:14.3f} {:13.3f}\n", label, largest_weight(A), sizes.back());
  }
  book.expect("more gradient passes the softmax with the scale than without", sizes[1] > 1.5 * sizes[0]);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "The softmax Jacobian and why values get clean gradients");
  one(book, "jacobian_uniform4", "uniform", Tensor<double>{0, 0, 0, 0});
  one(book, "jacobian_one_hot4", "one-hot", Tensor<double>{0, -1e4, -1e4, -1e4});
  one(book, "jacobian_unscaled", "scores 20, 4, -3, 1", Tensor<double>{20, 4, -3, 1});
  one(book, "jacobian_scaled", "the same over √64", Tensor<double>{20, 4, -3, 1} / 8);
  one(book, "jacobian_sanity", "the sanity example", Tensor<double>{0.05, 1.5, 0.05});
  draw(book, "jacobian_uniform", Tensor<double>{0.1, 0, -0.1, 0});
  draw(book, "jacobian_one_hot", Tensor<double>{0, -20, -20, -20});
  value_path(book);
  both_paths(book);
  query_path(book);
  return book.close();
}
