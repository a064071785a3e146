// The backward pass, written out
//
// Four matrix products and one elementwise line, compared with the gradients of the tape.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "claims.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

template <class T>
struct Both {
  Tensor<T> S, A, O, dV, dA, D, dS, dQ, dK;  // by hand
  Tensor<T> tape_dQ, tape_dK, tape_dV;       // by the tape
};

template <class T>
Both<T> forward_and_backward(const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V,
                             const Tensor<T>& dO) {
  const double scale = std::sqrt(static_cast<double>(Q.size(-1)));

  Tape<T> tape;
  tape.watch({{"Q", Q}, {"K", K}, {"V", V}});
  const auto S = matmul(Q, K.T()) / scale;
  const auto A = softmax(S, -1);
  const auto O = matmul(A, V);
  const auto grad = tape.backward(O, dO);

  // The same three gradients, by hand.
  const auto dV = matmul(A.T(), dO);
  const auto dA = matmul(dO, V.T());
  const auto D = sum(dO * O, -1, true);  // = rowsum(dA * A), without dA
  const auto dS = A * (dA - D);          // diag(a) - a aᵀ, row by row
  const auto dQ = matmul(dS, K) / scale;
  const auto dK = matmul(dS.T(), Q) / scale;
  return {S, A, O, dV, dA, D, dS, dQ, dK, grad[Q], grad[K], grad[V]};
}

template <class T>
void give(Claim& claim, const Both<T>& g) {
  claim.values({{"float64/S", g.S}, {"float64/A", g.A}, {"float64/O", g.O}})
      .values({{"float64/dV", g.dV}, {"float64/dA", g.dA}})
      .values({{"float64/D", g.D}, {"float64/D_from_dA", sum(g.dA * g.A, -1, true)}})
      .values({{"float64/dS", g.dS}, {"float64/dQ", g.dQ}, {"float64/dK", g.dK}})
      .values({{"float64/dQ", g.tape_dQ}, {"float64/dK", g.tape_dK}, {"float64/dV", g.tape_dV}});
}

// Matrix products that attention_backward does beyond those of the forward pass: counted on a tape.
std::int64_t products() {
  const auto X = ones<double>({3, 2});
  const auto count = [](const Tape<double>& tape) {
    std::int64_t n = 0;
    for (std::int64_t i = 0; i < tape.size(); ++i)
      n += tape.node(i).op != nullptr && std::string(tape.node(i).op->name) == "matmul";
    return n;
  };
  Tape<double> tape;
  tape.watch(X);
  attention(X, X, X);
  const std::int64_t forward = count(tape);
  attention_backward(X, X, X, X);  // which does the forward pass again
  return count(tape) - 2 * forward;
}

// The scale multiplies dQ and dK once more, and does not appear in dV: it sets how fast W_Q and W_K learn
// compared with W_V. 32 tokens, d_k = 64, everything drawn with variance 1.
void scale_and_learning_rate(Book& book) {
  NumpyRandom rng(0);
  const std::int64_t n = 32, d = 64;
  const auto Q = rng.randn({n, d}), K = rng.randn({n, d}), V = rng.randn({n, d}), dO = rng.randn({n, d});
  std::vector<Series> bars;
  fmt::print("\nscale        |dQ|      |dK|      |dV|   |dQ| / |dV|\n");
  for (const auto& [label, scale] : {std::pair{"none", 1.0}, {"1 / √d_k", 1 / 8.0}, {"1 / d_k", 1 / 64.0}}) {
    const auto g = attention_backward(Q, K, V, dO, {.scale = scale});
    const double dQ = norm(g.dQ).item(), dK = norm(g.dK).item(), dV = norm(g.dV).item();
    fmt::print("{:8} {:9.2f} {:9.2f} {:9.2f} {:13.4f}\n", label, dQ, dK, dV, dQ / dV);
    bars.push_back({label, {}, {dQ, dK, dV}});
  }
  book.draw("gradient_norms", bars_svg({"dQ", "dK", "dV"}, bars, plot_caption("gradient_norms")));
  book.expect("a smaller scale makes dQ smaller in proportion to dV",
              bars[0].y[0] / bars[0].y[2] > bars[1].y[0] / bars[1].y[2] &&
                  bars[1].y[0] / bars[1].y[2] > bars[2].y[0] / bars[2].y[2]);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "The backward pass, written out");

  TorchRandom rng(0);
  const std::int64_t L = 6, d = 8;
  const auto Q = rng.randn({L, d});
  const auto K = rng.randn({L, d});
  const auto V = rng.randn({L, d});
  const auto dO = rng.randn({L, d});  // stands for the gradient from the layer above

  const auto g = forward_and_backward(Q, K, V, dO);
  const double err[] = {apart(g.dQ, g.tape_dQ), apart(g.dK, g.tape_dK), apart(g.dV, g.tape_dV)};
  for (const int i : {0, 1, 2}) fmt::print("d{} max abs err vs tape: {:.1e}\n", "QKV"[i], err[i]);

  const auto g2 = forward_and_backward(to<double>(Q), to<double>(K), to<double>(V), to<double>(dO));
  auto& claim = book.claim("hand_backward").drawn("Q", Q).drawn("K", K).drawn("V", V).drawn("dO", dO);
  give(claim, g);
  give(claim, g2);
  claim.aside("float32")
      .aside("autograd_float32")
      .aside("max_abs_err")  // PyTorch's own rounding, and its size
      .holds(std::max({err[0], err[1], err[2]}) < 1e-6, "below 1e-6 in float");
  book.claim("hand_backward_D", {{"D", g2.D}, {"max_abs_diff", apart(g2.D, sum(g2.A * g2.dA, -1, true))}})
      .holds(allclose(g2.D, sum(g2.A * g2.dA, -1, true), 0, 1e-14), "both sides, row by row, to 1e-14");
  book.claim("four_products", products()).printed(products());

  book.draw("dS", g2.dS);
  const double row = largest(sum(g2.dS, -1));
  book.expect("each row of dS sums to 0: softmax does not change if all scores grow by the same amount",
              row < 1e-14);

  const auto h = attention_backward(Q, K, V, dO);
  book.expect("attention_backward(Q, K, V, dO) gives the same",
              apart(h.dQ, g.dQ) < 1e-6 && apart(h.dK, g.dK) < 1e-6 && apart(h.dV, g.dV) < 1e-6 &&
                  apart(h.D, g.D) < 1e-6);
  // Doubled queries with half the scale have the same weights, so dV is the same; the scale shows in dQ alone.
  const auto half = attention_backward(2 * Q, K, V, dO, {.scale = 0.5 / std::sqrt(static_cast<double>(d))});
  book.expect(
      "queries doubled, scale halved: the same dV and dK, half the dQ",
      apart(half.dV, g.dV) < 1e-6 && apart(half.dK, g.dK) < 1e-6 && apart(half.dQ, 0.5f * g.dQ) < 1e-6);
  scale_and_learning_rate(book);
  return book.close();
}
