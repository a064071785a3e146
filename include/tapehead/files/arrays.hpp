#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tapehead/tensor/tensor.hpp"

namespace tapehead {

/// A tensor whose element type is only known when the program runs, because a file decides it.
using AnyTensor = std::variant<Tensor<float>, Tensor<double>, Tensor<bool>, Tensor<std::int64_t>>;

/// Tensors by name, in the order in which they were added. load_npz and load_safetensors return one, and the
/// save functions take one: `save_npz("layer.npz", {{"weight", W}, {"bias", b}})`.
class NamedTensors {
 public:
  using Entry = std::pair<std::string, AnyTensor>;

  NamedTensors() = default;
  NamedTensors(std::initializer_list<Entry> entries);
  /// Throws ValueError when the name is taken.
  void add(std::string name, AnyTensor tensor);

  bool contains(const std::string& name) const { return index_.count(name) != 0; }
  std::size_t size() const { return entries_.size(); }
  std::vector<Entry>::const_iterator begin() const& { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const& { return entries_.end(); }
  void begin() && = delete;  // they would point into a temporary
  void end() && = delete;

  /// Throws IndexError, which lists the names there are, when no tensor has this name.
  const AnyTensor& operator[](const std::string& name) const&;
  AnyTensor operator[](const std::string& name) && { return std::as_const(*this)[name]; }
  Shape shape(const std::string& name) const;
  /// The tensor with elements E: as it is, or converted where E holds every value exactly (float in double;
  /// bool in any number type; whole numbers up to 2^24 in float, 2^53 in double). Throws ValueError where
  /// converting would round.
  template <class E> Tensor<E> get(const std::string& name) const;

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace tapehead
