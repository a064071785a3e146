// A complete, trainable self-attention module
//
// Four projections around the kernel. The listing's class is nn::SelfAttention, in
// include/tapehead/models/attention.hpp. From torch.manual_seed(0) it starts with the weights that torch.nn draws, so
// the numbers here are PyTorch's.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "claims.hpp"
#include "tapehead/models/attention.hpp"

using namespace tapehead;
using chapter::Book;

namespace {

// The same module in double, with the weights of the float module: the float numbers are compared with it.
nn::SelfAttention<double> in_double(const nn::SelfAttention<float>& attn, TorchRandom& rng) {
  nn::SelfAttention<double> twin(attn.W_q.weight.size(1), rng, {.causal = attn.options.causal});
  twin.W_q.weight = to<double>(detach(attn.W_q.weight));
  twin.W_k.weight = to<double>(detach(attn.W_k.weight));
  twin.W_v.weight = to<double>(detach(attn.W_v.weight));
  twin.W_o.weight = to<double>(detach(attn.W_o.weight));
  return twin;
}

// The attention weights of the module's one head.
Tensor<double> weights_of(const nn::SelfAttention<double>& attn, const Tensor<double>& x) {
  return attention(attn.W_q(x), attn.W_k(x), attn.W_v(x), {.causal = attn.options.causal}).weights;
}

// The last loss when the module has learned for sixty steps to repeat the token before, from this seed.
double trained(std::int64_t seed, bool causal) {
  TorchRandom rng(seed);
  const std::int64_t L = 5, d_model = 16;
  const auto x = to<double>(rng.randn({2, L, d_model}));
  nn::SelfAttention<double> attn(d_model, rng, {.causal = causal});
  double last = 0;
  for (int step = 0; step <= 60; ++step) {
    Tape<double> tape;
    tape.watch(attn.parameters());
    const auto error = attn(x).slice(1, 1, L) - x.slice(1, 0, L - 1);
    const auto loss = mean(error * error);
    last = loss.item();
    const auto g = tape.backward(loss);
    attn.each_parameter([&](const std::string&, Tensor<double>& W) { W = detach(W - 0.5 * g[W]); });
  }
  return last;
}

// With the causal mask and without it, from twenty seeds: one seed alone would say little.
void twenty_seeds(Book& book) {
  std::vector<double> with, without;
  int better = 0;
  for (std::int64_t seed = 0; seed < 20; ++seed) {
    with.push_back(trained(seed, true)), without.push_back(trained(seed, false));
    better += with.back() < without.back();
  }
  const auto summary = [](const std::vector<double>& losses) {
    const auto x = from_vector(losses, {20});
    return fmt::format("mean {:.3f}, from {:.3f} to {:.3f}", mean(x).item(), min(x).item(), max(x).item());
  };
  fmt::print(
      "\nloss after 60 steps, 20 seeds\n  with the causal mask     {}\n  without                  {}\n",
      summary(with), summary(without));
  fmt::print("  the masked one is lower in {} of 20\n", better);
  book.expect("from every seed the loss falls below 0.5", *std::max_element(with.begin(), with.end()) < 0.5);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "A complete, trainable self-attention module");

  // Smoke test: shapes, gradient flow, and causality.
  TorchRandom rng(0);
  const std::int64_t B = 2, L = 5, d_model = 16;
  const auto x = rng.randn({B, L, d_model});
  nn::SelfAttention<float> attn(d_model, rng, {.causal = true});

  Tape<float> tape;
  tape.watch(x);
  tape.watch(attn.parameters());
  const auto y = attn(x);
  fmt::print("output shape: {}\n", y.shape().str());

  const auto grad = tape.backward(sum(y));
  fmt::print("grad flows to input: {}\n", sum(abs(grad[x])).item() > 0 ? "True" : "False");

  // The same in double, from the same float weights.
  TorchRandom unused(1);
  auto twin = in_double(attn, unused);
  const auto x2 = to<double>(detach(x));
  Tape<double> tape2;
  tape2.watch(x2);
  tape2.watch(twin.parameters());
  const auto y2 = twin(x2);
  const auto grad2 = tape2.backward(sum(y2));

  book.claim("self_attention_forward")
      .drawn("x", x)
      .drawn("W_q", attn.W_q.weight)
      .drawn("W_k", attn.W_k.weight)
      .drawn("W_v", attn.W_v.weight)
      .drawn("W_o", attn.W_o.weight)
      .values({{"y", y},
               {"y_float64", y},
               {"y_float64", y2},
               {"weights_float64", weights_of(twin, x2)},
               {"sum", sum(y)},
               {"sum_float64", sum(y2)}})
      .holds(y.shape() == Shape{2, 5, 16},
             fmt::format("{}, and the 160 numbers that PyTorch gives", y.shape().str()));
  book.claim("self_attention_backward", {{"x_grad", grad[x]},
                                         {"x_grad_float64", grad[x]},
                                         {"x_grad_float64", grad2[x2]},
                                         {"abs_sum", sum(abs(grad[x]))},
                                         {"W_q_grad_float64", grad[attn.W_q.weight]},
                                         {"W_q_grad_float64", grad2[twin.W_q.weight]},
                                         {"W_k_grad_float64", grad[attn.W_k.weight]},
                                         {"W_k_grad_float64", grad2[twin.W_k.weight]},
                                         {"W_v_grad_float64", grad[attn.W_v.weight]},
                                         {"W_v_grad_float64", grad2[twin.W_v.weight]},
                                         {"W_o_grad_float64", grad[attn.W_o.weight]},
                                         {"W_o_grad_float64", grad2[twin.W_o.weight]}})
      .holds(sum(abs(grad[x])).item() > 0, "True, and the gradients that PyTorch gives");

  // The causality that the listing's comment mentions: a different last token leaves earlier outputs unchanged.
  const auto last = eq(unsqueeze(arange<std::int64_t>(L), 1), scalar<std::int64_t>(L - 1));  // (L, 1)
  const auto changed = attn(where(last, detach(x) + 1, detach(x)));
  const bool unchanged = equal(changed.slice(1, 0, L - 1), detach(y).slice(1, 0, L - 1));
  book.claim("self_attention_causality", {{"earlier_outputs_unchanged", unchanged}})
      .note("the listing does not check it; here x[:, -1] += 1 leaves every earlier output as it was");

  // And it trains: gradient descent on a loss that asks each token to repeat the token before it.
  fmt::print("\nstep  loss\n");
  Series curve{"loss"};
  for (int step = 0; step <= 60; ++step) {
    Tape<double> steps;
    steps.watch(twin.parameters());
    const auto error = twin(detach(x2)).slice(1, 1, L) - detach(x2).slice(1, 0, L - 1);
    const auto loss = mean(error * error);
    if (step % 20 == 0) fmt::print("{:4}  {:.3f}\n", step, loss.item());
    const auto g = steps.backward(loss);
    twin.each_parameter([&](const std::string&, Tensor<double>& W) { W = detach(W - 0.5 * g[W]); });
    curve.x.push_back(step), curve.y.push_back(loss.item());
  }
  book.draw("training", {curve});
  book.expect("sixty steps of gradient descent lower the loss", curve.y.back() < curve.y.front());
  twenty_seeds(book);
  return book.close();
}
