#include "tapehead/models/module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tapehead/kernels/error.hpp"

namespace tapehead::nn::detail {

template <class T>
NamedTensors state_of(const std::vector<Named<T>>& parameters) {
  NamedTensors state;
  for (const Named<T>& p : parameters) state.add(p.name, tapehead::detach(p.tensor));
  return state;
}

namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 8); ++i)
    text += (i > 0 ? ", " : "") + names[i];
  return names.size() > 8 ? text + fmt::format(" and {} more", names.size() - 8) : text;
}

// Throws where a parameter or, if strict, an array is without its other half.
void check_names(const std::vector<std::string>& parameters, const NamedTensors& state, bool strict) {
  std::vector<std::string> missing, unknown;
  for (const std::string& name : parameters)
    if (!state.contains(name)) missing.push_back(name);
  for (const auto& entry : state)
    if (std::find(parameters.begin(), parameters.end(), entry.first) == parameters.end())
      unknown.push_back(entry.first);
  if (!missing.empty() || (strict && !unknown.empty()))
    throw ValueError(fmt::format("load_state: {}{}{}; nothing was loaded{}",
                                 missing.empty() ? "" : "missing " + listed(missing),
                                 missing.empty() || unknown.empty() ? "" : "; ",
                                 unknown.empty() ? "" : "without a place here " + listed(unknown),
                                 missing.empty() ? " (strict = false leaves them out)" : ""));
}

}  // namespace

template <class T>
std::vector<Tensor<T>> checked_state(const std::vector<Named<T>>& parameters, const NamedTensors& state,
                                     bool strict) {
  std::vector<std::string> names;
  for (const Named<T>& p : parameters) names.push_back(p.name);
  check_names(names, state, strict);
  std::vector<Tensor<T>> loaded;
  for (const Named<T>& p : parameters) {
    if (state.shape(p.name) != p.tensor.shape())
      throw ShapeError(fmt::format("load_state: {} has shape {} in the file and {} here; nothing was loaded",
                                   p.name, state.shape(p.name).str(), p.tensor.shape().str()));
    loaded.push_back(state.get<T>(p.name));
  }
  return loaded;
}

#define TAPEHEAD_MODULE(T)                                      \
  template NamedTensors state_of(const std::vector<Named<T>>&); \
  template std::vector<Tensor<T>> checked_state(const std::vector<Named<T>>&, const NamedTensors&, bool);
TAPEHEAD_MODULE(float)
TAPEHEAD_MODULE(double)

}  // namespace tapehead::nn::detail
