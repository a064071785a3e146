#include "tapehead/figures/plot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "figures/plot_canvas.hpp"
#include "kernels/require.hpp"

// Lines, points, polygons and bars over two axes.

namespace tapehead {

using namespace figure;

namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double v) { low = std::min(low, v), high = std::max(high, v); }
};

void check_size(const char* op, const PlotOptions& o) {
  require<ValueError>(o.width >= 200 && o.width <= 10'000 && o.height >= 200 && o.height <= 10'000,
                      "{}: {} x {} pixels; both must be 200 to 10000", op, o.width, o.height);
}

std::string alternative(const PlotOptions& o, const char* kind, const std::vector<Series>& series) {
  if (!o.description.empty()) return o.description;
  std::string names;
  for (const auto& s : series) names += (names.empty() ? ": " : ", ") + (s.name.empty() ? "unnamed" : s.name);
  return kind + names;
}

// Where the plot's own rectangle lies, and what stands around it.
struct Frame {
  Frame(const std::vector<Series>& series, const PlotOptions& o, const Axis& y_axis) {
    std::vector<std::string> names;
    for (const auto& s : series) names.push_back(s.name);
    const double legend = widest(names);
    left = 24 + (o.y_axis.empty() ? 0 : 20) + y_axis.widest_label();
    right = std::max(o.width - 16 - (legend > 0 ? legend + 38 : 0), left + 100);
    top = o.title.empty() ? 16 : 38;
    bottom = o.height - 28 - (o.x_axis.empty() ? 0 : 20);
    width = std::max(o.width, right + legend + 54);
  }
  double left, right, top, bottom, width;
};

// Bars have no x axis with numbers.
void draw_axes(Canvas& canvas, const Frame& f, const PlotOptions& o, const Axis& y, const Axis* x) {
  for (const auto& [value, label] : y.ticks()) {
    canvas.line({f.left, y.at(value)}, {f.right, y.at(value)}, "grid");
    canvas.text({f.left - 8, y.at(value) + 4}, label, "end");
  }
  for (const auto& [value, label] : x == nullptr ? std::vector<Axis::Tick>() : x->ticks()) {
    canvas.line({x->at(value), f.top}, {x->at(value), f.bottom}, "grid");
    canvas.text({x->at(value), f.bottom + 18}, label, "mid");
  }
  if (!o.x_axis.empty()) canvas.text({(f.left + f.right) / 2, o.height - 12}, o.x_axis, "mid soft");
  if (!o.y_axis.empty()) canvas.text({20, (f.top + f.bottom) / 2}, o.y_axis, "mid soft", -90);
}

std::string colour(std::size_t i, const char* more) { return fmt::format("c{} {}", i % 6, more); }

// A seventh line has the first one's colour: dots tell them apart.
std::string stroke(std::size_t i, Style style) {
  return colour(i, style == Style::dashed ? "stroke dashed" : i >= 6 ? "stroke dotted" : "stroke");
}

void draw_legend(Canvas& canvas, const Frame& f, const std::vector<Series>& series, bool bars) {
  const double x = f.right + 12;
  double y = f.top + 6;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Style style = series[i].style;
    if (series[i].name.empty()) continue;
    if (bars)
      canvas.rect(x + 4, y - 5, 10, 10, "class='" + colour(i, "fill") + "'");
    else if (style == Style::polygon)
      canvas.through("polygon", {{x + 2, y + 5}, {x + 16, y + 5}, {x + 9, y - 6}}, colour(i, "area"));
    else if (style != Style::points)
      canvas.line({x, y}, {x + 18, y}, stroke(i, style));
    if (!bars && (style == Style::points || style == Style::line_points))
      canvas.circle({x + 9, y}, 3.5, colour(i, "fill"));
    canvas.text({x + 24, y + 4}, series[i].name);
    y += 18;
  }
}

// The points of series i with these indices, joined.
void draw_run(Canvas& canvas, const Frame& f, const Axis& x, const Axis& y, const Series& s, std::size_t i,
              const std::vector<std::size_t>& run) {
  std::vector<Point> points;
  for (const std::size_t k : run) points.push_back({x.at(s.x[k]), y.at(s.y[k])});
  if (s.style == Style::polygon)
    canvas.through("polygon", points, colour(i, "area"));
  else if (s.style != Style::points && run.size() > 1)
    canvas.through("polyline", points, stroke(i, s.style));
  const bool dots = s.style == Style::points || s.style == Style::line_points || run.size() == 1;
  for (std::size_t n = 0; n < run.size(); ++n) {
    const auto [left, top] = points[n];
    if (dots) canvas.circle(points[n], 3.5, colour(i, "fill"));
    if (s.labels.empty()) continue;
    const std::string& label = s.labels[run[n]];
    const bool fits = left + 7 + pixels(readable(label)) < f.right;
    canvas.text({left + (fits ? 7 : -7), top - 6}, label, fits ? "" : "end");
  }
}

bool shows(const PlotOptions& o, const Series& s, std::size_t k) {
  return figure::shows(o.x_scale, s.x[k]) && figure::shows(o.y_scale, s.y[k]);
}

// A point that has no place on the axes breaks a line, and is left out of a polygon.
void draw_series(Canvas& canvas, const Frame& f, const PlotOptions& o, const Axis& x, const Axis& y, const Series& s,
                 std::size_t i) {
  std::vector<std::size_t> run;
  for (std::size_t k = 0; k <= s.x.size(); ++k) {
    const bool end = k == s.x.size();
    if (!end && shows(o, s, k))
      run.push_back(k);
    else if (!run.empty() && (end || s.style != Style::polygon))
      draw_run(canvas, f, x, y, s, i, std::exchange(run, {}));
  }
}

}  // namespace

std::string plot_svg(std::vector<Series> series, const PlotOptions& o) {
  check_size("plot_svg", o);
  Range xs, ys;
  double margin = 0.05;
  for (auto& s : series) {
    for (std::size_t k = s.x.empty() ? 0 : s.y.size(); k < s.y.size(); ++k) s.x.push_back(static_cast<double>(k));
    if (!s.labels.empty()) margin = 0.12;  // for the labels above and beside the points
    require<ValueError>(s.x.size() == s.y.size() && (s.labels.empty() || s.labels.size() == s.x.size()),
                        "plot_svg: \"{}\" has {} x, {} y and {} labels; there must be as many y as x, and as "
                        "many labels or none",
                        s.name, s.x.size(), s.y.size(), s.labels.size());
    for (std::size_t k = 0; k < s.x.size(); ++k)
      if (shows(o, s, k)) xs.add(s.x[k]), ys.add(s.y[k]);
  }
  const Frame f(series, o, Axis(o.y_scale, ys.low, ys.high, 0, 1, margin));
  const Axis x(o.x_scale, xs.low, xs.high, f.left, f.right, margin - 0.01);
  const Axis y(o.y_scale, ys.low, ys.high, f.bottom, f.top, margin);
  Canvas canvas(f.width, o.height, o.title, alternative(o, "A plot", series));
  draw_axes(canvas, f, o, y, &x);
  canvas.rect(f.left, f.top, f.right - f.left, f.bottom - f.top, "class='frame'");
  for (std::size_t i = 0; i < series.size(); ++i) draw_series(canvas, f, o, x, y, series[i], i);
  draw_legend(canvas, f, series, false);
  return canvas.str();
}

Series convex_hull(const Series& points) {
  require<ValueError>(points.x.size() == points.y.size(), "convex_hull: {} values of x and {} of y; give as many",
                      points.x.size(), points.y.size());
  std::vector<Point> all;
  for (std::size_t i = 0; i < points.x.size(); ++i)
    if (std::isfinite(points.x[i]) && std::isfinite(points.y[i])) all.push_back({points.x[i], points.y[i]});
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  // Left, but for rounding: three points on a line are no corner.
  const auto turns_left = [](const Point& a, const Point& b, const Point& c) {
    const double one = (b.first - a.first) * (c.second - a.second);
    const double two = (b.second - a.second) * (c.first - a.first);
    return one - two > 1e-12 * (std::abs(one) + std::abs(two));
  };
  // Andrew's monotone chain: below from the left, then above from the right.
  std::vector<Point> hull;
  for (int side = 0; side < 2 && all.size() > 1; ++side, std::reverse(all.begin(), all.end())) {
    const std::size_t start = hull.size();
    for (const Point& p : all) {
      while (hull.size() >= start + 2 && !turns_left(hull[hull.size() - 2], hull.back(), p)) hull.pop_back();
      hull.push_back(p);
    }
    hull.pop_back();  // the other side starts with it
  }
  Series s{points.name, {}, {}, Style::polygon, {}};
  for (const Point& p : all.size() > 1 ? hull : all) s.x.push_back(p.first), s.y.push_back(p.second);
  return s;
}

std::string bars_svg(const std::vector<std::string>& names, const std::vector<Series>& series, const PlotOptions& o) {
  check_size("bars_svg", o);
  require<ValueError>(o.x_scale == Scale::linear && o.y_scale == Scale::linear,
                      "bars_svg: bars start at 0, which no logarithmic axis has, and have names along the x axis; "
                      "use plot_svg and points");
  Range ys{0, 0};
  for (const auto& s : series) {
    require<ValueError>(s.y.size() == names.size(), "bars_svg: \"{}\" has {} values for {} names", s.name, s.y.size(),
                        names.size());
    require<ValueError>(s.labels.empty() && s.style == Style::line,
                        "bars_svg: \"{}\" has a style or labels, which bars do not show; use plot_svg", s.name);
    for (const double v : s.y)
      if (std::isfinite(v)) ys.add(v);
  }
  const double room = (ys.high / 2 - ys.low / 2) / 5;  // for the numbers
  ys = ys.low < ys.high ? Range{ys.low < 0 ? ys.low - room : 0, ys.high + room} : Range{0, 1};
  const Frame f(series, o, Axis(Scale::linear, ys.low, ys.high, 0, 1, 0));
  const Axis y(Scale::linear, ys.low, ys.high, f.bottom, f.top, 0);
  Canvas canvas(f.width, o.height, o.title, alternative(o, "Bars", series));
  draw_axes(canvas, f, o, y, nullptr);
  const double group = (f.right - f.left) / std::max(1.0, static_cast<double>(names.size()));
  const double bar = 0.8 * group / std::max(1.0, static_cast<double>(series.size())), zero = y.at(0);
  for (std::size_t g = 0; g < names.size(); ++g) {
    const double left = f.left + group * (static_cast<double>(g) + 0.1);
    for (std::size_t i = 0; i < series.size(); ++i) {
      const double v = series[i].y[g], end = std::isfinite(v) ? y.at(v) : zero;
      const double x = left + bar * static_cast<double>(i);
      const std::string text = value_texts(series[i].y, 2)[g];
      canvas.rect(x, std::min(end, zero), bar * 0.94, std::abs(end - zero), "class='" + colour(i, "fill") + "'");
      if (pixels(text) < bar + 8) canvas.text({x + bar * 0.47, v < 0 ? end + 13 : end - 4}, text, "mid small");
    }
    canvas.text({left + 0.4 * group, f.bottom + 18}, names[g], "mid");
  }
  canvas.line({f.left, zero}, {f.right, zero}, "frame");
  draw_legend(canvas, f, series, true);
  return canvas.str();
}

}  // namespace tapehead
