// Read before each file that em++ compiles: std::bit_cast, which the standard library of em++ 3.1 lacks.
#pragma once
#include <bit>

#ifndef __cpp_lib_bit_cast
namespace std {
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
}  // namespace std
#endif
