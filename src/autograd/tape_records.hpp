#pragma once
#include <string>
#include <vector>

#include "tapehead/autograd/tape.hpp"

// What a tape's records say, without the element type: so all that prints and draws them is compiled once.

namespace tapehead::detail {

struct Record {
  const Op* op;  // nullptr: a watched tensor
  std::string name;
  Shape shape;
  std::vector<int> inputs;  // record numbers

  /// "name = operation", or what there is of it.
  std::string head() const;
};

template <class T> std::vector<Record> records_of(const Tape<T>& tape);

}  // namespace tapehead::detail
