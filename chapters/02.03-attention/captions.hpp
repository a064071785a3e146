#pragma once
#include <string>

#include "tapehead/figures/plot.hpp"

// What is written on and beside the chapter's figures: titles, axes, and a description for those who do not
// see them. A figure goes by the name of its file; what it shows comes from the section's program.

namespace chapter {

/// Of curves, points and bars. Throws ValueError where there is no such figure.
const tapehead::PlotOptions& plot_caption(const std::string& figure);
/// Of a matrix, shown cell by cell. Throws likewise.
const tapehead::HeatmapOptions& heatmap_caption(const std::string& figure);

}  // namespace chapter
