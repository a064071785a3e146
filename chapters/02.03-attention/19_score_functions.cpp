// Which kernel actually runs: flex attention, and packed documents
//
// A score function changes each score before the softmax, and a mask function hides keys; both are compiled
// into the fused kernel. Four of them, one line each. Then documents of different lengths in one buffer,
// without padding.
#include <fmt/format.h>

#include <cmath>

#include "captions.hpp"
#include "claims.hpp"
#include "tapehead/attention/flex.hpp"
#include "tapehead/attention/varlen.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

constexpr std::int64_t n = 8, d = 4;

// The kernel never stores the weights. With the identity as values, its outputs are the weights.
template <class F, class M>
void draw(Book& book, const char* figure, const Tensor<double>& q, const Tensor<double>& k, const F& score,
          const M& mask) {
  const auto weights = flex_attention(q, k, eye<double>(n), score, mask).out;
  book.draw(figure, weights, heatmap_caption(figure));
  book.expect(fmt::format("{}: every row of weights sums to 1", figure),
              apart(sum(weights, -1), ones<double>({n})) < 1e-14);
}

void four_functions(Book& book) {
  NumpyRandom rng(0);
  const auto q = 3 * rng.randn({n, d}), k = rng.randn({n, d});
  const std::int64_t id[n] = {0, 0, 0, 1, 1, 1, 1, 1};  // which document each token belongs to

  const auto causal = [](auto, auto, auto i, auto j) { return j <= i; };
  const auto soft_cap = [](auto s, auto, auto, auto, auto) { return 2 * tanh(s / 2); };
  const auto alibi = [](auto s, auto, auto, auto i, auto j) { return s + (j - i); };
  const auto window = [](auto, auto, auto i, auto j) { return j <= i && i - j < 3; };
  const auto same_document = [id](auto, auto, auto i, auto j) { return j <= i && id[i] == id[j]; };

  draw(book, "flex_plain", q, k, NoScoreMod(), causal);
  draw(book, "flex_soft_cap", q, k, soft_cap, causal);
  draw(book, "flex_alibi", q, k, alibi, causal);
  draw(book, "flex_window", q, k, NoScoreMod(), window);
  draw(book, "flex_document", q, k, NoScoreMod(), same_document);

  const auto weights = [&](const auto& score, const auto& mask) {
    return flex_attention(q, k, eye<double>(n), score, mask).out;
  };
  book.expect("the window is sliding_window_mask(8, 3)",
              apart(weights(NoScoreMod(), window),
                    attention(q, k, k, {.mask = sliding_window_mask(n, 3)}).weights) < 1e-14);
  book.expect(
      "the document mask is document_mask(ids) & causal_mask(8)",
      apart(weights(NoScoreMod(), same_document),
            attention(q, k, k,
                      {.mask = document_mask(from_vector<std::int64_t>({id, id + n}, {n})) & causal_mask(n)})
                .weights) < 1e-14);
  const auto distance = unsqueeze(arange<double>(n), 0) - unsqueeze(arange<double>(n), 1);
  book.expect(
      "ALiBi is a bias of -1 for each token of distance",
      apart(weights(alibi, causal), attention(q, k, k, {.bias = distance, .causal = true}).weights) < 1e-14);
  const auto S = matmul(q, k.T()) / std::sqrt(4.0), capped = 2 * tanh(S / 2);
  fmt::print("\nlargest score {:.2f}, with the soft cap {:.2f}\n", largest(S), largest(capped));
  book.expect("the soft cap keeps scores below 2", largest(capped) < 2);
}

// Three documents, one after the other in one buffer; cu_seqlens says where each begins and the last one ends.
void packed(Book& book) {
  NumpyRandom rng(1);
  const Tensor<std::int64_t> cu_seqlens{0, 2, 7, 10}, ids{0, 0, 1, 1, 1, 1, 1, 2, 2, 2};
  const auto q = rng.randn({10, 1, d}), k = rng.randn({10, 1, d}),
             v = rng.randn({10, 1, d});  // (tokens, heads, d)
  const auto out = flash_attention_varlen(q, k, v, cu_seqlens, cu_seqlens, {.causal = true}).out;
  const auto head = [](const Tensor<double>& x) { return x.select(1, 0); };
  const auto masked =
      attention(head(q), head(k), head(v), {.mask = document_mask(ids) & causal_mask(10)}).out;
  fmt::print(
      "\ndocuments of 2, 5 and 3 tokens: {} pairs of a query and a key in a padded batch, {} in one buffer "
      "with a\n"
      "document mask, {} with cu_seqlens = {}\n",
      3 * 5 * 5, 10 * 10, 2 * 2 + 5 * 5 + 3 * 3, cu_seqlens);
  book.draw("packed_documents", document_mask(ids) & causal_mask(10));
  book.expect("packed documents give what a document mask gives", apart(head(out), masked) < 1e-14);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Which kernel actually runs: flex attention, and packed documents");
  four_functions(book);
  packed(book);
  return book.close();
}
