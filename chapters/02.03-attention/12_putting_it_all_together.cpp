// Putting It All Together
//
// Two things that show only when all of it runs. Attention knows no order: shuffle the tokens, and the
// outputs are shuffled. And one axis decides whether it learns: the same lookups, trained with softmax along
// the keys and along the queries.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "claims.hpp"

using namespace tapehead;
using chapter::Book;

namespace {

void no_order(Book& book) {
  NumpyRandom rng(0);
  const auto Q = rng.randn({5, 4}), K = rng.randn({5, 4}), V = rng.randn({5, 2});
  const Tensor<std::int64_t> order{3, 0, 4, 1, 2};
  const auto shuffled = [&](const Tensor<double>& x) { return index_select(x, 0, order); };
  const auto out = attention(Q, K, V).out;
  book.expect("tokens in another order: the same outputs, in that order",
              allclose(attention(shuffled(Q), shuffled(K), shuffled(V)).out, shuffled(out), 0, 1e-14));
  const auto causal = [](const auto& q, const auto& k, const auto& v) {
    return attention(q, k, v, {.causal = true}).out;
  };
  book.expect("a causal mask is an order",
              !allclose(causal(shuffled(Q), shuffled(K), shuffled(V)), shuffled(causal(Q, K, V)), 0, 1e-2));
}

// 32 stores of 6 keys, each key one of 6 names, in random order; 6 queries a store, which ask for names and
// may ask twice for the same. What should come back is the value of the key of that name.
struct Lookups {
  Tensor<double> asked, names, values, answers;
};

Lookups lookups(NumpyRandom& rng, std::int64_t stores, std::int64_t n) {
  const auto one_hot = eye<double>(n);
  std::vector<Tensor<double>> asked, names;
  for (std::int64_t b = 0; b < stores; ++b) {
    asked.push_back(index_select(one_hot, 0, rng.randint(0, n, {n})));
    names.push_back(index_select(one_hot, 0, rng.permutation(n)));
  }
  const auto q = stack(asked, 0), k = stack(names, 0), v = rng.randn({stores, n, 4});
  return {q, k, v, matmul(matmul(q, transpose(k, -2, -1)), v)};
}

// W_q and W_k by gradient descent; the loss of each step.
std::vector<double> train(const Lookups& data, int axis) {
  NumpyRandom rng(1);
  const std::int64_t n = data.names.size(-1), d_k = 8;
  Tensor<double> W_q = rng.randn({n, d_k}), W_k = rng.randn({n, d_k});
  std::vector<double> losses;
  for (int step = 0; step <= 200; ++step) {
    Tape<double> tape;
    tape.watch({{"W_q", W_q}, {"W_k", W_k}});
    const auto Q = matmul(data.asked, W_q), K = matmul(data.names, W_k);
    const auto A = softmax(matmul(Q, transpose(K, -2, -1)) / std::sqrt(8.0), axis);
    const auto error = matmul(A, data.values) - data.answers;
    const auto loss = mean(error * error);
    const auto grad = tape.backward(loss);
    W_q = W_q - 5 * grad[W_q];
    W_k = W_k - 5 * grad[W_k];
    losses.push_back(loss.item());
  }
  return losses;
}

void right_and_wrong_axis(Book& book) {
  NumpyRandom rng(0);
  const Lookups data = lookups(rng, 32, 6);
  const auto right = train(data, -1);  // each query shares 1 out among the keys
  const auto wrong = train(data, -2);  // each key shares 1 out among the queries
  fmt::print("step   over keys   over queries\n");
  for (const std::size_t step : {0u, 10u, 50u, 100u, 200u})
    fmt::print("{:4} {:11.4f} {:14.4f}\n", step, right[step], wrong[step]);

  const auto steps = arange<double>(201).to_vector();
  book.draw("wrong_axis", {{"softmax over keys", steps, right}, {"over queries", steps, wrong}});
  book.expect("over the keys the lookup is learnt", right.back() < 0.05 * right.front());
  book.expect("over the queries it is not", wrong.back() > 0.2 * wrong.front());
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Putting It All Together");
  right_and_wrong_axis(book);
  no_order(book);
  return book.close();
}
