#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "figures/plot_canvas.hpp"
#include "kernels/require.hpp"

// Matrices and masks, as SVG and in the terminal.

namespace tapehead {

using namespace figure;

namespace {

// ---- colour ----------------------------------------------------------------------------------------------

struct Rgb {
  int r, g, b;
};

// Both scales were chosen in OKLCH. Sequential: indigo, blue, teal, green, yellow, with equal steps of lightness, so
// that equal differences of value look equal, also in grey. Diverging, for values of both signs: blue below 0, nearly
// white at 0, orange above it, and as dark on one side as on the other.
Rgb colour_at(double t, bool diverging) {
  static constexpr std::uint32_t scales[2][9] = {
      {0x281c4c, 0x2b3278, 0x00529a, 0x04749a, 0x0894a1, 0x08b6a0, 0x51d587, 0xb9e47c, 0xfff19b},
      {0x004b98, 0x2d74ca, 0x6ea1e2, 0xb1cdf2, 0xf5f5f5, 0xedbfab, 0xd78863, 0xb95115, 0x813000}};
  const auto& stops = scales[diverging];
  const double s = t * 8;
  const int i = std::min(static_cast<int>(s), 7);
  const auto mix = [&](int shift) {
    const double a = stops[i] >> shift & 255, b = stops[i + 1] >> shift & 255;
    return static_cast<int>(a + (b - a) * (s - i) + 0.5 + 1e-6);  // a half goes up on every machine
  };
  return {mix(16), mix(8), mix(0)};
}

// Black letters where they have more contrast than white ones have (WCAG's relative luminance).
bool wants_black(const Rgb& c) {
  const auto linear = [](int v) { return std::pow(v / 255.0, 2.2); };
  return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b) > 0.179;
}

// ---- the matrix ------------------------------------------------------------------------------------------

struct Matrix {
  Shape shape;
  std::int64_t rows, cols;
  std::vector<double> values;
  std::vector<std::string> texts;  // as they stand in the cells
  double low, high;                // the ends of the colour scale
  bool mask, diverging = false;

  std::size_t index(std::int64_t i, std::int64_t j) const { return static_cast<std::size_t>(i * cols + j); }
  // Where a value lies on the colour scale, from 0 to 1.
  double place(double v) const {
    const double half = high / 2 - low / 2;  // the whole may overflow
    return half > 0 ? std::clamp((v / 2 - low / 2) / half, 0.0, 1.0) : 0.5;
  }
  Rgb colour(double v) const { return std::isfinite(v) ? colour_at(place(v), diverging) : Rgb{128, 128, 128}; }
};

// Throws where there is no figure of this shape.
void check(const char* op, const Matrix& m, const HeatmapOptions& o) {
  require<ShapeError>(m.shape.rank() <= 2, "{}: shape {} has {} axes; draw one matrix of it, x.select(0, i)", op,
                      m.shape, m.shape.rank());
  require<ValueError>(m.shape.numel() <= 65'536,
                      "{}: shape {} has more cells than a figure shows, 65536; draw a slice of it", op, m.shape);
  require<ValueError>(o.precision >= 0 && o.precision <= 17, "{}: precision is {}; it must be 0 to 17", op,
                      o.precision);
  const auto check_labels = [&](const char* what, const std::vector<std::string>& labels, std::int64_t n) {
    require<ValueError>(labels.empty() || static_cast<std::int64_t>(labels.size()) == n,
                        "{}: {} {} labels for shape {}; {} are needed, or none", op, labels.size(), what, m.shape, n);
  };
  check_labels("row", o.row_labels, m.rows);
  check_labels("column", o.column_labels, m.cols);
}

void set_scale(const char* op, Matrix& m, const HeatmapOptions& o) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double v : m.values)
    if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  if (low > high || m.mask) low = 0, high = 1;
  m.low = o.low.value_or(low), m.high = o.high.value_or(std::max(high, m.low));
  if (!o.low) m.low = std::min(m.low, m.high);
  require<ValueError>(std::isfinite(m.low) && std::isfinite(m.high) && m.low <= m.high,
                      "{}: colours from low = {} to high = {}; low must be the smaller one", op, m.low, m.high);
  m.diverging = m.low < 0 && m.high > 0;
  if (m.diverging) m.high = std::max(m.high, -m.low), m.low = -m.high;
}

template <class T> Matrix read(const char* op, const Tensor<T>& x, const HeatmapOptions& o) {
  const int rank = x.rank();
  Matrix m{x.shape(), rank == 2 ? x.size(0) : 1, rank == 0 ? 1 : x.size(-1), {}, {}, 0, 1, std::is_same_v<T, bool>};
  check(op, m, o);
  for (const T element : x.to_vector()) {
    m.values.push_back(static_cast<double>(element));
    if (std::is_integral_v<T>) m.texts.push_back(std::to_string(static_cast<std::int64_t>(element)));
  }
  if (!std::is_integral_v<T>) m.texts = value_texts(m.values, o.precision);
  set_scale(op, m, o);
  return m;
}

// ---- SVG -------------------------------------------------------------------------------------------------

// Where the cells lie: labels above and to the left of them, `right` pixels for the scale or legend.
struct Layout {
  Layout(const Matrix& m, const HeatmapOptions& o, double cell_width, double cell_height, double right, double least)
      : cell_w(cell_width), cell_h(cell_height) {
    // Labels that are wider than a column are slanted, unless only every tenth column has one.
    slanted = widest(o.column_labels) > cell_w - 4 && (o.column_labels.size() < 2 || !o.column_labels[1].empty());
    const double names = widest(o.column_labels), across = static_cast<double>(m.cols) * cell_w;
    left = 16 + (o.row_axis.empty() ? 0 : 20) + widest(o.row_labels) + (o.row_labels.empty() ? 0 : 6);
    top = 16 + (o.title.empty() ? 0 : 22) + (o.column_axis.empty() ? 0 : 18);
    top += o.column_labels.empty() ? 0 : slanted ? 10 + 0.72 * names : 16;
    grid_w = m.values.empty() ? std::max(across, 120.0) : across;
    grid_h = std::max(static_cast<double>(m.rows) * cell_h, m.values.empty() ? 60.0 : 0);
    width = std::max(left + grid_w + std::max(right, slanted ? 0.72 * names : 0), 32 + 1.2 * pixels(readable(o.title)));
    height = top + std::max(grid_h, least) + 16;
  }
  double x(std::int64_t j) const { return left + cell_w * static_cast<double>(j); }
  double y(std::int64_t i) const { return top + cell_h * static_cast<double>(i); }
  double cell_w, cell_h;
  bool slanted;
  double left, top, grid_w, grid_h, width, height;
};

void draw_labels(Canvas& canvas, const Layout& at, const HeatmapOptions& o) {
  std::int64_t i = 0, j = 0;
  for (const auto& label : o.row_labels) canvas.text({at.left - 6, at.y(i++) + at.cell_h / 2 + 4}, label, "end");
  for (const auto& label : o.column_labels)
    canvas.text({at.x(j++) + at.cell_w / 2, at.top - 6}, label, at.slanted ? "" : "mid", at.slanted ? -45 : 0);
  if (!o.column_axis.empty())
    canvas.text({at.left + at.grid_w / 2, o.title.empty() ? 20.0 : 42.0}, o.column_axis, "mid soft");
  if (!o.row_axis.empty()) canvas.text({20, at.top + at.grid_h / 2}, o.row_axis, "mid soft", -90);
}

// An axis that has a name and no labels is numbered.
void number(std::vector<std::string>& labels, const std::string& axis, std::int64_t n) {
  const std::int64_t step = n <= 24 ? 1 : n <= 200 ? 10 : 100;
  for (std::int64_t i = 0, all = axis.empty() || !labels.empty() ? 0 : n; i < all; ++i)
    labels.push_back(i % step == 0 ? std::to_string(i) : "");
}

std::string fill(const Rgb& c) { return fmt::format("fill='#{:02x}{:02x}{:02x}'", c.r, c.g, c.b); }

void draw_scale(Canvas& canvas, const Layout& at, const Matrix& m, const Axis& axis, double height) {
  const double x = at.left + at.grid_w + 16;
  const bool constant = !(m.low < m.high);
  for (int i = 0; i < 60; ++i)
    canvas.rect(x, at.top + height * i / 60, 12, height / 60,
                fill(colour_at(constant ? 0.5 : (59.5 - i) / 60, m.diverging)));
  if (constant) return canvas.text({x + 18, at.top + height / 2 + 4}, fmt::format("{:.6g}", m.low));
  for (const auto& tick : axis.ticks()) {
    canvas.line({x + 12, axis.at(tick.value)}, {x + 15, axis.at(tick.value)}, "frame");
    canvas.text({x + 18, axis.at(tick.value) + 4}, tick.label);
  }
}

void draw_cells(Canvas& canvas, const Layout& at, const Matrix& m, bool numbers) {
  const double gap = m.mask && at.cell_w > 8 ? 1 : 0;
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t j = 0; j < m.cols; ++j) {
      const double v = m.values[m.index(i, j)];
      const Rgb colour = m.colour(v);
      const bool grey = m.mask ? v == 0 : !std::isfinite(v);
      canvas.rect(at.x(j) + gap, at.y(i) + gap, at.cell_w - 2 * gap, at.cell_h - 2 * gap,
                  grey     ? "class='off'"
                  : m.mask ? "class='on'"
                           : fill(colour));
      if (numbers)
        canvas.text({at.x(j) + at.cell_w / 2, at.y(i) + at.cell_h / 2 + 4}, m.texts[m.index(i, j)],
                    grey                  ? "mid"
                    : wants_black(colour) ? "mid black"
                                          : "mid white");
      else if (grey && !m.mask)
        canvas.line({at.x(j), at.y(i + 1)}, {at.x(j + 1), at.y(i)}, "frame");
    }
}

void draw_mask_legend(Canvas& canvas, const Layout& at) {
  const double x = at.left + at.grid_w + 16;
  canvas.rect(x, at.top + 2, 12, 12, "class='on'");
  canvas.text({x + 18, at.top + 12}, "may attend");
  canvas.rect(x, at.top + 24, 12, 12, "class='off'");
  canvas.text({x + 18, at.top + 34}, "hidden");
}

std::string svg(const Matrix& m, HeatmapOptions o) {
  number(o.row_labels, o.row_axis, m.rows), number(o.column_labels, o.column_axis, m.cols);
  const bool mask = m.mask;
  const bool numbers = o.numbers && !mask && m.rows <= 24 && m.cols <= 24;
  const auto most = static_cast<double>(std::max({m.rows, m.cols, std::int64_t{1}}));
  const double side = std::clamp(std::floor(480 / most), 2.0, 24.0);
  const double cell_w = numbers ? std::max(36.0, widest(m.texts) + 10) : side, cell_h = numbers ? 28 : side;
  const double scale_height = std::clamp(cell_h * static_cast<double>(m.rows), 90.0, 240.0);
  const double ticks = Axis(Scale::linear, m.low, m.high, 0, 1, 0).widest_label();
  const Layout at(m, o, cell_w, cell_h, mask ? 120 : 50 + ticks, mask ? 50 : scale_height);

  std::string description = fmt::format("{} by {} {}", m.rows, m.cols, mask ? "mask" : "matrix");
  if (mask)
    description +=
        fmt::format("; {} of {} pairs may attend", std::count(m.values.begin(), m.values.end(), 1.0), m.values.size());
  else if (!m.values.empty())
    description += fmt::format("; values from {:.4g} to {:.4g}", m.low, m.high);
  if (!o.description.empty()) description = o.description;
  Canvas canvas(at.width, at.height, o.title, description);
  draw_labels(canvas, at, o);
  draw_cells(canvas, at, m, numbers);
  if (mask) draw_mask_legend(canvas, at);
  canvas.rect(at.left, at.top, at.grid_w, at.grid_h, "class='frame'");
  if (m.values.empty())
    canvas.text({at.left + at.grid_w / 2, at.top + 34}, "empty: " + m.shape.str(), "mid");
  else if (!mask)
    draw_scale(canvas, at, m, Axis(Scale::linear, m.low, m.high, at.top + scale_height, at.top, 0), scale_height);
  return canvas.str();
}

// ---- terminal --------------------------------------------------------------------------------------------

bool terminal_has_colour() {
  const char *no_color = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  return isatty(STDOUT_FILENO) != 0 && (term == nullptr || std::string_view(term) != "dumb");
}

std::string padded(const std::string& text, double width) {
  return std::string(static_cast<std::size_t>(std::max(0.0, width - columns(text))), ' ') + text;
}

std::string coloured(const std::string& text, const Rgb& c) {
  return fmt::format("\x1b[48;2;{};{};{}m\x1b[38;2;{}m{}\x1b[0m", c.r, c.g, c.b,
                     wants_black(c) ? "0;0;0" : "255;255;255", text);
}

// A cell without its number: nothing but its colour, or where there is no colour one of five shades.
std::string shade(const Matrix& m, double v, bool colours) {
  static constexpr const char* shades[] = {" ", "░", "▒", "▓", "█"};
  if (!std::isfinite(v)) return "?";
  return colours ? " " : shades[static_cast<int>(m.place(v) * 4 + 0.5)];
}

std::string text(Matrix m, const HeatmapOptions& o, Colour colour) {
  const bool colours = colour == Colour::always || (colour == Colour::automatic && terminal_has_colour());
  for (std::size_t i = 0; !o.numbers && i < m.texts.size(); ++i) m.texts[i] = shade(m, m.values[i], colours);
  const double side = longest(o.row_labels), width = std::max(longest(o.column_labels), longest(m.texts));
  const bool narrow = !o.numbers && width == 1;  // cells of one character, side by side
  const std::string gap = narrow ? "" : " ", behind_label = narrow && side > 0 ? " " : "";

  std::string out = o.title.empty() ? "" : readable(o.title) + "\n";
  if (!o.row_axis.empty()) out += "rows: " + readable(o.row_axis) + "\n";
  if (!o.column_axis.empty()) out += "columns: " + readable(o.column_axis) + "\n";
  if (!o.column_labels.empty()) {
    out += padded("", side) + behind_label;
    for (const auto& label : o.column_labels) out += gap + padded(readable(label), width) + gap;
    out.resize(out.size() - gap.size());
    out += "\n";
  }
  for (std::int64_t i = 0; i < m.rows; ++i) {
    if (side > 0) out += padded(readable(o.row_labels[static_cast<std::size_t>(i)]), side) + behind_label;
    for (std::int64_t j = 0; j < m.cols; ++j) {
      const double v = m.values[m.index(i, j)];
      const std::string cell = gap + padded(m.texts[m.index(i, j)], width) + (colours || j + 1 < m.cols ? gap : "");
      out += colours ? coloured(cell, m.colour(v)) : cell;
    }
    out += "\n";
  }
  return m.values.empty() ? out + "[]\n" : out;
}

}  // namespace

template <class T> std::string heatmap_svg(const Tensor<T>& x, const HeatmapOptions& o) {
  return svg(read("heatmap_svg", x, o), o);
}
template <class T> std::string heatmap_text(const Tensor<T>& x, const HeatmapOptions& o, Colour colour) {
  return text(read("heatmap_text", x, o), o, colour);
}

#define TAPEHEAD_HEATMAP(T)                                                  \
  template std::string heatmap_svg(const Tensor<T>&, const HeatmapOptions&); \
  template std::string heatmap_text(const Tensor<T>&, const HeatmapOptions&, Colour);
TAPEHEAD_ELEMENTS(TAPEHEAD_HEATMAP)

}  // namespace tapehead
