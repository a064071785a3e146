#pragma once
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapehead/files/arrays.hpp"
#include "tapehead/autograd/tape.hpp"

namespace tapehead::nn {

namespace detail {
template <class M>
inline constexpr bool is_tensor = false;
template <class T>
inline constexpr bool is_tensor<Tensor<T>> = true;

template <class T>
NamedTensors state_of(const std::vector<Named<T>>& parameters);
template <class T>
std::vector<Tensor<T>> checked_state(const std::vector<Named<T>>& parameters, const NamedTensors& state,
                                     bool strict);
}  // namespace detail

/// What every layer over T shares. `struct Mine : Module<Mine, T>` has `template <class F> void members(F&&
/// visit)` that calls visit("name", member) for each tensor and each module in it. A copy of a module has
/// parameters of its own.
template <class Self, class T>
struct Module {
  bool training = true;

  /// Calls f(name, tensor) for each parameter, inner modules' names with a dot: "W_q.weight", PyTorch's way.
  template <class F>
  void each_parameter(F&& f) {
    std::vector<std::pair<std::string, Tensor<T>*>> all;
    list_parameters("", all);
    for (auto& [name, tensor] : all) f(std::as_const(name), *tensor);
  }
  // A list first, so that the walk over all members is compiled once and not for each f.
  void list_parameters(const std::string& prefix, std::vector<std::pair<std::string, Tensor<T>*>>& all) {
    self().members([&](const std::string& name, auto& member) {
      if constexpr (detail::is_tensor<std::remove_reference_t<decltype(member)>>)
        all.emplace_back(prefix + name, &member);
      else
        member.list_parameters(prefix + name + ".", all);
    });
  }
  /// Calls f(module) for this module and each one inside it.
  template <class F>
  void each_module(F&& f) {
    f(self());
    self().members([&](const std::string&, auto& member) {
      if constexpr (!detail::is_tensor<std::remove_reference_t<decltype(member)>>) member.each_module(f);
    });
  }
  /// All parameters with their names, as tape.watch() takes them.
  std::vector<Named<T>> parameters() const {
    std::vector<Named<T>> all;
    const_cast<Module*>(this)->each_parameter([&](const std::string& name, const Tensor<T>& parameter) {
      all.push_back({name, parameter});
    });
    return all;
  }
  /// How many numbers there are to train.
  std::int64_t parameter_count() const {
    std::int64_t count = 0;
    for (const Named<T>& p : parameters()) count += p.tensor.numel();
    return count;
  }

  /// Dropout is on while training and off in evaluation.
  void train(bool on = true) {
    each_module([on](auto& module) { module.training = on; });
  }
  void eval() { train(false); }

  /// The parameters by name, for a file: `save_npz("model.npz", model.state())`, or save_safetensors.
  NamedTensors state() const { return detail::state_of(parameters()); }
  /// Puts in what a file holds: `model.load_state(load_safetensors("model.safetensors"))`. Throws ValueError,
  /// before anything changes, naming what is missing or has no place here (not the latter where strict is
  /// false), ShapeError where a shape differs, ValueError where elements would be rounded (double into a
  /// float model).
  void load_state(const NamedTensors& state, bool strict = true) {
    std::vector<Tensor<T>> loaded = detail::checked_state(parameters(), state, strict);
    std::size_t i = 0;
    each_parameter([&](const std::string&, Tensor<T>& parameter) { parameter = std::move(loaded[i++]); });
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

}  // namespace tapehead::nn
