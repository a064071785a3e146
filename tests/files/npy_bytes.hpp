#pragma once
// NumPy's files by hand, every part of them to be set: for the tests of .npy files and of .npz archives.
#include <cstdint>
#include <initializer_list>
#include <string>

#include "files.hpp"

namespace testing {

inline std::string header_bytes(int major, const std::string& header) {
  return "\x93NUMPY" + little(static_cast<std::uint64_t>(major), 1) + little(0, 1) +
         little(header.size(), major == 1 ? 2 : 4) + header;
}
inline std::string npy(const std::string& descr, const std::string& shape, const std::string& elements,
                       bool fortran = false, int major = 1, std::size_t padding = 0) {
  const std::string order = fortran ? "True" : "False";
  return header_bytes(major, "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }" +
                                 std::string(padding, ' ') + "\n") +
         elements;
}
template <class V> std::string bytes_of(std::initializer_list<V> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(V)};
}
inline const std::string doubles = bytes_of({1.0, 2.0, 3.0, 4.0, 5.0, 6.0});

}  // namespace testing
