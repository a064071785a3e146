#pragma once
#include <string>

#include "tapehead/autograd/tape.hpp"

// The tape as a graph. tape.dot() and tape.mermaid() write it as text, for Graphviz (`dot -Tsvg`) and for Mermaid,
// which many Markdown viewers draw; tape_svg draws it.

namespace tapehead {

/// The tape as a picture like those of plot.hpp: one box for each record, below the boxes of its inputs; watched
/// tensors have another colour. Throws ValueError beyond 256 records.
template <class T>
std::string tape_svg(const Tape<T>& tape, const std::string& title = "", const std::string& description = "");

}  // namespace tapehead
