// Putting It All Together
//
// The axis of the softmax decides whether attention learns: the same lookups, trained with softmax along the keys
// and along the queries.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "claims.hpp"

using namespace tapehead;
using chapter::Book;

namespace {

// 32 stores of 6 keys, which are 6 names in random order. Each store has 6 queries: each asks for a name, and
// several may ask for the same one. The right answer is the value of the key with that name.
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

// Learns W_q and W_k by gradient descent; returns the loss of each step.
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
  const auto right = train(data, -1);  // each query divides a weight of 1 among the keys
  const auto wrong = train(data, -2);  // each key divides a weight of 1 among the queries
  fmt::print("step  along keys  along queries\n");
  for (const std::size_t step : {0u, 10u, 50u, 100u, 200u})
    fmt::print("{:4} {:11.4f} {:14.4f}\n", step, right[step], wrong[step]);

  const auto steps = arange<double>(201).to_vector();
  book.draw("wrong_axis", {{"softmax along keys", steps, right}, {"along queries", steps, wrong}});
  book.expect("along the keys the lookup is learned", right.back() < 0.05 * right.front());
  book.expect("along the queries it is not", wrong.back() > 0.2 * wrong.front());
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Putting It All Together");
  right_and_wrong_axis(book);
  return book.close();
}
