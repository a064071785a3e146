// Attention has no notion of order
//
// If the tokens are permuted, the outputs are permuted in the same way. So attention cannot distinguish "dog bites
// man" from "man bites dog", unless there is a causal mask or the tokens have positions.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "captions.hpp"
#include "claims.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

struct Sentence {
  std::vector<std::string> words;
  Tensor<std::int64_t> order;  // the row of `words` for each place
};

// Self-attention over a sentence. `words` has a vector for each of dog, bites and man, (3, 8), and W has the three
// projections. Each place in the sentence has a vector too, which is multiplied by `position` and added.
Attention<double> read(const Tensor<double>& words, const std::vector<Tensor<double>>& W, const Sentence& s,
                       bool causal, double position = 0) {
  const auto place = unsqueeze(arange<double>(3), 1) * arange<double>(8) / 8.0;  // (3, 8)
  const auto x = index_select(words, 0, s.order) + position * sin(place);
  return attention(matmul(x, W[0]), matmul(x, W[1]), matmul(x, W[2]), {.causal = causal});
}

void two_sentences(Book& book) {
  NumpyRandom rng(0);
  const auto words = rng.randn({3, 8});
  std::vector<Tensor<double>> W;
  for (int i = 0; i < 3; ++i) W.push_back(rng.randn({8, 8}) / std::sqrt(8.0));
  const Sentence one{{"dog", "bites", "man"}, {0, 1, 2}}, other{{"man", "bites", "dog"}, {2, 1, 0}};

  // "bites" stands in the middle of both sentences.
  const auto differs = [&](bool causal, double position) {
    return apart(read(words, W, one, causal, position).out[1],
                 read(words, W, other, causal, position).out[1]);
  };
  const double plain = differs(false, 0), causal = differs(true, 0), placed = differs(false, 1);
  fmt::print("how much the output of \"bites\" differs between \"dog bites man\" and \"man bites dog\"\n");
  fmt::print(
      "  no mask, no positions   {:.3f}\n  causal mask             {:.3f}\n  positions added to x    "
      "{:.3f}\n",
      plain, causal, placed);
  for (const auto& [figure, s] : {std::pair{"order_dog", one}, {"order_man", other}}) {
    auto caption = heatmap_caption(figure);
    caption.row_labels = caption.column_labels = s.words;
    book.draw(figure, read(words, W, s, false).weights, caption);
  }
  book.expect("without positions the word cannot tell who bites whom", plain < 1e-14);
  book.expect("with a causal mask or with positions it can", causal > 0.1 && placed > 0.1);
}

// The same for any tokens and any order.
void permuted(Book& book) {
  NumpyRandom rng(0);
  const auto Q = rng.randn({5, 4}), K = rng.randn({5, 4}), V = rng.randn({5, 2});
  const Tensor<std::int64_t> order{3, 0, 4, 1, 2};
  const auto permute = [&](const Tensor<double>& x) { return index_select(x, 0, order); };
  const auto gap = [&](bool causal) {
    const auto out = attention(Q, K, V, {.causal = causal}).out;
    return apart(attention(permute(Q), permute(K), permute(V), {.causal = causal}).out, permute(out));
  };
  fmt::print("\noutputs of permuted tokens, less the permuted outputs: {:.3f}; under a causal mask: {:.3f}\n",
             gap(false), gap(true));
  book.expect("permuted tokens have permuted outputs", gap(false) < 1e-14);
  book.expect("under a causal mask they have not", gap(true) > 0.1);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Putting It All Together: attention has no notion of order");
  two_sentences(book);
  permuted(book);
  return book.close();
}
