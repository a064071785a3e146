// The whole model: PyTorch's logits, loss, gradients and optimiser steps; training, generating, saving.
#include <cmath>
#include <string>
#include <vector>

#include "files.hpp"
#include "golden_cases.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

// PyTorch in double sums in another order than we do; over a few layers that is some tens of ε of the largest
// value (1e-15 where it was measured). Adam divides by √v, so that a small gradient's error counts for more.
constexpr double forward_tolerance = 1e-13, step_tolerance = 1e-12;

bool close(const Tensor<double>& a, const Tensor<double>& b, double tolerance) {
  return golden::difference(a, b, tolerance).empty();
}

struct Golden {
  NamedTensors tensors = load_npz(golden::path("gpt_step.npz"));
  golden::Words settings;
  Golden() {
    for (const auto& line : golden::table("gpt_step.tsv")) settings.set(line.text("setting"), line.text("value"));
  }

  Tensor<double> get(const std::string& name) const { return tensors.get<double>(name); }
  Tensor<std::int64_t> ids(const std::string& name) const { return tensors.get<std::int64_t>(name); }
  // The file has the names without PyTorch's ".weight".
  static std::string short_name(const std::string& name) { return name.substr(0, name.rfind('.')); }

  nn::GPT<double> model() const {
    TorchRandom rng(0);
    nn::GPT<double> gpt({.vocabulary = settings.integer("config.vocab"),
                         .block = settings.integer("config.block"),
                         .layers = settings.integer("config.n_layer"),
                         .width = settings.integer("config.n_embd"),
                         .blocks = {.attention = {.heads = settings.integer("config.n_head")},
                                    .mlp = nn::MlpKind::gelu_tanh,
                                    .norm_eps = settings.number("config.ln_eps"),
                                    .bias = false}},
                        rng);
    NamedTensors state;
    for (const auto& [name, tensor] : tensors)
      if (name.rfind("params/", 0) == 0) state.add(name.substr(7) + ".weight", tensor);
    gpt.load_state(state);
    return gpt;
  }
  Tensor<double> loss(const Tensor<double>& logits) const {
    return cross_entropy(logits, ids("targets"), {.ignore_index = settings.integer("config.ignore_index")});
  }
};

nn::BlockOptions llama_like(std::int64_t heads, std::int64_t kv_heads) {
  return {.attention = {.heads = heads, .kv_heads = kv_heads, .rope = true, .qk_norm = true, .sinks = true},
          .hidden = 12,
          .mlp = nn::MlpKind::swiglu,
          .norm = nn::NormKind::rms,
          .bias = false};
}

}  // namespace

TEST_CASE("GPT: logits, loss and every gradient are PyTorch's") {
  const Golden golden;
  for (const std::string how : {"eager", "sdpa", "flash", "flex"}) {
    auto model = golden.model();
    nn::set_implementation(model, how);
    Tape<double> tape;
    tape.watch(model.parameters());
    const auto logits = model(golden.ids("idx"));
    CHECK(golden::difference(logits, golden.get("logits"), forward_tolerance) == ""sv);
    const auto loss = golden.loss(logits);
    CHECK(golden::difference(loss, golden.get("loss"), forward_tolerance) == ""sv);
    const auto grad = tape.backward(loss);
    for (const auto& p : model.parameters()) {
      CAPTURE(p.name);
      CHECK(golden::difference(grad[p.tensor], golden.get("grads/" + Golden::short_name(p.name)), forward_tolerance) ==
            ""sv);
    }
  }
}

TEST_CASE("GPT: steps of AdamW are PyTorch's, decaying all parameters or matrices alone") {
  const Golden golden;
  for (const std::string variant : {"decay_all", "decay_matrices"}) {
    auto model = golden.model();
    const auto betas = golden.settings.numbers("adamw.betas");
    AdamW<double> optimizer{.lr = golden.settings.number("adamw.lr"),
                            .beta1 = betas[0],
                            .beta2 = betas[1],
                            .eps = golden.settings.number("adamw.eps"),
                            .weight_decay = golden.settings.number("adamw.weight_decay"),
                            .decay_vectors = variant == "decay_all"};
    std::vector<double> losses;
    for (std::int64_t step = 0; step <= golden.settings.integer("adamw.steps"); ++step) {
      Tape<double> tape;
      tape.watch(model.parameters());
      const auto loss = golden.loss(model(golden.ids("idx")));
      losses.push_back(loss.item());
      if (step < golden.settings.integer("adamw.steps")) optimizer.step(model, tape.backward(loss));
    }
    CHECK(golden::difference(from_vector(losses, {static_cast<std::int64_t>(losses.size())}),
                             golden.get("after_steps/" + variant + "/losses"), step_tolerance) == ""sv);
    for (const auto& p : model.parameters()) {
      CAPTURE(p.name);
      CHECK(golden::difference(p.tensor, golden.get("after_steps/" + variant + "/params/" + Golden::short_name(p.name)),
                               step_tolerance) == ""sv);
    }
  }
}

TEST_CASE("GPT: parameters under GPT-2's names, one for the two ends where they are tied") {
  TorchRandom rng(1);
  const nn::GPT<float> model(
      {.vocabulary = 5, .block = 4, .layers = 1, .width = 4, .blocks = {.attention = {.heads = 2}}, .tied = true}, rng);
  std::string names;
  for (const auto& p : model.parameters()) names += p.name + p.tensor.shape().str() + " ";
  CHECK(names ==
        "wte.weight(5, 4) wpe.weight(4, 4) h.0.ln_1.weight(4,) h.0.ln_1.bias(4,) h.0.attn.c_attn.weight(12, "
        "4) h.0.attn.c_attn.bias(12,) "
        "h.0.attn.c_proj.weight(4, 4) h.0.attn.c_proj.bias(4,) h.0.ln_2.weight(4,) h.0.ln_2.bias(4,) "
        "h.0.mlp.c_fc.weight(16, 4) "
        "h.0.mlp.c_fc.bias(16,) h.0.mlp.c_proj.weight(4, 16) h.0.mlp.c_proj.bias(4,) ln_f.weight(4,) "
        "ln_f.bias(4,) "sv);
  const nn::GPT<float> llama({.vocabulary = 5, .layers = 1, .width = 8, .blocks = llama_like(4, 2)}, rng);
  names.clear();
  for (const auto& p : llama.parameters()) names += p.name + p.tensor.shape().str() + " ";
  CHECK(names ==
        "wte.weight(5, 8) h.0.ln_1.weight(8,) h.0.attn.c_attn.weight(16, 8) h.0.attn.c_proj.weight(8, 8) "
        "h.0.attn.q_norm.weight(2,) "
        "h.0.attn.k_norm.weight(2,) h.0.attn.sinks(4,) h.0.ln_2.weight(8,) h.0.mlp.gate_proj.weight(12, 8) "
        "h.0.mlp.up_proj.weight(12, 8) "
        "h.0.mlp.down_proj.weight(8, 12) ln_f.weight(8,) lm_head.weight(5, 8) "sv);
}

TEST_CASE("GPT: gradients through every parameter, by differences") {
  for (bool tied : {true, false}) {
    TorchRandom rng(1);
    nn::GPT<double>::Options o{
        .vocabulary = 5, .block = 4, .layers = 2, .width = 4, .blocks = {.attention = {.heads = 2}}, .tied = tied};
    if (!tied) o.blocks = llama_like(2, 1);
    const nn::GPT<double> model(o, rng);
    NumpyRandom numbers(2);
    std::vector<Named<double>> at;
    for (const auto& p : model.parameters()) at.push_back({p.name, numbers.randn(p.tensor.shape()) * 0.5});
    const auto report = gradcheck(
        [&](const std::vector<Tensor<double>>& p) {
          auto other = model;
          std::size_t i = 0;
          other.each_parameter([&](const std::string&, Tensor<double>& parameter) { parameter = p[i++]; });
          return cross_entropy(other(Tensor<std::int64_t>{{1, 4, 2, 2}, {0, 3, 1, 4}}),
                               Tensor<std::int64_t>{{4, 2, 2, 0}, {3, 1, 4, -100}});
        },
        at);
    CHECK_MESSAGE(report.ok, report.text());
  }
}

TEST_CASE("GPT: decoding in any chunks gives the rows of the whole sequence") {
  for (bool llama : {false, true}) {
    TorchRandom rng(3);
    nn::GPT<double>::Options o{
        .vocabulary = 9, .block = 8, .layers = 2, .width = 8, .blocks = {.attention = {.heads = 2}, .dropout = 0.5}};
    if (llama) o.blocks = llama_like(4, 2);
    nn::GPT<double> model(o, rng);
    model.eval();
    const auto ids = rng.randint(0, 9, {2, 8});
    const auto whole = model(ids);
    for (const auto& cuts : std::vector<std::vector<std::int64_t>>{{8}, {1, 1, 1, 1, 1, 1, 1, 1}, {3, 4, 1}}) {
      auto cache = model.make_cache({2}, 8);
      std::vector<Tensor<double>> out;
      std::int64_t at = 0;
      for (std::int64_t n : cuts) out.push_back(model.decode(slice(ids, 1, at, at + n), cache)), at += n;
      CHECK(close(cat(out, 1), whole, forward_tolerance));
    }
    CHECK(close(model(ids[1]), whole[1], forward_tolerance));  // no batch axis
  }
}

TEST_CASE("GPT: dropout everywhere while training, nowhere in evaluation") {
  TorchRandom rng(3);
  nn::GPT<double> model(
      {.vocabulary = 9, .block = 8, .layers = 1, .width = 8, .blocks = {.attention = {.heads = 2}, .dropout = 0.5}},
      rng);
  CHECK(model.h[0].attn.options.dropout == 0.5);  // of the weights
  const Tensor<std::int64_t> ids{1, 2, 3};
  CHECK_FALSE(equal(model(ids), model(ids)));
  const auto parts = [&](double p) { model.drop.p = p, model.h[0].drop.p = p, model.h[0].attn.options.dropout = p; };
  parts(0);
  const auto without = model(ids);
  for (double* one : {&model.drop.p, &model.h[0].drop.p, &model.h[0].attn.options.dropout}) {
    *one = 0.5;
    CHECK_FALSE(equal(model(ids), without));
    parts(0);
  }
  parts(0.5);
  model.eval();
  CHECK(equal(model(ids), without));
}

TEST_CASE("GPT: packed documents do not see each other") {
  TorchRandom rng(3);
  const nn::GPT<double> model({.vocabulary = 9, .layers = 2, .width = 8, .blocks = llama_like(2, 2)}, rng);
  const Tensor<std::int64_t> first{1, 2, 3}, other{8, 0, 3}, second{4, 5};
  const auto mask = document_mask(Tensor<std::int64_t>{0, 0, 0, 1, 1});
  const auto packed = model(cat<std::int64_t>({first, second}), mask);
  CHECK(equal(slice(packed, 0, 3, 5), slice(model(cat<std::int64_t>({other, second}), mask), 0, 3, 5)));
  CHECK(close(slice(packed, 0, 0, 3), model(first), forward_tolerance));
  CHECK(close(slice(packed, 0, 3, 5), model(second), forward_tolerance));  // rope: distances alone
}

TEST_CASE("GPT: starting as GPT-2 draws what nanoGPT draws, in its order") {
  const std::int64_t vocabulary = 5, block = 4, width = 4;
  TorchRandom rng(7), same(7);
  const nn::GPT<float> model({.vocabulary = vocabulary,
                              .block = block,
                              .layers = 2,
                              .width = width,
                              .blocks = {.attention = {.heads = 2}, .bias = true},
                              .tied = true,
                              .init = nn::Init::gpt2},
                             rng);
  const auto start = [&] {  // torch.nn's own draws come first, and are thrown away
    same.randn({vocabulary, width}), same.randn({block, width});
    for (int layer = 0; layer < 2; ++layer)
      for (const auto& [in, out] :
           std::vector<std::pair<std::int64_t, std::int64_t>>{{4, 12}, {4, 4}, {4, 16}, {16, 4}})
        same.linear_weight(in, out), same.linear_bias(in, out);
    same.linear_weight(width, vocabulary);
  };
  start();
  same.normal(0, 0.02, {vocabulary, width});
  CHECK(equal(model.wpe->weight, same.normal(0, 0.02, {block, width})));
  for (const auto& layer : model.h) {
    CHECK(equal(layer.attn.c_attn.weight, same.normal(0, 0.02, {12, 4})));
    CHECK(equal(*layer.attn.c_attn.bias, zeros<float>({12})));
    same.normal(0, 0.02, {4, 4});
    CHECK(equal(std::get<nn::MLP<float>>(layer.mlp.kind).c_fc.weight, same.normal(0, 0.02, {16, 4})));
    same.normal(0, 0.02, {4, 16});
  }
  CHECK(equal(model.wte.weight, same.normal(0, 0.02, {vocabulary, width})));  // tied: the output layer's draw stays
  for (const auto& layer : model.h) {
    CHECK(equal(layer.attn.c_proj.weight, same.normal(0, 0.01, {4, 4})));  // 0.02 / √(2 layers)
    CHECK(equal(std::get<nn::MLP<float>>(layer.mlp.kind).c_proj.weight, same.normal(0, 0.01, {4, 16})));
  }
}

TEST_CASE("GPT: a tiny one learns a text by heart, and says it again") {
  const std::string text = "attention is a soft dictionary lookup. ";
  std::string alphabet;
  std::vector<std::int64_t> ids;
  for (char c : text) {
    if (alphabet.find(c) == std::string::npos) alphabet += c;
    ids.push_back(static_cast<std::int64_t>(alphabet.find(c)));
  }
  const auto n = static_cast<std::int64_t>(ids.size());
  const auto tokens = from_vector(ids, {1, n});
  for (const std::string how : {"eager", "flash"}) {
    TorchRandom rng(0);
    nn::GPT<float> model({.vocabulary = static_cast<std::int64_t>(alphabet.size()),
                          .block = n,
                          .layers = 2,
                          .width = 32,
                          .blocks = {.attention = {.heads = 4}},
                          .tied = true,
                          .init = nn::Init::gpt2},
                         rng);
    nn::set_implementation(model, how);
    AdamW<float> optimizer{.lr = 1e-2};
    double loss = 0;
    for (int step = 0; step < 60; ++step) {
      Tape<float> tape;
      tape.watch(model.parameters());
      const auto l = cross_entropy(model(slice(tokens, 1, 0, n - 1)), slice(tokens, 1, 1, n));
      loss = l.item();
      optimizer.step(model, clip_grad_norm(model, tape.backward(l), 1.0));
    }
    CHECK(loss < 0.1);
    CHECK(equal(nn::generate(model, slice(tokens, 1, 0, 3), n - 3), tokens));
  }
}

TEST_CASE("GPT: a model through a safetensors file") {
  const testing::Folder folder;
  TorchRandom rng(2);
  const nn::GPT<float>::Options o{
      .vocabulary = 6, .block = 5, .layers = 2, .width = 8, .blocks = {.attention = {.heads = 2}}};
  const nn::GPT<float> model(o, rng);
  nn::GPT<float> other(o, rng);
  save_safetensors(folder.path("gpt.safetensors"), model.state());
  other.load_state(load_safetensors(folder.path("gpt.safetensors")));
  CHECK(equal(other(Tensor<std::int64_t>{0, 3, 5}), model(Tensor<std::int64_t>{0, 3, 5})));
}

TEST_CASE("GPT: errors") {
  TorchRandom rng(2);
  const nn::GPT<float> model(
      {.vocabulary = 6, .block = 3, .layers = 2, .width = 8, .blocks = {.attention = {.heads = 2}}}, rng);
  CHECK(message<ValueError>([&] {
          model(zeros<std::int64_t>({1, 4}));
        }) == "GPT: 4 tokens, and learned positions for 3; give fewer, or make the model with a larger block"sv);
  CHECK(message<IndexError>([&] { model(Tensor<std::int64_t>{0, 6}); }) != "[nothing was thrown]"sv);
  CHECK(message<ShapeError>([&] { model.h[0].attn(zeros<float>({3, 7})); }).starts_with("linear: x (3, 7), W (24, 8)"));
  auto cache = model.make_cache({1}, 2);
  model.decode(zeros<std::int64_t>({1, 1}), cache);
  CHECK(message<ValueError>([&] {
          model.decode(zeros<std::int64_t>({1, 2}), cache);
        }) ==
        "GPT.decode: 2 more tokens behind 1 in a cache for 2; make the cache larger, and let each layer's "
        "hold the same tokens"sv);
  CHECK(cache[0].length() == 1);
  // A layer in the middle that cannot take the tokens leaves those before it as they were.
  auto uneven = model.make_cache({1}, 2);
  uneven[1] = KVCache<float>({1, 2}, 2, 3);
  CHECK(message<ShapeError>([&] { model.decode(zeros<std::int64_t>({1, 1}), uneven); }) != "[nothing was thrown]"sv);
  CHECK(uneven[0].length() == 0);
  cache.pop_back();
  CHECK(message<ValueError>([&] {
          model.decode(zeros<std::int64_t>({1, 1}), cache);
        }) == "GPT.decode: 1 caches for 2 layers; make_cache() gives one for each"sv);
  CHECK(message<ValueError>([&] { nn::GPT<float>({.vocabulary = 6, .layers = 1, .width = 8}, rng); }) ==
        "GPT: block 0; with learned positions it is the longest sequence, 1 or more"sv);
  CHECK(message<ValueError>([&] { nn::GPT<float>({.vocabulary = 6, .block = 3, .layers = -1, .width = 8}, rng); }) ==
        "GPT: -1 layers; it must be 0 or more"sv);
}
