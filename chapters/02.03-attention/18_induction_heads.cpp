// Induction heads: copy what followed the last time
//
// The book names them in its first section; here is one, with weights set by hand. Two causal layers with one
// head each. The first, the previous-token head, tells each token which token stands before it. The second,
// the induction head, looks for the place that comes after an earlier occurrence of the current token, and
// copies the token there. Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021).
#include <fmt/format.h>

#include <string>
#include <vector>

#include "captions.hpp"
#include "claims.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

const std::vector<std::string> names{"<s>", "the", "cat", "sat"};
const Tensor<std::int64_t> tokens{0, 1, 2, 3, 1, 2};  // <s> the cat sat the cat
const std::int64_t n = 4, L = 6, d = n + L + n;       // the residual stream: token, position, token before

// The matrix that reads features `from` … from + count - 1 of the residual stream: (d, count).
Tensor<double> read(std::int64_t from, std::int64_t count) {
  return eye<double>(d).slice(1, from, from + count);
}

struct Head {
  Tensor<double> W_q, W_k, W_v, W_o;
};

// Adds to the stream what the head writes; .weights is its attention pattern.
Attention<double> layer(const Tensor<double>& x, const Head& h) {
  const auto [out, weights] =
      attention(matmul(x, h.W_q), matmul(x, h.W_k), matmul(x, h.W_v), {.causal = true, .scale = 20});
  return {.out = x + matmul(out, h.W_o), .weights = weights};
}

void draw(Book& book, const char* figure, const Tensor<double>& weights,
          const std::vector<std::string>& labels) {
  auto caption = heatmap_caption(figure);
  caption.row_labels = caption.column_labels = labels;
  book.draw(figure, weights, caption);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "From Hard Retrieval to Soft Retrieval: induction heads");
  const auto x =
      cat<double>({one_hot<double>(tokens, n), eye<double>(L), zeros<double>({L, n})}, 1);  // (L, d)
  // Position i asks for position i - 1: its query is the one-hot vector of i, moved by one place.
  const auto back =
      cat<double>({eye<double>(L).slice(0, 1, L), zeros<double>({1, L})}).T();  // row i is e(i-1)
  const Head previous{.W_q = matmul(read(n, L), back),                          // my position, less one
                      .W_k = read(n, L),                                        // your position
                      .W_v = read(0, n),                                        // your token
                      .W_o = read(n + L, n).T()};  // written where "token before" is kept
  const Head induction{.W_q = read(0, n),          // my token
                       .W_k = read(n + L, n),      // the token before you
                       .W_v = read(0, n),          // your token
                       .W_o = read(0, n).T()};     // written over the token: the prediction
  const auto first = layer(x, previous);
  const auto second = layer(first.out, induction);

  std::vector<std::string> labels;
  for (std::int64_t i = 0; i < L; ++i) labels.push_back(names[static_cast<std::size_t>(tokens.at({i}))]);
  draw(book, "previous_token_head", first.weights, labels);
  draw(book, "induction_head", second.weights, labels);

  const auto written = second.out - first.out;  // (L, d): what the induction head adds
  for (std::int64_t i = 0; i < L; ++i) {
    const auto says = written[i].slice(0, 0, n);
    const auto best = argmax(says, 0).item();
    fmt::print("{} {}: next is {} with weight {:.2f}\n", i, labels[static_cast<std::size_t>(i)],
               names[static_cast<std::size_t>(best)], says.at({best}));
  }
  book.expect("after the second \"the\" comes \"cat\", as before", written.at({4, 2}) > 0.99);
  book.expect("after the second \"cat\" comes \"sat\"", written.at({5, 3}) > 0.99);
  book.expect("the previous-token head looks one back", first.weights.at({4, 3}) > 0.99);
  book.expect("the induction head looks behind the earlier occurrence", second.weights.at({4, 2}) > 0.99);
  return book.close();
}
