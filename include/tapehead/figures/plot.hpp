#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tapehead/tensor/tensor.hpp"

// Figures: a matrix in the terminal, and SVG text for files and notebooks. An SVG has light and dark colours,
// carries a title and a description for screen readers, and is the same text on every machine.
//
//   save_svg("weights.svg", heatmap_svg(A, {.title = "Causal weights", .row_labels = words}));

namespace tapehead {

/// For heatmap_svg and heatmap_text.
struct HeatmapOptions {
  std::string title{};
  std::string description{};  ///< an SVG's text alternative; where it is empty, a sentence about size and range
  std::string row_axis{};     ///< the name of the row axis: "query"
  std::string column_axis{};
  std::vector<std::string> row_labels{};  ///< one for each row; where there are none, an SVG numbers a named axis
  std::vector<std::string> column_labels{};
  /// Digits after the point in a cell of float or double. All cells have one format, with an exponent if the largest
  /// value needs it. 0 itself is shown as "0": a cell with "0.00" is small, but not 0.
  int precision = 2;
  std::optional<double> low{};   ///< the value at the low end of the colours; where it is not given, the smallest one
  std::optional<double> high{};  ///< the value at the high end; a mask has neither
  /// Numbers in the cells. An SVG omits them in a mask, and beyond 24 rows or columns. Without numbers, a cell in
  /// the terminal is one character wide: a colour, or a shade where there is no colour.
  bool numbers = true;
};

/// A matrix as coloured cells: higher values are lighter. If there are values of both signs, colours run from blue
/// through white at 0 to orange, as far on one side as on the other. NaN and infinities are grey. A bool tensor is a
/// mask: its cells are filled where it is true. Rank 1 is one row, rank 0 one cell. Throws ShapeError on more than
/// two axes; ValueError where the labels are not as many as the rows or columns, where low > high, and beyond
/// 65,536 cells.
template <class T> std::string heatmap_svg(const Tensor<T>& x, const HeatmapOptions& options = {});

/// automatic: where standard output is a terminal, NO_COLOR is not set and TERM is not "dumb".
enum class Colour { automatic, always, never };

/// The same matrix for a terminal: numbers on 24-bit colour, or only aligned numbers. Ends with a line break.
template <class T>
std::string heatmap_text(const Tensor<T>& x, const HeatmapOptions& options = {}, Colour = Colour::automatic);

enum class Scale { linear, log10, log2 };
enum class Style { line, dashed, points, line_points, polygon };

/// Points (x[i], y[i]) with one name; without x, the points (0, y[0]), (1, y[1]), … A point that is not finite, or not
/// positive on a logarithmic axis, is omitted, and breaks the line.
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
  double width = 640;  ///< in pixels, 200 to 10,000; the figure is wider where the names need it
  double height = 400;
};

/// Lines, points and polygons over two axes: plot_svg({{.name = "loss", .y = losses}}). Throws ValueError where a series'
/// lists are not of one length.
std::string plot_svg(std::vector<Series> series, const PlotOptions& options = {});

/// The convex hull of the points, to draw with them: a polygon, counter-clockwise from its leftmost corner.
/// Throws ValueError where x and y are not of one length.
Series convex_hull(const Series& points);

/// Bars from 0: one group for each name, and in each group one bar for each series (its y; x is not used).
/// Throws ValueError where a series has not one value for each name, has labels or a style, and on logarithmic
/// axes.
std::string bars_svg(const std::vector<std::string>& names, const std::vector<Series>& series,
                     const PlotOptions& options = {});

/// Writes the whole file or leaves the old one as it was, whose mode and symbolic link stay. Throws FileError.
void save_svg(const std::string& path, const std::string& svg);

}  // namespace tapehead
