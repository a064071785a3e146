#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tapehead/tensor/tensor.hpp"

// Figures: a matrix in the terminal, and SVG text for files and notebooks. An SVG reads in light and dark,
// carries a title and a description for those who do not see it, and is the same text on every machine.
//
//   save_svg("weights.svg", heatmap_svg(A, {.title = "Causal weights", .row_labels = words}));

namespace tapehead {

/// For heatmap_svg and heatmap_text.
struct HeatmapOptions {
  std::string title{};
  std::string description{};  ///< the text alternative; where it is empty, a sentence about size and range
  std::string row_axis{};     ///< what the rows are: "query"
  std::string column_axis{};
  std::vector<std::string> row_labels{};  ///< none, or one a row
  std::vector<std::string> column_labels{};
  int precision = 2;             ///< digits after the point in a cell
  std::optional<double> low{};   ///< of the darkest colour; where it is not given, the smallest value
  std::optional<double> high{};  ///< of the lightest one
  bool numbers = true;           ///< in the cells; an SVG leaves them out beyond 24 rows or columns
};

/// A matrix as coloured cells, the more the lighter; NaN and infinities are grey ones. A bool tensor is a
/// mask: its cells are filled where it is true. Rank 1 is one row, rank 0 one cell. Throws ShapeError on more
/// than two axes; ValueError where labels do not fit, where low > high, and beyond 65,536 cells.
template <class T>
std::string heatmap_svg(const Tensor<T>& x, const HeatmapOptions& options = {});

/// automatic: where standard output is a terminal, NO_COLOR is not set and TERM is not "dumb".
enum class Colour { automatic, always, never };

/// The same matrix for a terminal: numbers on 24-bit colour, or aligned digits alone. Ends with a line break.
template <class T>
std::string heatmap_text(const Tensor<T>& x, const HeatmapOptions& options = {}, Colour = Colour::automatic);

enum class Scale { linear, log10, log2 };
enum class Style { line, dashed, points, line_points, polygon };

/// Points (x[i], y[i]) under one name. Where a point is not finite, or not positive on a logarithmic axis, it
/// is left out, and the line broken.
struct Series {
  std::string name{};
  std::vector<double> x{};
  std::vector<double> y{};
  Style style = Style::line;
  std::vector<std::string> labels{};  ///< none, or one a point, written beside it
};

/// For plot_svg and bars_svg.
struct PlotOptions {
  std::string title{};
  std::string description{};  ///< the text alternative; where it is empty, a sentence that names the series
  std::string x_axis{};
  std::string y_axis{};
  Scale x_scale = Scale::linear;
  Scale y_scale = Scale::linear;
  double width = 640;  ///< in pixels, 200 to 10,000; more where the names need it
  double height = 400;
};

/// Lines, points and polygons over two axes. Throws ValueError where a series' lists are not of one length.
std::string plot_svg(const std::vector<Series>& series, const PlotOptions& options = {});

/// The convex hull of the points: a polygon, counter-clockwise from its leftmost corner, to draw with them.
Series convex_hull(const Series& points);

/// Bars from 0, one group a name; in a group one bar a series (its y; x is not used). Throws ValueError where
/// a series has not one value a name, and on a logarithmic y axis.
std::string bars_svg(const std::vector<std::string>& names, const std::vector<Series>& series,
                     const PlotOptions& options = {});

/// Writes the file whole or not at all: under a temporary name beside it, then renamed. Throws FileError.
void save_svg(const std::string& path, const std::string& svg);

}  // namespace tapehead
