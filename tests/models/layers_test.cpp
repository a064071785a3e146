// Modules: each against its formula, its gradients through every parameter, its errors. Those of attention
// are in attention_test.cpp.
#include <cmath>
#include <string>
#include <vector>

#include "files.hpp"
#include "models/modules.hpp"
#include "tapehead/files/npy.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace modules;
using testing::message;

TEST_CASE("nn: Linear, LayerNorm, RMSNorm, Embedding start as torch.nn's and compute their formulas") {
  TorchRandom rng(3), same(3);
  const nn::Linear<double> linear(5, 3, rng);
  CHECK(equal(linear.weight, same.linear_weight<double>(5, 3)));
  CHECK(equal(*linear.bias, same.linear_bias<double>(5, 3)));
  const auto x = randn({2, 4, 5});
  CHECK(close(linear(x), matmul(x, mT(linear.weight)) + *linear.bias));
  CHECK(names(nn::Linear<double>(5, 3, rng, false)) == "weight(3, 5) "sv);

  const nn::Embedding<double> embedding(7, 4, rng);
  same.linear_weight<double>(5, 3);
  CHECK(equal(embedding.weight, same.randn<double>({7, 4})));
  CHECK(equal(embedding(Tensor<std::int64_t>{{6, 0}}),
              reshape(cat<double>({embedding.weight[6], embedding.weight[0]}), {1, 2, 4})));

  const auto layer = with_random_parameters(nn::LayerNorm<double>(5));
  const auto centred = x - mean(x, -1, true);
  CHECK(close(layer(x), centred / sqrt(mean(centred * centred, -1, true) + 1e-5) * layer.weight + *layer.bias));
  const auto rms = with_random_parameters(nn::RMSNorm<double>(5));
  CHECK(close(rms(x), x / sqrt(mean(x * x, -1, true) + 1e-6) * rms.weight));
  CHECK(names(nn::LayerNorm<double>(5)) == "weight(5,) bias(5,) "sv);
  CHECK(names(nn::LayerNorm<double>(5, false)) == "weight(5,) "sv);

  CHECK(message<ShapeError>([&] { linear(zeros<double>({2, 4})); }).starts_with("linear: x (2, 4), W (3, 5)"));
  CHECK_GRADIENTS(linear, x);
  CHECK_GRADIENTS(layer, x);
  CHECK_GRADIENTS(rms, x);
  CHECK_GRADIENTS(embedding, x, [](const auto& m, const auto& at) {
    return sum(m(Tensor<std::int64_t>{1, 3, 1})) * sum(at);
  });
}

TEST_CASE("nn: MLP in both forms of GELU, and SwiGLU") {
  TorchRandom rng(1);
  const auto x = randn({3, 4});
  for (Gelu form : {Gelu::erf, Gelu::tanh}) {
    const nn::MLP<double> mlp(4, 7, rng, true, form);
    CHECK(close(mlp(x), mlp.c_proj(gelu(mlp.c_fc(x), form))));
    CHECK_GRADIENTS(mlp, x);
  }
  CHECK(names(nn::MLP<double>(4, 7, rng)) == "c_fc.weight(7, 4) c_fc.bias(7,) c_proj.weight(4, 7) c_proj.bias(4,) "sv);
  const nn::SwiGLU<double> swiglu(4, 7, rng);
  const auto gate = matmul(x, swiglu.gate_proj.weight.T()), up = matmul(x, swiglu.up_proj.weight.T());
  CHECK(close(swiglu(x), matmul(gate / (1 + exp(-gate)) * up, swiglu.down_proj.weight.T())));
  CHECK(names(swiglu) == "gate_proj.weight(7, 4) up_proj.weight(7, 4) down_proj.weight(4, 7) "sv);
  CHECK_GRADIENTS(swiglu, x);
}

TEST_CASE("nn: dropout draws while training and is off in evaluation") {
  TorchRandom rng(1);
  const auto x = randn({4, 50}), mask = randn({1});
  nn::Dropout<double> drop(0.5, rng);
  CHECK_FALSE(equal(drop(x), drop(x)));
  drop.eval();
  CHECK(equal(drop(x), x));
  CHECK(message<ValueError>([&] { nn::Dropout<double>(-0.1, rng); }) ==
        "Dropout: p -0.1; it is a probability, so it must be in [0, 1]"sv);
  CHECK(message<ValueError>([&] { nn::Dropout<double>(1.1, rng); }) ==
        "Dropout: p 1.1; it is a probability, so it must be in [0, 1]"sv);

  const auto tokens = randn({2, 5, 8});
  nn::MultiHeadAttention<double> attn(8, rng, {.heads = 2, .dropout = 0.5});
  nn::MultiHeadAttention<double> without(8, rng, {.heads = 2});
  without.load_state(attn.state());
  CHECK_FALSE(equal(attn(tokens), attn(tokens)));
  attn.eval();
  CHECK(equal(attn(tokens), without(tokens)));
  attn.train();
  CHECK_FALSE(equal(attn(tokens), attn(tokens)));
  for (double p : {-0.1, 1.1}) {
    nn::MultiHeadAttention<double> wrong(8, rng, {.heads = 2, .dropout = p});
    CHECK(message<ValueError>([&] { wrong(tokens); }).find("so it must be in [0, 1]") != std::string::npos);
  }
}
