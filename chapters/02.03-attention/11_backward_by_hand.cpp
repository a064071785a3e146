// The backward pass, written out
//
// Four matrix products and one elementwise line, beside what the tape finds on its own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

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

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "The backward pass, written out");

  TorchRandom rng(0);
  const std::int64_t L = 6, d = 8;
  const auto Q = rng.randn({L, d});
  const auto K = rng.randn({L, d});
  const auto V = rng.randn({L, d});
  const auto dO = rng.randn({L, d});  // as if it came from the layer above

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
  book.expect("each row of dS sums to 0: softmax does not care for what all scores share", row < 1e-14);

  const auto h = attention_backward(Q, K, V, dO);
  book.expect("attention_backward(Q, K, V, dO) is this page",
              apart(h.dQ, g.dQ) < 1e-6 && apart(h.dK, g.dK) < 1e-6 && apart(h.dV, g.dV) < 1e-6 &&
                  apart(h.D, g.D) < 1e-6);
  // The scale stands in dQ and dK and not in dV: twice the queries under half the scale attend alike.
  const auto half = attention_backward(2 * Q, K, V, dO, {.scale = 0.5 / std::sqrt(static_cast<double>(d))});
  book.expect(
      "queries doubled, scale halved: the same dV and dK, half the dQ",
      apart(half.dV, g.dV) < 1e-6 && apart(half.dK, g.dK) < 1e-6 && apart(half.dQ, 0.5f * g.dQ) < 1e-6);
  return book.close();
}
