#include "tapehead/models/module.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "kernels/require.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tensor/copy.hpp"

namespace tapehead::nn::detail {

// ---- Copies of modules ----

namespace {

// A compiler-made copy of a module copies its base class Module first and then member after member. So Module
// notes the addresses of all tensors of the original, and Tensor's copy constructor, when it copies from one of
// them, takes what is noted here instead of sharing the original's header.
struct Noted {
  const tapehead::detail::Header *original, *own;  // one count of each is held
};
using tapehead::detail::copy_hook;
using tapehead::detail::drop;
using tapehead::detail::share;

struct Notes : std::map<const void*, Noted> {
  ~Notes() { forget(); }
  void forget() {
    for (const auto& [tensor, noted] : *this) drop(noted.original), drop(noted.own);
    clear(), copy_hook = nullptr;
  }
};
thread_local Notes notes;

const tapehead::detail::Header* own_header(const tapehead::detail::Header* original, const void* tensor) noexcept {
  if (original == nullptr) {  // a tensor is made: the copy has ended, and what was not copied was held by a pointer
    notes.forget();
    return nullptr;
  }
  const auto at = notes.find(tensor);
  if (at == notes.end() || at->second.original != original) return nullptr;
  const tapehead::detail::Header* own = at->second.own;
  notes.erase(at), drop(original);
  if (notes.empty()) copy_hook = nullptr;
  return own;
}

}  // namespace

// Inner modules are noted with the outermost one, so that what is tied stays tied; their own calls find
// everything noted.
template <class T> void begin_copy(const Members<T>& members) {
  copy_hook = nullptr;  // the tensors that are made here end no copy
  std::map<const tapehead::detail::Header*, Tensor<T>> own;
  for (const auto& [name, tensor] : members) {
    const tapehead::detail::Header& header = tensor->header();
    if (header.storage == nullptr) continue;
    const auto at = notes.find(tensor);
    if (at != notes.end() && at->second.original == &header) continue;
    Tensor<T>& copy = own[&header];
    if (copy.header().storage == nullptr) copy = tapehead::detail::copied(*tensor);
    Noted& noted = notes[tensor];
    drop(noted.original), drop(noted.own);
    noted = {share(&header), share(&copy.header())};
  }
  copy_hook = notes.empty() ? nullptr : own_header;
}

// ---- Parameters ----

// Members with one id hold one tensor.
template <class T> std::vector<Parameter<T>> distinct(const Members<T>& members) {
  notes.forget();
  std::vector<Parameter<T>> all;
  std::map<std::pair<std::int64_t, const void*>, std::size_t> seen;
  for (const auto& [name, tensor] : members) {
    const void* empty = tensor->header().storage == nullptr ? tensor : nullptr;  // these share an id
    const auto [at, is_new] = seen.emplace(std::pair(tensor->id(), empty), all.size());
    if (is_new) all.emplace_back();
    all[at->second].names.push_back(name), all[at->second].members.push_back(tensor);
  }
  return all;
}

template <class T> NamedTensors state_of(const std::vector<Parameter<T>>& parameters) {
  NamedTensors state;
  for (const Parameter<T>& p : parameters) state.add(p.name(), tapehead::detach(p.value()));
  return state;
}

namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 8); ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > 8 ? text + fmt::format(" and {} more", names.size() - 8) : text;
}

// The tensor that the file has for a parameter, under whichever of its names; nothing where there is none.
template <class T> std::optional<Tensor<T>> found(const Parameter<T>& p, const NamedTensors& state) {
  std::optional<Tensor<T>> tensor;
  for (const std::string& name : p.names) {
    if (!state.contains(name)) continue;
    if (state.shape(name) != p.value().shape())
      raise<ShapeError>("load_state: {} has shape {} in the file and {} here; nothing was loaded", name,
                        state.shape(name), p.value().shape());
    const Tensor<T> here = state.get<T>(name);
    if (tensor && !equal(*tensor, here))
      raise<ValueError>("load_state: {} and {} are one parameter here, and differ in the file; nothing was loaded",
                        p.name(), name);
    tensor = here;
  }
  return tensor;
}

}  // namespace

template <class T> void load(const std::vector<Parameter<T>>& parameters, const NamedTensors& state, bool strict) {
  std::vector<std::string> missing, unknown;
  std::set<std::string> names;
  for (const Parameter<T>& p : parameters) {
    bool any = false;
    for (const std::string& name : p.names) names.insert(name), any |= state.contains(name);
    if (!any) missing.push_back(p.name());
  }
  for (const auto& entry : state)
    if (!names.contains(entry.first)) unknown.push_back(entry.first);
  if (!missing.empty() || (strict && !unknown.empty()))
    raise<ValueError>("load_state: {}{}{}; nothing was loaded{}", missing.empty() ? "" : "missing " + listed(missing),
                      missing.empty() || unknown.empty() ? "" : "; ",
                      unknown.empty() ? "" : "without a place here " + listed(unknown),
                      missing.empty() ? " (strict = false leaves them out)" : "");
  std::vector<Tensor<T>> loaded;
  for (const Parameter<T>& p : parameters) loaded.push_back(tapehead::detail::copied(*found(p, state)));
  for (std::size_t i = 0; i < loaded.size(); ++i) parameters[i].set(loaded[i]);
}

#define TAPEHEAD_MODULE(T)                                          \
  template std::vector<Parameter<T>> distinct(const Members<T>&);   \
  template void begin_copy(const Members<T>&);                      \
  template NamedTensors state_of(const std::vector<Parameter<T>>&); \
  template void load(const std::vector<Parameter<T>>&, const NamedTensors&, bool);
TAPEHEAD_REALS(TAPEHEAD_MODULE)

}  // namespace tapehead::nn::detail
