#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapehead/autograd/tape.hpp"

// Optimisers. step(model, grad) computes each parameter's next value off the tape and puts it in the old one's
// place: new tensors, so each step takes a new tape. Where it throws, model and optimiser are as before. The
// optimiser's state goes by the parameter's name. Settings are plain members that may change at any time (a
// learning rate schedule is an assignment).
//
//   AdamW<float> optimizer{.lr = 3e-4};
//   for (…) {
//     Tape<float> tape;
//     tape.watch(model.parameters());
//     …
//     optimizer.step(model, tape.backward(loss));
//   }
//
// In place of a model, step() and clip_grad_norm() also take the parameters themselves: std::tie(w, b), one tensor, or a
// std::vector of tensors. Their state goes by position, so name them in the same order at each step.

namespace tapehead {

namespace detail {
// A parameter on its way to the next value: its first name and every member that holds it.
template <class T> struct Update {
  std::string name;
  std::vector<Tensor<T>*> members;
  Tensor<T> gradient;
};
template <class T> void check_updates(const char* op, const std::vector<Update<T>>& updates);
[[noreturn]] void throw_unwatched(const char* op, const std::string& name);

// The parameters of a module, or those of a tuple or vector by position, with their gradients. `grad` is what backward()
// gave, or anything else with grad[parameter].
template <class T, class Model, class G>
std::vector<Update<T>> updates_of(const char* op, Model& model, const G& grad) {
  std::vector<Update<T>> updates;
  const auto add = [&](const std::string& name, const std::vector<Tensor<T>*>& members) {
    try {
      updates.push_back({name, members, grad[*members.front()]});
    } catch (const GradientError&) {
      throw_unwatched(op, name);
    }
  };
  const auto add_next = [&](Tensor<T>& parameter) { add(std::to_string(updates.size()), {&parameter}); };
  if constexpr (std::is_same_v<Model, Tensor<T>>)
    add_next(model);
  else if constexpr (requires { model.list(); })
    for (auto& parameter : model.list()) add(parameter.name(), parameter.members);
  else if constexpr (requires { model.begin(); })
    for (Tensor<T>& parameter : model) add_next(parameter);
  else
    std::apply([&](auto&... parameters) { (add_next(parameters), ...); }, model);
  check_updates(op, updates);
  return updates;
}
template <class T> double gradient_norm(const std::vector<Update<T>>& updates);
double clip_factor(double norm, double max_norm);
template <class T> Tensor<T> times(const Tensor<T>& x, double factor);
}  // namespace detail

/// Stochastic gradient descent, torch.optim.SGD:
///   g += weight_decay p;  b = momentum b + g (b = g at first);  p -= lr b,
///   or with nesterov p -= lr (g + momentum b).
template <Floating T> struct SGD {
  double lr = 1e-3;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;                           ///< needs momentum
  std::map<std::string, Tensor<T>> velocity = {};  ///< b, by the parameter's name

  /// Throws GradientError where a parameter was not watched, ValueError for an invalid setting.
  template <class Model, class G> void step(Model&& model, const G& grad) {
    update(detail::updates_of<T>("SGD", model, grad));
  }
  void update(const std::vector<detail::Update<T>>& updates);
};

/// Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019), torch.optim's. In step t of a parameter:
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g²;
///   p -= lr m̂ / (√v̂ + eps),  m̂ = m / (1 - beta1^t),  v̂ = v / (1 - beta2^t).
/// Weight decay is first added to g (Adam), or p is multiplied by 1 - lr weight_decay (AdamW, `decoupled`).
template <Floating T, bool decoupled> struct AdamOptimizer {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = decoupled ? 0.01 : 0;
  /// False: weight decay only on parameters of rank 2 and more, not on biases and norms.
  bool decay_vectors = true;
  struct State {
    std::int64_t steps = 0;
    Tensor<T> m, v;
  };
  std::map<std::string, State> state = {};

  /// Throws GradientError where a parameter was not watched, ValueError for an invalid setting.
  template <class Model, class G> void step(Model&& model, const G& grad) {
    update(detail::updates_of<T>(decoupled ? "AdamW" : "Adam", model, grad));
  }
  void update(const std::vector<detail::Update<T>>& updates);
};
template <Floating T> using Adam = AdamOptimizer<T, false>;
template <Floating T> using AdamW = AdamOptimizer<T, true>;

/// Gradients that are all multiplied by one factor, when they are asked for.
template <class T> struct ScaledGradients {
  Gradients<T> grad;
  double factor;
  Tensor<T> operator[](const Tensor<T>& x) const { return factor == 1 ? grad[x] : detail::times(grad[x], factor); }
};
/// What clip_grad_norm() gives: `auto [grad, norm] = clip_grad_norm(…)`. step() takes grad, or all of it.
template <class T> struct Clipped {
  ScaledGradients<T> grad;  ///< multiplied by min(1, max_norm / (norm + 1e-6))
  double norm;              ///< of all gradients, as one long vector, before clipping
  Tensor<T> operator[](const Tensor<T>& x) const { return grad[x]; }
};

/// torch.nn.utils.clip_grad_norm_: where the gradients of all the model's parameters, as one vector, are longer
/// than max_norm, scales them down to that length. Throws ValueError where a gradient is not finite, naming its
/// parameter, because scaling would spread that to all of them.
template <class T, class Model> Clipped<T> clip_grad_norm(Model&& model, const Gradients<T>& grad, double max_norm) {
  const double norm = detail::gradient_norm(detail::updates_of<T>("clip_grad_norm", model, grad));
  return {{grad, detail::clip_factor(norm, max_norm)}, norm};
}

}  // namespace tapehead
