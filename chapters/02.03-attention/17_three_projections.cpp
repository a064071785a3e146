// Exercise 1: why three projections, and what W_O is for
//
// A verb looks for its subject. With one vector in all three roles it cannot, because the scores are symmetric.
// With W_Q and W_K the score has a direction; W_V chooses what is passed on, and W_O where it is written.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "captions.hpp"
#include "claims.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

const std::vector<std::string> words{"dog", "bites", "man"};

// Each token has six features: its identity (dog, bites, man), and three empty ones for "my subject is …".
const Tensor<double> x{{1, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0}, {0, 0, 1, 0, 0, 0}};

void draw(Book& book, const char* figure, const Tensor<double>& matrix,
          const std::vector<std::string>& columns) {
  auto caption = heatmap_caption(figure);
  caption.row_labels = words, caption.column_labels = columns;
  book.draw(figure, matrix, caption);
}

void projections(Book& book) {
  // The verb's query is large in dimension 0; there the key of the subject is positive, that of the object negative.
  const Tensor<double> W_q{{0, 0}, {8, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}};  // bites asks; nouns ask nothing
  const Tensor<double> W_k{{1, 0}, {0, 0}, {-1, 0},
                           {0, 0}, {0, 0}, {0, 0}};          // dog answers; man is the object
  const Tensor<double> W_v = eye<double>(6).slice(1, 0, 3);  // pass on the identity, (6, 3)
  const Tensor<double> W_o = eye<double>(6).slice(0, 3, 6);  // write it into features 3 to 5, (3, 6)

  const auto raw = matmul(x, x.T()) / std::sqrt(6.0);
  const auto Q = matmul(x, W_q), K = matmul(x, W_k), V = matmul(x, W_v);
  const auto [out, A] = attention(Q, K, V);
  const auto S = matmul(Q, K.T()) / std::sqrt(2.0);
  fmt::print("one vector in all roles: bites scores dog {:.2f}, dog scores bites {:.2f}\n", raw.at({1, 0}),
             raw.at({0, 1}));
  fmt::print("with W_Q and W_K:        bites scores dog {:.2f}, dog scores bites {:.2f}\n", S.at({1, 0}),
             S.at({0, 1}));
  draw(book, "scores_one_input", raw, words);
  draw(book, "scores_projected", S, words);

  const auto written = matmul(out, W_o);
  fmt::print("\nx + attended W_O =\n{}\n", round(x + written, 2));
  draw(book, "residual_stream", x + written,
       {"dog", "bites", "man", "subject dog", "subject bites", "subject man"});
  book.expect("without projections what i asks of j is what j asks of i", equal(raw, raw.T()));
  book.expect("the verb finds its subject", A.at({1, 0}) > 0.95);
  book.expect("W_O leaves the token's own features as they were",
              equal((x + written).slice(1, 0, 3), x.slice(1, 0, 3)));

  // For one head W_V and W_O act as one matrix, of rank d_k or less.
  book.expect("(A x W_V) W_O = A x (W_V W_O)",
              apart(matmul(A, matmul(x, matmul(W_v, W_o))), written) < 1e-14);
}

// Two heads side by side: W_O adds what each of its row blocks makes of its own head.
void heads(Book& book) {
  NumpyRandom rng(0);
  const auto one = rng.randn({5, 3}), two = rng.randn({5, 3}), W_o = rng.randn({6, 4});
  const auto joined = matmul(cat<double>({one, two}, 1), W_o);
  const auto summed = matmul(one, W_o.slice(0, 0, 3)) + matmul(two, W_o.slice(0, 3, 6));
  fmt::print("\njoined heads times W_O = head 1 times its upper half + head 2 times its lower half: {}\n",
             apart(joined, summed) < 1e-14);
  book.expect("W_O mixes heads by adding them up", apart(joined, summed) < 1e-14);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Exercise 1: why three projections, and what W_O is for");
  projections(book);
  heads(book);
  return book.close();
}
