#pragma once
#include <string>
#include <vector>

#include "tapehead/autograd/tape.hpp"

// The paths along which a gradient arrived. (Tape::print, in tape.hpp, shows the tape as a table.) None of it
// changes the tape or is recorded.

namespace tapehead {

/// One path along which part of a gradient arrived.
template <class T> struct Route {
  std::string path;          ///< the use of x, and the watched results after it: "V → O", "transpose #7 → S → O"
  std::vector<int> records;  ///< the same as record numbers
  Tensor<T> gradient;        ///< the part that arrived along this path, of x's shape
  double norm = 0;           ///< its norm
  double share = 0;          ///< its projection on the whole gradient, as a fraction: the shares add up to 1
};

template <class T> struct Explanation {
  std::string name;    ///< x's name, or its record's number
  Tensor<T> gradient;  ///< the whole gradient: the sum of the routes
  double norm = 0;
  std::vector<Route<T>> routes;  ///< the largest norm first
  /// A table of the routes.
  std::string text() const;
};

/// by_name distinguishes routes by the watched results that they pass; by_use only by the operations that use
/// x.
enum class Routes { by_name, by_use };
/// The routes along which the gradient of x arrived. x is any tensor that the tape knows; watch results on the
/// way to have them named. Throws GradientError where the tape is gone or does not know x, ValueError beyond
/// 256 routes.
template <class T>
Explanation<T> explain(const Gradients<T>& grad, const Tensor<T>& x, Routes routes = Routes::by_name);

}  // namespace tapehead
