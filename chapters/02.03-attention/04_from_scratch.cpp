// A From-Scratch Implementation in NumPy
//
// softmax and attention, line by line as in the listing; then the example that can be checked by hand, and the
// limit in which the soft lookup becomes a hard one.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "claims.hpp"
#include "table.hpp"
#include "three_keys.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

// softmax(x) = softmax(x - c) for any c. If c is the largest logit of the row, no exponential is above 1.
Tensor<double> softmax(const Tensor<double>& x, int axis = -1) {
  const auto x_max = max(x, axis, true);  // largest logit per row
  const auto e = exp(x - x_max);          // no overflow
  return e / sum(e, axis, true);          // each row sums to 1
}

// Q is (n_q, d_k), K (n_k, d_k), V (n_k, d_v), the mask (n_q, n_k): true where query i may attend to key j.
// out is (n_q, d_v), one vector for each query; weights is (n_q, n_k), and its rows sum to 1.
Attention<double> scaled_dot_product_attention(const Tensor<double>& Q, const Tensor<double>& K,
                                               const Tensor<double>& V,
                                               const std::optional<Tensor<bool>>& mask = {}) {
  const double d_k = static_cast<double>(Q.size(-1)), inf = INFINITY;
  auto scores = matmul(Q, K.T());                          // Step 1: scores[i, j] = q_i · k_j   (n_q, n_k)
  scores = scores / std::sqrt(d_k);                        // Step 2: variance 1 for every d_k
  if (mask) scores = where(*mask, scores, scalar(-inf));   // Step 3: exp(-inf) = 0 where forbidden
  const auto weights = softmax(scores, -1);                // Step 4: over the key axis           (n_q, n_k)
  return {.out = matmul(weights, V), .weights = weights};  // Step 5: weighted sum of the values  (n_q, d_v)
}

void stable_softmax(Book& book) {
  const Tensor<double> x{1000, 0};
  const auto naive = exp(x) / sum(exp(x));
  fmt::print("naive softmax of {}: {}    stable: {}\n\n", x, naive, softmax(x));
  book.claim("naive_softmax_overflow", {{"exp_1000", exp(x[0])}, {"naive", naive}, {"stable", softmax(x)}})
      .holds(std::isnan(naive.at({1})),
             "the weight of 1000 is inf / inf = NaN, but the weight of 0 is 1 / inf = 0");

  const auto e = exp(Tensor<double>{0, -1000});  // logits minus the largest of them
  book.claim("softmax_exponent_range", e)
      .holds(min(e).item() > 0, "exp(-1000) is 0 in double: the range is [0, 1]");

  const Tensor<double> z{1, 2, 3};
  book.claim("shift_identity", {{"softmax", softmax(z)}, {"shifted", softmax(z - 1000.0)}})
      .holds(allclose(softmax(z), softmax(z - 1000.0), 0, 1e-14), "equal to the last bit but one");
}

const Tensor<double> K{{1.0, 0.0, 0.0, 0.0},   // key 0
                       {0.0, 1.0, 0.0, 0.0},   // key 1
                       {0.0, 0.0, 1.0, 0.0}};  // key 2
const Tensor<double> V{{10.0, 10.0},           // value 0
                       {20.0, 20.0},           // value 1
                       {30.0, 30.0}};          // value 2
const Tensor<double> Q{{0.1, 3.0, 0.1, 0.0}};  // close to key 1

void sanity_check(Book& book) {
  NumpyRandom rng(0);
  const auto [out, w] = scaled_dot_product_attention(Q, K, V);
  fmt::print("attention weights: {}\n", round(w, 3));
  fmt::print("output: {}\n", round(out, 2));
  fmt::print("rows sum to 1: {}\n", allclose(sum(w, -1), ones<double>({1})) ? "True" : "False");
  book.draw("sanity_weights", w);
  const auto S = matmul(Q, K.T()) / std::sqrt(4.0);
  book.claim("sanity_weights", {{"scores", S}, {"weights", w}}).printed(w);
  book.claim("sanity_output", out).printed(out);
  book.claim("sanity_rows_sum", {{"sum", sum(w)}, {"allclose", allclose(sum(w, -1), ones<double>({1}))}})
      .holds(std::abs(sum(w).item() - 1) < 1e-14, "they sum to 1");
  book.claim("sanity_prose_068", w.at({0, 1})).printed(w.at({0, 1}));
  book.claim("sanity_seed_unused").note("no draw follows");
  book.expect("the generator is as it was seeded", rng.rand({}).item() == NumpyRandom(0).rand({}).item());
  book.claim("sanity_value_comment", V).printed(V.select(1, 0));
  const double cosine = matmul(Q[0], K[1]).item() / (norm(Q[0]).item() * norm(K[1]).item());
  book.claim("sanity_alignment", {{"cosine", cosine}})
      .holds(cosine > 0.99, fmt::format("cosine {:.4f}", cosine));

  // Three versions give the same: the smallest primitives, the listing above, and the library.
  book.expect("composed::attention gives the same output", apart(composed::attention(Q, K, V), out) < 1e-14);
  book.expect("attention gives the same weights", apart(attention(Q, K, V).weights, w) < 1e-14);
}

// Raise the query's second component, and the soft lookup becomes a hard one.
void hard_retrieval_in_the_limit(Book& book) {
  const auto ask = [](double q1) {
    return scaled_dot_product_attention(Tensor<double>{{0.1, q1, 0.1, 0}}, K, V);
  };
  Table limit({"q[1]", "key 1", "rest"});
  for (const double q1 : {3, 10, 30, 100, 300, 1000, 1600}) {
    const auto w = ask(q1).weights;
    limit.add(q1, w.at({0, 1}), w.at({0, 0}) + w.at({0, 2}));
  }
  fmt::print("\n q[1]   weight on key 1       left for the others\n");
  limit.print("{:5.0f} {:18.12f} {:20.3g}\n");
  book.claim("query_limit", {{"weight_key1", limit.column("key 1")}, {"one_minus", limit.column("rest")}})
      .holds(limit.column("key 1").at({6}) == 1, "the weight is exactly 1 in double from q[1] = 100 on");
  book.draw("hard_limit", weights_of_three_keys(0.1, 40, ask));

  const auto [out, w] = ask(30);
  const auto scores = matmul(Tensor<double>{{0.1, 30.0, 0.1, 0.0}}, K.T()) / std::sqrt(4.0);
  book.claim("query30", {{"scores", scores}, {"weights", w}, {"output", out}})
      .values({{"weight_key1_real", w.at({0, 1})}, {"one_minus_weight_key1", w.at({0, 0}) + w.at({0, 2})}})
      .holds(w.at({0, 1}) > 1 - 1e-6 && allclose(out, full<double>({1, 2}, 20), 0, 1e-12),
             fmt::format("1 - {:.2e}, and [20, 20]", 1 - w.at({0, 1})));
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "A From-Scratch Implementation in NumPy");
  stable_softmax(book);
  sanity_check(book);
  hard_retrieval_in_the_limit(book);
  return book.close();
}
