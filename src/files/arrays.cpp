#include "tapehead/files/arrays.hpp"

#include "files/file_bytes.hpp"

namespace tapehead {

NamedTensors::NamedTensors(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) add(entry.first, entry.second);
}

void NamedTensors::add(std::string name, AnyTensor tensor) {
  require<ValueError>(index_.emplace(name, entries_.size()).second, "add: there is a tensor '{}' already", name);
  entries_.emplace_back(std::move(name), std::move(tensor));
}

const AnyTensor& NamedTensors::operator[](const std::string& name) const& {
  const auto found = index_.find(name);
  if (found != index_.end()) return entries_[found->second].second;
  std::string known;
  for (std::size_t i = 0; i < entries_.size() && i < 8; ++i) known += (i ? ", '" : "'") + entries_[i].first + "'";
  raise<IndexError>("get: there is no tensor '{}'; there {} {}{}", name, entries_.size() == 1 ? "is" : "are",
                    entries_.empty() ? "none" : known, entries_.size() > 8 ? ", …" : "");
}

Shape NamedTensors::shape(const std::string& name) const { return detail::shape_of((*this)[name]); }

template <class E> Tensor<E> NamedTensors::get(const std::string& name) const {
  return detail::exactly<E>("get", name, (*this)[name]);
}

#define TAPEHEAD_GET(E) template Tensor<E> NamedTensors::get<E>(const std::string&) const;
TAPEHEAD_ELEMENTS(TAPEHEAD_GET)

}  // namespace tapehead
