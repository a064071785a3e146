// Modules: each against its formula, its gradients through every parameter, its errors. Those of attention
// are in attention_test.cpp.
#include <cmath>
#include <optional>
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

namespace {

// Members in a vector and in an optional, nested too.
struct Deep : nn::Module<Deep, double> {
  std::vector<nn::Linear<double>> layers;
  std::optional<nn::LayerNorm<double>> norm, none;
  std::vector<Tensor<double>> scales{ones<double>({2}), zeros<double>({3})};
  std::optional<std::vector<nn::Dropout<double>>> drops;
  explicit Deep(TorchRandom& rng) : norm(3), drops(std::in_place, 2, nn::Dropout<double>(0.5, rng)) {
    for (int i = 0; i < 2; ++i) layers.emplace_back(3, 3, rng, i == 0);
  }
  Tensor<double> operator()(const Tensor<double>& x) const {
    Tensor<double> y = x;
    for (const auto& layer : layers) y = tanh(layer(y));
    return (*norm)(y)*scales[0][0] + scales[1];
  }
  template <class F> void members(F&& visit) {
    visit("layers", layers), visit("norm", norm), visit("none", none), visit("scales", scales), visit("drops", drops);
  }
};

}  // namespace

TEST_CASE("nn: a std::vector or a std::optional of modules or tensors is visited as one member") {
  TorchRandom rng(1);
  const Deep deep(rng);
  CHECK(names(deep) ==
        "layers.0.weight(3, 3) layers.0.bias(3,) layers.1.weight(3, 3) norm.weight(3,) norm.bias(3,) scales.0(2,) "
        "scales.1(3,) "sv);
  Deep copy = deep;
  int modules = 0, training = 0;
  copy.eval();
  copy.each_module([&](const auto& module) { ++modules, training += module.training; });
  CHECK((modules == 6 && training == 0 && deep.training && deep.layers[1].training));
  CHECK(copy.layers[1].weight.id() != deep.layers[1].weight.id());
  CHECK_GRADIENTS(with_random_parameters(deep), randn({2, 3}));
}

TEST_CASE_TEMPLATE("nn: Sequential has PyTorch's names, draws and results", T, float, double) {
  TorchRandom rng(0), same(0);
  nn::Sequential net{nn::Linear<T>(3, 4, rng), relu, nn::Linear<T>(4, 2, rng)};
  std::string all;
  for (const auto& p : net.parameters()) all += p.name + p.tensor.shape().str() + " ";
  CHECK(all == "0.weight(4, 3) 0.bias(4,) 2.weight(2, 4) 2.bias(2,) "sv);
  const nn::Linear<T> first(3, 4, same), last(4, 2, same);
  CHECK((equal(std::get<0>(net.layers).weight, first.weight) && equal(*std::get<2>(net.layers).bias, *last.bias)));
  const Tensor<T> x{{1, -2, T(0.5)}};
  CHECK(equal(net(x), last(relu(first(x)))));
  if constexpr (std::is_same_v<
                    T, float>)  // torch.manual_seed(0), nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    CHECK(allclose(net(x), {{-0.18213798105716705f, 0.22740711271762848f}}, 1e-6, 0));

  auto copy = net;  // has parameters of its own
  Adam<T> adam{.lr = 0.1};
  Tape<T> tape;
  tape.watch(net.parameters());
  adam.step(net, tape.backward(sum(net(x))));
  CHECK((equal(copy(x), last(relu(first(x)))) && !equal(net(x), copy(x))));
  const testing::Folder folder;
  save_safetensors(folder.path("net.safetensors"), net.state());
  copy.load_state(load_safetensors(folder.path("net.safetensors")));
  CHECK(equal(net(x), copy(x)));
}

TEST_CASE("nn: Sequential takes functions, lambdas and modules of modules, in training and evaluation") {
  TorchRandom rng(1);
  nn::Sequential net{nn::Embedding<double>(7, 3, rng),
                     nn::Sequential{nn::Linear<double>(3, 4, rng), tanh, nn::Dropout<double>(0.5, rng)},
                     [](const auto& y) { return softmax(y, -1); },
                     gelu,
                     nn::LayerNorm<double>(4),
                     softplus,
                     nn::Linear<double>(4, 2, rng, false)};
  CHECK(names(net) == "0.weight(7, 3) 1.0.weight(4, 3) 1.0.bias(4,) 4.weight(4,) 4.bias(4,) 6.weight(2, 4) "sv);
  const Tensor<std::int64_t> ids{{1, 6}, {0, 2}};
  CHECK(net(ids).shape() == Shape{2, 2, 2});
  CHECK(!equal(net(ids), net(ids)));
  net.eval();
  CHECK((equal(net(ids), net(ids)) && !std::get<2>(std::get<1>(net.layers).layers).training));
  CHECK_GRADIENTS(net, randn({1}), [&](const auto& m, const auto& in) { return m(ids) * in; });
  nn::Sequential by_lambda{[](const auto& y) { return y * 2; }, nn::Linear<double>(3, 1, rng)};
  CHECK(equal(by_lambda(ones<double>({3})), std::get<1>(by_lambda.layers)(full<double>({3}, 2))));
}
