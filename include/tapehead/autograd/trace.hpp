#pragma once
#include <string>
#include <vector>

#include "tapehead/autograd/tape.hpp"

// A tape to look at: as a table, as a graph, and which ways a gradient came. None of it changes the tape or
// is recorded.

namespace tapehead {

/// One line a record: number, operation, formula, the inputs that the tape knows, name, shape, and the bytes
/// of the tensors that its pullbacks keep alive. A long tape shows its beginning and its end.
template <class T>
std::string print(const Tape<T>& tape);
/// The same with the norm of the gradient that arrived at each record in that backward pass, which is run
/// again for it.
template <class T>
std::string print(const Tape<T>& tape, const Gradients<T>& grad);

/// The tape as a graph, for Graphviz (`dot -Tsvg`) and for Mermaid (which many Markdown viewers draw).
template <class T>
std::string dot(const Tape<T>& tape);
template <class T>
std::string mermaid(const Tape<T>& tape);
/// And drawn, as the figures of plot.hpp are: a box a record, below all that went into it; what was watched
/// in another colour. Throws ValueError beyond 256 records.
template <class T>
std::string tape_svg(const Tape<T>& tape, const std::string& title = "", const std::string& description = "");

/// One way by which part of a gradient came.
template <class T>
struct Route {
  std::string path;  ///< the use of x, and the watched results after it: "V → O", "transpose #7 → S → O"
  std::vector<int> records;  ///< the same as record numbers
  Tensor<T> gradient;        ///< what came this way, of x's shape
  double norm = 0;           ///< its norm
  double share = 0;          ///< its part of the whole, along the whole's direction: the shares add up to 1
};

template <class T>
struct Explanation {
  std::string name;    ///< x's, or its record's number
  Tensor<T> gradient;  ///< the whole: the sum of the routes
  double norm = 0;
  std::vector<Route<T>> routes;  ///< the largest norm first
  /// A table of the routes.
  std::string text() const;
};

/// by_name tells routes apart by the watched results that they pass; by_use only by the operations that x
/// goes into.
enum class Routes { by_name, by_use };
/// Which ways the gradient of x came. x is anything that the tape knows; watch results on the way to have
/// them named. Throws GradientError where the tape is gone or does not know x, ValueError beyond 256 routes.
template <class T>
Explanation<T> explain(const Gradients<T>& grad, const Tensor<T>& x, Routes routes = Routes::by_name);

}  // namespace tapehead
