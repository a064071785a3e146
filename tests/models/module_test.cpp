// What every module has: parameters by name, copies with parameters of their own, ties, saving and loading.
#include "tapehead/models/module.hpp"

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "files.hpp"
#include "models/modules.hpp"
#include "tapehead/files/npy.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace modules;
using testing::message;

namespace {

template <class T> std::set<std::int64_t> ids(const std::vector<Named<T>>& parameters) {
  std::set<std::int64_t> all;
  for (const auto& p : parameters) all.insert(p.tensor.id());
  return all;
}
template <class M> bool share_none(const M& a, const M& b) {
  auto all = ids(a.parameters());
  all.merge(ids(b.parameters()));
  return all.size() == 2 * a.parameters().size();
}

// y = w x, written by a user: the parameter is a plain tensor.
template <class T> struct Scaled : nn::Module<Scaled<T>, T> {
  Tensor<T> weight{{2}};
  Tensor<T> operator()(const Tensor<T>& x) const { return weight * x; }
  template <class F> void members(F&& visit) { visit("weight", weight); }
};
// Every way of holding tensors and modules.
struct Holds : nn::Module<Holds, double> {
  std::optional<Tensor<double>> maybe = Tensor<double>{1, 2};
  std::vector<Tensor<double>> several{Tensor<double>{3}, Tensor<double>{4, 5}};
  std::vector<Scaled<double>> scales = std::vector<Scaled<double>>(2);
  Tensor<double> constant{7};  // not visited: no parameter
  Tensor<double> last{6};
  template <class F> void members(F&& visit) {
    visit("maybe", *maybe), visit("several.0", several[0]), visit("several.1", several[1]);
    for (std::size_t i = 0; i < scales.size(); ++i) visit("scales." + std::to_string(i), scales[i]);
    visit("last", last);
  }
};

// A module that another one holds by a pointer.
struct HoldsPointer : nn::Module<HoldsPointer, double> {
  std::shared_ptr<Scaled<double>> inner = std::make_shared<Scaled<double>>();
  Tensor<double> own{5};
  Tensor<double> operator()(const Tensor<double>& x) const {
    const Tensor<double> w = inner->weight;
    return own * (w * x);
  }
  template <class F> void members(F&& visit) { visit("inner", *inner), visit("own", own); }
};

// One tensor under two names: one member that is visited twice, two members, and members of inner modules.
struct VisitedTwice : nn::Module<VisitedTwice, double> {
  Tensor<double> w{1, 1};
  Tensor<double> used() const { return w; }
  template <class F> void members(F&& visit) { visit("emb", w), visit("head", w); }
};
struct TwoMembers : nn::Module<TwoMembers, double> {
  Tensor<double> emb{1, 1}, head = emb;
  Tensor<double> used() const { return head; }
  template <class F> void members(F&& visit) { visit("emb", emb), visit("head", head); }
};
struct TwoModules : nn::Module<TwoModules, double> {
  nn::RMSNorm<double> a{2}, b{2};
  TwoModules() { b.weight = a.weight; }
  Tensor<double> used() const { return b.weight; }
  template <class F> void members(F&& visit) { visit("emb", a), visit("head", b); }
};

}  // namespace

TEST_CASE_TEMPLATE("module: a target network, a copy of the online one, is a constant to the tape", M,
                   nn::Linear<double>, nn::Linear<float>, Scaled<double>, Scaled<float>) {
  using T = typename decltype(std::declval<M>().weight)::element;
  TorchRandom rng(1);
  const auto make = [&] {
    if constexpr (std::is_same_v<M, Scaled<T>>)
      return M();
    else
      return M(1, 1, rng, false);
  };
  auto online = make();
  online.weight = Tensor<T>{{2}};
  auto target = online, assigned = make();
  assigned = online;
  for (const M* other : {&target, &assigned}) {
    Tape<T> tape;
    tape.watch(online.parameters());
    const auto loss = mse_loss(online(Tensor<T>{{1}}), (*other)(Tensor<T>{{3}}) * 0.5);
    CHECK(tape.backward(loss)[online.weight].item() == -2);
  }
  // The same with the copy's parameters watched, and the original a constant.
  Tape<T> tape;
  tape.watch(target.weight);
  const auto loss = mse_loss(target(Tensor<T>{{1}}), online(Tensor<T>{{3}}) * 0.5);
  CHECK(tape.backward(loss)[target.weight].item() == -2);
}

TEST_CASE_TEMPLATE("module: copies in a vector are layers of their own", M, nn::Linear<double>, Scaled<double>) {
  TorchRandom rng(1);
  const auto first = [&] {
    if constexpr (std::is_same_v<M, Scaled<double>>)
      return M();
    else
      return M(1, 1, rng, false);
  };
  auto layer = first();
  layer.weight = Tensor<double>{{2}};
  std::vector<M> layers(3, layer);
  layers.push_back(layers[0]);
  Tape<double> tape;
  for (auto& each : layers) tape.watch(each.parameters());
  Tensor<double> x{{1}};
  for (std::size_t i = 0; i < 3; ++i) x = layers[i](x);
  const auto grad = tape.backward(x);
  for (std::size_t i = 0; i < 3; ++i) CHECK(grad[layers[i].weight].item() == 4);
  CHECK(grad[layers[3].weight].item() == 0);
}

TEST_CASE("module: a copy holds equal values under new identities, however the members are held") {
  const Holds original;
  const Holds copy = original;
  Holds assigned;
  assigned = original;
  for (const Holds* other : {&copy, static_cast<const Holds*>(&assigned)}) {
    CHECK(share_none(original, *other));
    const auto a = original.parameters(), b = other->parameters();
    REQUIRE(a.size() == 6);
    for (std::size_t i = 0; i < a.size(); ++i) {
      CHECK(b[i].name == a[i].name);
      CHECK(equal(b[i].tensor, a[i].tensor));
    }
    CHECK(other->constant.id() == original.constant.id());
  }
  assigned = *&assigned;
  CHECK(share_none(original, assigned));
  const Tensor<double> W = original.last;  // outside of copies, tensors stay what they are
  CHECK(W.id() == original.last.id());

  TorchRandom rng(1);
  const nn::GPT<float> model({.vocabulary = 5,
                              .block = 4,
                              .layers = 2,
                              .width = 4,
                              .blocks = {.attention = {.heads = 2, .qk_norm = true, .sinks = true}},
                              .tied = true},
                             rng);
  const std::vector<nn::GPT<float>> models(2, model);
  CHECK(share_none(model, models[0]));
  CHECK(share_none(models[0], models[1]));
  const Tensor<std::int64_t> tokens{1, 2, 3};
  CHECK(equal(models[1](tokens), model(tokens)));
}

TEST_CASE("module: moving keeps the parameters, and so does the growth of a vector") {
  Holds original;
  const auto before = ids(original.parameters());
  Holds moved = std::move(original);
  CHECK(ids(moved.parameters()) == before);
  std::vector<Holds> many;
  many.push_back(std::move(moved));
  for (int i = 0; i < 5; ++i) many.emplace_back();
  CHECK(ids(many[0].parameters()) == before);
  std::swap(many[0], many[3]);
  CHECK(ids(many[3].parameters()) == before);
}

TEST_CASE("module: threads copy one model at the same time") {
  const Holds model;
  std::vector<Holds> copies(4);
  std::vector<std::thread> threads;
  for (Holds& copy : copies)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) copy = Holds(model);
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < copies.size(); ++i) {
    CHECK(share_none(model, copies[i]));
    CHECK(share_none(copies[0], copies[i]) == (i > 0));
    CHECK(equal(copies[i].last, model.last));
  }
}

TEST_CASE("module: a snapshot taken while a tape watches leaves the step to the original") {
  Scaled<double> model;
  Tape<double> tape;
  tape.watch(model.parameters());
  const auto y = model(Tensor<double>{{3}});
  const auto snapshot = model;
  SGD<double>{.lr = 1}.step(model, tape.backward(y));
  CHECK(model.weight.item() == -1);
  CHECK(snapshot.weight.item() == 2);
}

TEST_CASE("module: what a module holds by a pointer stays shared, and keeps its gradient after a copy") {
  const HoldsPointer original;
  Tape<double> tape;
  tape.watch(original.parameters());
  const HoldsPointer copy = original;
  const auto grad = tape.backward(sum(original(Tensor<double>{3})));
  CHECK((grad[original.inner->weight].item() == 15 && grad[original.own].item() == 6));
  CHECK((copy.inner == original.inner && copy.own.id() != original.own.id()));
}

TEST_CASE("module: a copy that is interrupted or made by hand leaves no trace") {
  struct ByHand : nn::Module<ByHand, double> {
    Tensor<double> w{1.0};
    ByHand() = default;
    ByHand(const ByHand& other) : Module(other) { w = other.w + 0.0; }
    void members(const std::function<void(const std::string&, Tensor<double>&)>& visit) { visit("w", w); }
  };
  const ByHand a;
  const ByHand b = a;
  CHECK(b.parameters()[0].tensor.id() != a.w.id());
  CHECK(a.parameters()[0].tensor.id() == a.w.id());
  CHECK(Tensor<double>(a.w).id() == a.w.id());
}

TEST_CASE_TEMPLATE("module: a parameter under two names is one parameter", M, VisitedTwice, TwoMembers, TwoModules) {
  M model;
  CHECK(model.parameter_count() == 2);
  CHECK(model.parameters().size() == 1);
  CHECK(model.state().size() == 1);
  int visits = 0;
  model.each_parameter([&](const std::string& name, Tensor<double>&) {
    CHECK(name.substr(0, 3) == "emb");
    ++visits;
  });
  CHECK(visits == 1);

  const auto gradients = [](const M& m) {  // of 3 w: (3, 3)
    Tape<double> tape;
    tape.watch(m.parameters());
    return tape.backward(sum(m.used()) * 3);
  };
  const auto [clipped, norm] = clip_grad_norm(model, gradients(model), 1);
  CHECK(norm == doctest::Approx(std::sqrt(18)).epsilon(1e-14));
  CHECK(allclose(clipped[model.used()], Tensor<double>{std::sqrt(0.5), std::sqrt(0.5)}, 1e-6, 0));

  SGD<double> sgd{.lr = 0.125, .momentum = 0.5};
  sgd.step(model, gradients(model));
  CHECK(sgd.velocity.size() == 1);
  CHECK(equal(model.used(), Tensor<double>{0.625, 0.625}));
  CHECK(model.parameter_count() == 2);  // still tied
  AdamW<double> adam{.lr = 0.5, .eps = 0, .weight_decay = 0};
  adam.step(model, gradients(model));
  CHECK(adam.state.size() == 1);
  CHECK(allclose(model.used(), Tensor<double>{0.125, 0.125}, 1e-14, 0));

  M copy = model;
  CHECK(copy.parameter_count() == 2);
  CHECK(share_none(model, copy));
  copy.each_parameter([](const std::string&, Tensor<double>& w) { w = Tensor<double>{5, 6}; });
  CHECK(equal(copy.used(), Tensor<double>{5, 6}));
  CHECK(copy.parameter_count() == 2);
}

TEST_CASE_TEMPLATE("module: a tied parameter is loaded under any of its names", M, VisitedTwice, TwoMembers) {
  M model;
  const Tensor<double> w{3, 4};
  for (const NamedTensors& state : {NamedTensors{{"emb", w}}, NamedTensors{{"head", w}},
                                    NamedTensors{{"emb", w}, {"head", Tensor<double>{3, 4}}}}) {
    model = M();
    model.load_state(state);
    CHECK(equal(model.used(), w));
    CHECK(model.parameter_count() == 2);
  }
  CHECK(message<ValueError>([&] {
          model.load_state({{"emb", w}, {"head", Tensor<double>{3, 5}}});
        }) == "load_state: emb and head are one parameter here, and differ in the file; nothing was loaded"sv);
  CHECK(message<ValueError>([&] {
          model.load_state({{"tail", w}});
        }) == "load_state: missing emb; without a place here tail; nothing was loaded"sv);
  CHECK(message<ShapeError>([&] {
          model.load_state({{"head", Tensor<double>{1}}});
        }) == "load_state: head has shape (1,) in the file and (2,) here; nothing was loaded"sv);
  CHECK(equal(model.used(), w));
}

TEST_CASE("module: models that load one state have parameters of their own") {
  Scaled<double> online, a, b;
  const auto state = online.state();
  a.load_state(state), b.load_state(state);
  CHECK(share_none(a, b));
  Tape<double> tape;
  tape.watch(a.parameters());
  const auto loss = mse_loss(a(Tensor<double>{{1}}), online(Tensor<double>{{3}}) * 0.5);
  CHECK(tape.backward(loss)[a.weight].item() == -2);
}

TEST_CASE("module: state goes to a file and comes back; a wrong file changes nothing") {
  TorchRandom rng(1);
  const testing::Folder folder;
  nn::MLP<float> a(4, 6, rng), b(4, 6, rng);
  const auto x = rng.randn({3, 4});
  CHECK_FALSE(equal(a(x), b(x)));
  save_npz(folder.path("mlp.npz"), a.state());
  b.load_state(load_npz(folder.path("mlp.npz")));
  CHECK(equal(a(x), b(x)));
  nn::MLP<double> in_double(4, 6, rng);
  in_double.load_state(a.state());  // float fits in double exactly
  CHECK(in_double.c_fc.weight.at({1, 2}) == static_cast<double>(a.c_fc.weight.at({1, 2})));

  const auto before = b.c_fc.weight.id();
  const auto with = [&](const std::string& leave_out, const std::string& replace, const Shape& shape) {
    NamedTensors state;
    for (const auto& [name, tensor] : a.state())
      if (name != leave_out) state.add(name, name == replace ? AnyTensor(zeros<float>(shape)) : tensor);
    return state;
  };
  auto extra = a.state();
  extra.add("lm_head.weight", zeros<float>({1}));
  CHECK(message<ValueError>([&] { b.load_state(extra); }) ==
        "load_state: without a place here lm_head.weight; nothing was loaded (strict = false leaves them out)"sv);
  CHECK(message<ValueError>([&] { b.load_state(with("c_proj.bias", "", {})); }) ==
        "load_state: missing c_proj.bias; nothing was loaded"sv);
  CHECK(message<ShapeError>([&] {
          b.load_state(with("", "c_proj.weight", {6, 4}));
        }) == "load_state: c_proj.weight has shape (6, 4) in the file and (4, 6) here; nothing was loaded"sv);
  CHECK(message<ValueError>([&] { b.load_state(in_double.state()); }) ==
        "get<float>: 'c_fc.weight' holds double elements, which float does not hold exactly; call get<double>, "
        "then to<float>()"sv);
  CHECK(b.c_fc.weight.id() == before);
  b.load_state(a.state());
  CHECK(b.c_fc.weight.id() != before);
  b.load_state(extra, false);
  CHECK(b.parameter_count() == 4 * 6 + 6 + 6 * 4 + 4);
}
