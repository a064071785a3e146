#pragma once
#include <ostream>

#include "tapehead/tensor/print.hpp"

// std::cout << x and std::cout << x.shape(), as print() in NumPy. A header of its own, which tapehead.hpp leaves out,
// because standard streams take long to compile.

namespace tapehead {

template <class E> std::ostream& operator<<(std::ostream& out, const Tensor<E>& x) { return out << to_string(x); }
inline std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.str(); }

}  // namespace tapehead
