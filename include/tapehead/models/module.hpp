#pragma once
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapehead/autograd/tape.hpp"
#include "tapehead/files/arrays.hpp"

// Modules: layers that hold their parameters. A module is a struct whose parameters are plain tensors. It lists
// its members once, in members(visit), and gets parameters(), names, train() and eval(), saving and loading from
// that. Weights are drawn as torch.nn draws them, in its order, so a module made from the same seed gives the same
// outputs. Names are PyTorch's, so weights can be exchanged.

namespace tapehead::nn {

/// One parameter of a module: its name, and every member that holds it. A tied parameter (one tensor that is
/// visited under several names) has several names and perhaps several members; its first name counts.
template <class T> struct Parameter {
  std::vector<std::string> names;
  std::vector<Tensor<T>*> members;

  const std::string& name() const& { return names.front(); }
  const Tensor<T>& value() const& { return *members.front(); }
  /// Puts a new tensor into every member, so that what was tied stays tied.
  void set(const Tensor<T>& tensor) const {
    for (Tensor<T>* member : members) *member = tensor;
  }
};

namespace detail {
template <class M> inline constexpr bool is_tensor = false;
template <class T> inline constexpr bool is_tensor<Tensor<T>> = true;
// Calls f(name, member) for a tensor or a module; for each of those in a std::vector, called by its number
// ("layers.0"), and for that in a std::optional, if there is one.
template <class M, class F> void each_member(const std::string& name, M& member, const F& f) {
  if constexpr (requires { member.has_value(); }) {
    if (member) each_member(name, *member, f);
  } else if constexpr (requires { typename M::value_type; }) {
    for (std::size_t i = 0; i < member.size(); ++i) each_member(name + "." + std::to_string(i), member[i], f);
  } else {
    f(name, member);
  }
}

template <class T> using Members = std::vector<std::pair<std::string, Tensor<T>*>>;
template <class T> std::vector<Parameter<T>> distinct(const Members<T>& members);
template <class T> void begin_copy(const Members<T>& members);
template <class T> NamedTensors state_of(const std::vector<Parameter<T>>& parameters);
template <class T> void load(const std::vector<Parameter<T>>& parameters, const NamedTensors& state, bool strict);
}  // namespace detail

/// What every layer over T shares. `struct Mine : Module<Mine, T>` has `template <class F> void members(F&&
/// visit)` that calls visit("name", member) for each tensor and each module in it, and for each std::vector or
/// std::optional of these: `visit("layers", layers)` visits "layers.0", "layers.1", …
///
/// A copy of a module has parameters of its own: elements of its own, which no tape that watches the original takes for
/// the original's. What is tied in the original is tied in the copy. A member that is held by a pointer stays shared, as
/// the pointer is. Moving keeps the parameters. (A module that defines its own copy constructor and makes new tensors
/// there begins it with Module(), not Module(other).)
template <class Self, class T> struct Module {
  using element = T;
  bool training = true;

  Module() = default;
  Module(const Module& other) : training(other.training) { detail::begin_copy<T>(other.all_members()); }
  Module& operator=(const Module& other) {
    if (this != &other) training = other.training, detail::begin_copy<T>(other.all_members());
    return *this;
  }
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;

  /// Each parameter once, in the order of members(). Names of inner modules have a dot, as PyTorch's:
  /// "W_q.weight".
  std::vector<Parameter<T>> list() { return detail::distinct<T>(all_members()); }
  /// Calls f(name, tensor) for each parameter once; f may put another tensor in its place.
  template <class F> void each_parameter(F&& f) {
    for (const Parameter<T>& p : list()) f(p.name(), *p.members.front()), p.set(p.value());
  }
  /// Calls f(module) for this module and each one inside it.
  template <class F> void each_module(F&& f) {
    f(self());
    self().members([&](const std::string& name, auto& member) {
      detail::each_member(name, member, [&](const std::string&, auto& one) {
        if constexpr (!detail::is_tensor<std::remove_reference_t<decltype(one)>>) one.each_module(f);
      });
    });
  }
  /// All parameters with their names, as tape.watch() takes them.
  std::vector<Named<T>> parameters() const {
    std::vector<Named<T>> all;
    for (const Parameter<T>& p : listed()) all.push_back({p.name(), p.value()});
    return all;
  }
  /// How many numbers there are to train.
  std::int64_t parameter_count() const {
    std::int64_t count = 0;
    for (const Parameter<T>& p : listed()) count += p.value().numel();
    return count;
  }

  /// Dropout is on while training and off in evaluation.
  void train(bool on = true) {
    each_module([on](auto& module) { module.training = on; });
  }
  void eval() { train(false); }

  /// The parameters by name, for a file: `save_npz("model.npz", model.state())`, or save_safetensors.
  NamedTensors state() const { return detail::state_of(listed()); }
  /// Loads what a file holds: `model.load_state(load_safetensors("model.safetensors"))`. A tied parameter may
  /// stand there under any of its names. Throws before anything changes: ValueError, naming what is missing or
  /// has no place here (the latter only if strict), or where elements would be rounded (double into a float
  /// model); ShapeError where a shape differs.
  void load_state(const NamedTensors& state, bool strict = true) { detail::load(list(), state, strict); }

  // For each_parameter() and the modules around this one: the walk over all members is compiled once, not once
  // for each f.
  void add_members(const std::string& prefix, detail::Members<T>& all) {
    self().members([&](const std::string& own, auto& member) {
      detail::each_member(prefix + own, member, [&](const std::string& name, auto& one) {
        if constexpr (detail::is_tensor<std::remove_reference_t<decltype(one)>>)
          all.emplace_back(name, &one);
        else
          one.add_members(name + ".", all);
      });
    });
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  // members() has no const form; these only read.
  detail::Members<T> all_members() const {
    detail::Members<T> all;
    const_cast<Module*>(this)->add_members("", all);
    return all;
  }
  std::vector<Parameter<T>> listed() const { return detail::distinct<T>(all_members()); }
};

}  // namespace tapehead::nn
