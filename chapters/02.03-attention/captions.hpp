#pragma once
#include <string>

#include "tapehead/figures/plot.hpp"

// Titles, axes and alternative texts of the chapter's figures. A figure has the name of its file; the data that it
// shows come from the section's program.

namespace chapter {

/// For a figure with curves, points or bars. Throws ValueError if there is no such figure.
const tapehead::PlotOptions& plot_caption(const std::string& figure);
/// For a matrix, shown cell by cell. Throws ValueError if there is no such figure.
const tapehead::HeatmapOptions& heatmap_caption(const std::string& figure);

}  // namespace chapter
