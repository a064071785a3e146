// The Same Thing in PyTorch, With Autograd and Batching
//
// Axes for batch and heads, float instead of double, masks of both kinds, and dropout; and a tape that carries
// gradients back through all of it.
#include <fmt/format.h>

#include <cmath>
#include <variant>

#include "claims.hpp"

using namespace tapehead;
using namespace chapter;

namespace {

constexpr float inf = INFINITY;

// None, a bool mask (true = keep) or a float one to add (-inf = forbid); broadcasts to (B, H, Lq, Lk).
template <class T>
using Mask = std::variant<std::monostate, Tensor<bool>, Tensor<T>>;

// q is (B, H, Lq, d_k), k (B, H, Lk, d_k), v (B, H, Lk, d_v); the output is (B, H, Lq, d_v).
template <class T>
Tensor<T> sdpa(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, const Mask<T>& attn_mask = {},
               double dropout_p = 0, bool is_causal = false, TorchRandom* rng = nullptr) {
  const auto d_k = static_cast<double>(q.size(-1));

  // (B, H, Lq, d_k) @ (B, H, d_k, Lk) -> (B, H, Lq, Lk)
  auto scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(d_k);

  if (is_causal) {
    const auto Lq = q.size(-2), Lk = k.size(-2);
    const auto causal = tril(ones<bool>({Lq, Lk}));  // query i may see keys j <= i
    scores = masked_fill(scores, ~causal, -inf);
  }
  if (const auto* keep = std::get_if<Tensor<bool>>(&attn_mask)) scores = masked_fill(scores, ~*keep, -inf);
  if (const auto* bias = std::get_if<Tensor<T>>(&attn_mask)) scores = scores + *bias;

  auto weights = softmax(scores, -1);  // over the key axis

  if (dropout_p > 0)
    weights = weights * to<T>(rng->bernoulli(1 - dropout_p, weights.shape())) / (1 - dropout_p);

  return matmul(weights, v);
}

void batches_and_heads(Book& book) {
  const std::int64_t B = 2, H = 3, L = 5, d = 4;
  TorchRandom rng(0);
  const auto q = rng.randn({B, H, L, d}), k = rng.randn({B, H, L, d}), v = rng.randn({B, H, L, d});
  const auto out = sdpa(q, k, v, {}, 0, true);
  fmt::print("q, k, v {} -> out {}\n", q.shape().str(), out.shape().str());
  book.expect("batch 1, head 2 depends on q, k and v of batch 1, head 2 alone",
              allclose(out[1][2], sdpa(q[1][2], k[1][2], v[1][2], {}, 0, true), 0, 1e-6));
  book.expect("attention() gives what this function gives",
              apart(out, attention(q, k, v, {.causal = true}).out) < 1e-6);

  // A bool mask selects, a float mask is added: -inf forbids as false does, a finite number raises or lowers.
  const auto keep = padding_mask({5, 3}, L);  // (B, 1, 1, L)
  const auto bias = where(keep, scalar(0.0f), scalar(-inf));
  book.expect("a bool mask and the float mask of 0 and -inf give the same",
              equal(sdpa<float>(q, k, v, keep), sdpa<float>(q, k, v, bias)));

  // Dropout drops weights and scales the others up, so that the mean does not change.
  const auto one = ones<float>({1, 1, 100, 100});
  TorchRandom coin(1);
  const double p = 0.25;
  const auto dropped = sdpa<float>(one, one, one, {}, p, false, &coin);
  fmt::print("dropout {} over 10000 equal weights: mean output {:.3f}\n", p, mean(dropped).item());
  book.expect("dropout does not change the mean", std::abs(mean(dropped).item() - 1) < 0.01f);
}

// The tape of attention, and the gradient that it gives. Two queries attend to four keys that come from another
// sequence: this is cross-attention.
void autograd(Book& book) {
  NumpyRandom rng(0);
  const auto q = rng.randn({2, 3}), k = rng.randn({4, 3}), v = rng.randn({4, 5});
  Tape<double> tape;
  tape.watch({{"q", q}, {"k", k}, {"v", v}});
  const auto length = [&](const Tensor<double>& query) {
    const auto out = sdpa(query, k, v);
    return sum(out * out);
  };
  const auto grad = tape.backward(length(q));
  fmt::print("\n{} records; gradients of shapes {}, {}, {}\n", tape.size(), grad[q].shape().str(),
             grad[k].shape().str(), grad[v].shape().str());

  fmt::print("\n{}\n", tape.mermaid());

  const auto changed = [&](double h) { return length(q + h * Tensor<double>{{1, 0, 0}, {0, 0, 0}}).item(); };
  const double by_tape = grad[q].at({0, 0}), slope = (changed(1e-6) - changed(-1e-6)) / 2e-6;
  fmt::print("d sum(out * out) / d q[0, 0]: tape {:.6f}, finite difference {:.6f}\n", by_tape, slope);
  book.expect("the tape's gradient agrees with the finite difference", std::abs(by_tape - slope) < 1e-8);
}

void figures(Book& book) {
  NumpyRandom rng(1);
  const auto Q = rng.randn({4, 8}), K = rng.randn({4, 8}), V = rng.randn({4, 8});
  const auto in_double = sdpa(Q, K, V, {}, 0, true);
  const auto in_float = sdpa(to<float>(Q), to<float>(K), to<float>(V), {}, 0, true);
  const double off = apart(in_double, to<double>(in_float));
  book.claim("byte_for_byte")
      .aside("max_abs_diff_float32_vs_float64")  // how far apart depends on the kernels
      .holds(off == 0, fmt::format("the same formula, and {} apart: float32 here, float64 there",
                                   off > 0 && off < 1e-6 ? "less than 1e-6" : "too far"));
  const auto top_left = causal_mask(1, 6, Align::top_left),
             bottom_right = causal_mask(1, 6, Align::bottom_right);
  book.claim("decode_alignment", {{"top_left", top_left}, {"bottom_right", bottom_right}})
      .holds(sum(to<double>(top_left)).item() == 1 && top_left.at({0, 0}),
             "1 of 6 keys; bottom-right sees all 6");
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "The Same Thing in PyTorch, With Autograd and Batching");
  batches_and_heads(book);
  autograd(book);
  figures(book);
  return book.close();
}
