// Causal & Padding Masks: Same Machinery, Different Information Flow
//
// A mask says which query may attend to which key. Forbidden scores become -inf before the softmax, so that
// their weights are exactly zero. A causal mask hides later tokens, a padding mask hides tokens that only fill
// up a sequence.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "claims.hpp"

using namespace tapehead;
using chapter::Book;

namespace {

const double inf = std::numeric_limits<double>::infinity();
const char* truth(bool b) { return b ? "True" : "False"; }

// Lower triangle: (i, j) is true iff j <= i. The library's causal_mask(n) is this.
Tensor<bool> lower_triangle(std::int64_t n) { return tril(ones<bool>({n, n})); }

void causal_attention(Book& book) {
  const std::int64_t n = 4, d_k = 8, d_v = 8;
  NumpyRandom rng(1);
  const auto Q = rng.randn({n, d_k});
  const auto K = rng.randn({n, d_k});
  const auto V = rng.randn({n, d_v});

  const auto [out, w] = attention(Q, K, V, {.mask = causal_mask(n)});
  // The upper triangle of the weights is the future: all zeros.
  fmt::print("{}\n", round(w, 3));
  fmt::print("no future leakage: {}\n", truth(allclose(triu(w, 1), zeros<double>({n, n}))));
  // Query 0 sees only key 0.
  fmt::print("row 0 weight: {}\n", round(w[0], 3));

  book.draw("causal_weights", w);

  book.claim("causal_mask_4", causal_mask(4)).note("the lower triangle");
  book.expect("causal_mask(4) is the lower triangle", equal(causal_mask(4), lower_triangle(4)));
  const auto scores =
      where(causal_mask(n), matmul(Q, K.T()) / std::sqrt(static_cast<double>(d_k)), scalar(-inf));
  book.claim("causal_demo_weights")
      .drawn("Q", Q)
      .drawn("K", K)
      .drawn("V", V)
      .values({{"scores", scores}, {"weights", w}, {"rounded3", round(w, 3)}})
      .note("the matrix printed first, equal to NumPy's to 1e-12");
  book.claim("causal_demo_output", out).note("equal to NumPy's to 1e-12");
  const bool none = equal(triu(w, 1), zeros<double>({n, n}));
  book.claim("causal_no_leak", {{"strict_upper_triangle_all_zero", none}})
      .holds(none, "exactly zero, not nearly");
  book.claim("causal_row0", w[0]).printed(w[0]);
  book.expect("so the output of token 0 is its own value", equal(out[0], V[0]));

  // Why a cache of keys and values works: the output of token i does not depend on later tokens.
  auto changed = K.to_vector();
  for (std::size_t i = 24; i < 32; ++i) changed[i] += 5;  // the last key
  const auto again = attention(Q, from_vector(changed, {n, d_k}), V, {.mask = causal_mask(n)}).out;
  book.expect("a different last key leaves outputs 0 to 2 bit for bit the same",
              equal(again.slice(0, 0, 3), out.slice(0, 0, 3)));
  book.expect("and changes output 3", !allclose(again[3], out[3], 0, 1e-2));
}

// Two sequences of lengths 3 and 5 in one batch: causal AND not padding.
void padded_batch(Book& book) {
  const std::int64_t L = 5, d = 4;
  const auto padding = padding_mask({3, 5}, L);  // (2, 1, 1, 5)
  const auto mask = padding & causal_mask(L);    // & (5, 5) -> (2, 1, 5, 5)
  book.draw("mask_causal", causal_mask(L));
  book.draw("mask_padding", broadcast_to(padding[0][0], {L, L}));  // of sequence 0, which has 3 tokens
  book.draw("mask_both", mask[0][0]);

  NumpyRandom rng(2);
  const auto Q = rng.randn({2, 1, L, d}), K = rng.randn({2, 1, L, d}), V = rng.randn({2, 1, L, d});
  const auto w = attention(Q, K, V, {.mask = mask}).weights;
  book.expect("padded keys get weight 0 from every query",
              equal(w[0].slice(-1, 3, 5), zeros<double>({1, 5, 2})));
  const auto short_one = [](const Tensor<double>& x) { return x[0].slice(1, 0, 3); };
  book.expect("the short sequence alone gives the same outputs",
              allclose(short_one(attention(Q, K, V, {.mask = mask}).out),
                       attention(short_one(Q), short_one(K), short_one(V), {.causal = true}).out, 0, 1e-14));
}

// Padding on the left and a causal mask: the first queries are padding, and every key that they may attend to
// is padding too.
void left_padding(Book& book) {
  const Tensor<bool> real{{false, false, true, true, true}};  // 2 of 5 tokens are padding
  const auto mask = real & causal_mask(5);
  book.draw("mask_left_padding", mask);
  const auto keys = sum(to<double>(mask), -1);
  fmt::print("\nkeys that each query may attend to: {}\n", keys);
  book.expect("the two queries that are padding have no key", equal(keys, Tensor<double>{0, 0, 1, 2, 3}));
}

// "A padding mask zeroes out every score" of a padded key? A score of 0 is an ordinary score.
void zero_is_a_score(Book& book) {
  const Tensor<double> scores{-2, -1, 0.5, 1};
  const Tensor<bool> pad{false, false, true, true};
  const auto zeroed = softmax(masked_fill(scores, pad, 0), -1),
             hidden = softmax(masked_fill(scores, pad, -inf), -1);
  fmt::print("\nkeys 2 and 3 are padding: scores set to 0 {}, to -inf {}\n", round(zeroed, 3),
             round(hidden, 3));
  const double wrong = sum(zeroed.slice(0, 2, 4)).item();
  book.claim("padding_zeroes_scores")
      .holds(wrong == 0,
             fmt::format("with scores of 0, two padded keys beside scores of -2 and -1 get {:.0f} % of the "
                         "weight; with scores of -inf they get none",
                         100 * wrong));
}

// A query without a single key: its four scores are all filled with one very negative number, in 16 bits.
void what_to_fill_with(Book& book) {
  const NumberFormat format = float16;
  fmt::print("\nfill        in {:8}  weights of a row without a key\n", format.name);
  for (const double fill : {-inf, -1e9, -65504.0}) {
    const auto scores = round_to(format, full<double>({4}, fill));
    fmt::print("{:<11} {:<12} {}\n", fill, scores.at({0}), softmax(scores, -1));
  }
  const auto nothing = full<double>({4}, -inf);
  fmt::print("EmptyRows::zero          {}\n", softmax(nothing, -1, EmptyRows::zero));
  book.expect("in float16 -1e9 is -inf, and the row is NaN again",
              std::isnan(softmax(round_to(float16, full<double>({4}, -1e9)), -1).at({0})));

  const auto as_float16 = [](double x) { return round_to(float16, scalar(x)).item(); };
  book.claim("low_precision_fill", {{"float16", as_float16(-1e9)},
                                    {"float32", -1e9f},
                                    {"float16_lowest", as_float16(-65504)},
                                    {"float32_lowest", std::numeric_limits<float>::lowest()},
                                    {"float64_lowest", std::numeric_limits<double>::lowest()}})
      .holds(std::isinf(as_float16(-1e9)) && static_cast<double>(-1e9f) == -1e9,
             "-1e9 is exact in float32; in float16 it would be -inf, whose lowest number is -65504");
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "Causal & Padding Masks: Same Machinery, Different Information Flow");
  causal_attention(book);
  padded_batch(book);
  zero_is_a_score(book);
  left_padding(book);
  what_to_fill_with(book);
  return book.close();
}
