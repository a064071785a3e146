#pragma once
#include <string>
#include <utility>
#include <vector>

#include "kernels/utf8.hpp"
#include "tapehead/figures/plot.hpp"

// What all figures share: a canvas to draw on, and an axis to measure by.

namespace tapehead::figure {

using Point = std::pair<double, double>;

/// The values of one picture, all in one format: with `precision` decimals, or as "1.2e-09" if the largest would be
/// printed as 0 or is 100,000 or more. 0 itself is "0", so that "0.00" is small but not 0.
std::vector<std::string> value_texts(const std::vector<double>& values, int precision);
/// Labels come from anywhere: line breaks and broken characters (part of a token) become U+FFFD.
std::string readable(const std::string& text);
/// The width of a text in characters, and of the longest of several.
inline double columns(const std::string& text) { return static_cast<double>(detail::columns(text)); }
double longest(const std::vector<std::string>& labels);
/// The same in pixels, estimated.
inline double pixels(const std::string& text) { return 6.8 * columns(text); }
inline double widest(const std::vector<std::string>& labels) { return 6.8 * longest(labels); }

/// SVG elements, one after the other. Colours and alignment are classes of one style sheet, which has a light
/// and a dark half: mid and end align a text, c0 … c5 are the series' colours, which stroke or fill applies.
class Canvas {
 public:
  Canvas(double width, double height, const std::string& title, const std::string& description);
  void rect(double x, double y, double width, double height, const std::string& paint);  // "class='on'"
  void line(Point from, Point to, const std::string& classes);
  void circle(Point centre, double radius, const std::string& classes);
  /// A "polyline" or "polygon".
  void through(const char* element, const std::vector<Point>& points, const std::string& classes);
  /// `at` is on the baseline; turned by so many degrees about it.
  void text(Point at, const std::string& content, const std::string& classes = "", int turned = 0);
  std::string str() const { return body_ + "</svg>\n"; }

 private:
  std::string body_;
};

/// Values to pixels, with round numbers to mark.
class Axis {
 public:
  struct Tick {
    double value;
    std::string label;
  };
  /// From low at pixel `from` to high at pixel `to`, and a share of that length beyond. Equal ends are moved
  /// apart; with nothing to show (low > high) the axis runs from 0 to 1, or over one power.
  Axis(Scale scale, double low, double high, double from, double to, double margin);

  double at(double v) const;
  const std::vector<Tick>& ticks() const { return ticks_; }
  double widest_label() const;  // in pixels

 private:
  double unit(double v) const;  // the value, or its logarithm
  double value(double unit) const;
  void mark_linear(double low, double high);
  void mark_powers();
  Scale scale_;
  double low_ = 0, high_ = 1, from_, to_;  // low and high as unit() has them
  std::vector<Tick> ticks_;
};

/// Whether an axis has a place for v.
bool shows(Scale scale, double v);

}  // namespace tapehead::figure
