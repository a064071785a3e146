#include "figures/plot_canvas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "kernels/utf8.hpp"
#include "kernels/write_file.hpp"

namespace tapehead {

namespace figure {

namespace {

// A value half-way between two roundings must not fall here on one machine and there on another.
double nudged(double v) { return v * (1 + 1e-9); }

// "12.5": at most two decimals.
std::string number(double v) {
  std::string text = fmt::format("{:.2f}", nudged(v));
  text.resize(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string classed(const std::string& classes) { return classes.empty() ? "" : " class='" + classes + "'"; }

// The length of the character at text[i]; 0 where it is not UTF-8, or is one that XML forbids or a control
// character (below U+0020, and U+007F to U+009F).
std::size_t character(std::string_view text, std::size_t i) {
  const std::size_t length = detail::utf8_length(text, i);
  const std::string_view c = text.substr(i, length);
  const bool control = length == 1 ? c < " " || c == "\x7f" : c >= "\xc2\x80" && c < "\xc2\xa0";
  return control || c == "\xef\xbf\xbe" || c == "\xef\xbf\xbf" ? 0 : length;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : readable(text))
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

constexpr const char* style = R"(<style>
.th{font-family:system-ui,sans-serif;font-size:12px}.th .small{font-size:11px}.th .title{font-size:14px;font-weight:600}
.th .mid{text-anchor:middle}.th .end{text-anchor:end}.th rect{shape-rendering:crispEdges}.th .fill{fill:currentColor}
.th .stroke{stroke:currentColor;fill:none;stroke-width:2;stroke-linejoin:round}.th .dashed{stroke-dasharray:6 4}
.th .area{stroke:currentColor;fill:currentColor;stroke-width:2;fill-opacity:.15}.th .dotted{stroke-dasharray:2 3}
.th text{fill:#1f2328}.th .soft{fill:#59636e}.th .ground{fill:#fff}.th .off{fill:#e6eaef}.th .on{fill:#0969da}
.th .grid{stroke:#d1d9e0}.th .frame{stroke:#818b98;fill:none}.th .white{fill:#fff}.th .black{fill:#000}
.th .c0{color:#0969da}.th .c1{color:#bc4c00}.th .c2{color:#1a7f37}
.th .c3{color:#8250df}.th .c4{color:#bf3989}.th .c5{color:#7d6500}
@media(prefers-color-scheme:dark){
.th text{fill:#f0f6fc}.th .soft{fill:#9198a1}.th .ground{fill:#0d1117}.th .off{fill:#2a313c}.th .on{fill:#4493f8}
.th .grid{stroke:#2f3742}.th .frame{stroke:#656c76}.th .white{fill:#fff}.th .black{fill:#000}
.th .c0{color:#4493f8}.th .c1{color:#f0883e}.th .c2{color:#3fb950}
.th .c3{color:#ab7df8}.th .c4{color:#f778ba}.th .c5{color:#d4b83f}
}
</style>
)";

// "1e6" for "1e+06", as in a figure there is little room.
std::string short_number(double v, int digits) {
  std::string text = fmt::format("{:.{}g}", v == 0 ? 0 : v, digits);
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;
  return text.substr(0, e + 1) + std::to_string(std::stoi(text.substr(e + 1)));
}

std::string power_label(int base, double exponent) {
  static const char* const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string label = std::to_string(base) + (exponent < 0 ? "⁻" : "");
  for (const char c : fmt::format("{:.0f}", std::abs(exponent))) label += digits[c - '0'];
  return label;
}

}  // namespace

std::vector<std::string> value_texts(const std::vector<double>& values, int precision) {
  double largest = 0;
  for (const double v : values)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  const bool fixed = largest == 0 || (largest < 1e5 && largest >= std::pow(10, -precision) / 2);
  std::vector<std::string> texts;
  for (const double v : values)
    texts.push_back(v == 0   ? "0"
                    : v != v ? "nan"
                    : fixed  ? fmt::format("{:.{}f}", nudged(v), precision)
                             : fmt::format("{:.1e}", nudged(v)));
  return texts;
}

std::string readable(const std::string& text) {
  std::string out;
  for (std::size_t i = 0, n = 0; i < text.size(); i += std::max<std::size_t>(n, 1)) {
    n = character(text, i);
    out += n == 0 ? "\xEF\xBF\xBD" : text.substr(i, n);
  }
  return out;
}

double longest(const std::vector<std::string>& labels) {
  double most = 0;
  for (const auto& label : labels) most = std::max(most, columns(readable(label)));
  return most;
}

Canvas::Canvas(double width, double height, const std::string& title, const std::string& description) {
  width = std::ceil(width - 0.01), height = std::ceil(height - 0.01);  // no half pixels at the edge
  body_ = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' class='th' role='img' width='{0}' "
      "height='{1}' viewBox='0 0 {0} {1}'>\n<title>{2}</title>\n<desc>{3}</desc>\n{4}",
      number(width), number(height), escaped(title.empty() ? "Figure" : title), escaped(description), style);
  rect(0, 0, width, height, "class='ground'");
  if (!title.empty()) text({width / 2, 20}, title, "mid title");
}

void Canvas::rect(double x, double y, double width, double height, const std::string& paint) {
  body_ += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' {}/>\n", number(x), number(y), number(width),
                       number(height), paint);
}
void Canvas::line(Point from, Point to, const std::string& classes) {
  body_ += fmt::format("<line x1='{}' y1='{}' x2='{}' y2='{}'{}/>\n", number(from.first), number(from.second),
                       number(to.first), number(to.second), classed(classes));
}
void Canvas::circle(Point centre, double radius, const std::string& classes) {
  body_ += fmt::format("<circle cx='{}' cy='{}' r='{}'{}/>\n", number(centre.first), number(centre.second),
                       number(radius), classed(classes));
}
void Canvas::through(const char* element, const std::vector<Point>& points, const std::string& classes) {
  std::string list;
  for (const Point& p : points) list += (list.empty() ? "" : " ") + number(p.first) + "," + number(p.second);
  body_ += fmt::format("<{} points='{}'{}/>\n", element, list, classed(classes));
}
void Canvas::text(Point at, const std::string& content, const std::string& classes, int turned) {
  const std::string x = number(at.first), y = number(at.second);
  const std::string turn = turned == 0 ? "" : fmt::format(" transform='rotate({} {} {})'", turned, x, y);
  body_ += fmt::format("<text x='{}' y='{}'{}{}>{}</text>\n", x, y, classed(classes), turn, escaped(content));
}

bool shows(Scale scale, double v) { return std::isfinite(v) && (scale == Scale::linear || v > 0); }

Axis::Axis(Scale scale, double low, double high, double from, double to, double margin)
    : scale_(scale), from_(from), to_(to) {
  if (shows(scale, low) && shows(scale, high)) low_ = unit(low), high_ = unit(high);
  const double room = scale == Scale::linear && low_ != 0 ? std::abs(low_) / 2 : 1;
  if (!(low_ < high_)) low_ -= room, high_ += room;
  low_ = std::max(low_, -8e307), high_ = std::min(high_, 8e307);  // so that their distance is finite
  const double pad = (high_ - low_) * margin;
  low_ -= pad, high_ += pad;
  if (scale != Scale::linear) mark_powers();
  if (ticks_.size() < 2) mark_linear(value(low_), value(high_));
}

double Axis::unit(double v) const {
  return scale_ == Scale::linear ? v : scale_ == Scale::log2 ? std::log2(v) : std::log10(v);
}
double Axis::value(double unit) const {
  return scale_ == Scale::linear ? unit : std::pow(scale_ == Scale::log2 ? 2 : 10, unit);
}
double Axis::at(double v) const {
  return from_ + (to_ - from_) * std::clamp((unit(v) - low_) / (high_ - low_), 0.0, 1.0);
}

// About five multiples of 1, 2 or 5 times a power of ten.
void Axis::mark_linear(double low, double high) {
  ticks_.clear();
  const double raw = (high - low) / 5, magnitude = std::pow(10, std::floor(std::log10(raw)));
  if (!(magnitude > 0)) return;  // a range at the very end of double's
  const double lead = raw / magnitude;
  const double step = magnitude * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
  const double first = std::ceil(low / step - 1e-6), last = std::floor(high / step + 1e-6);
  const double longest = std::log10(std::max(std::abs(low), std::abs(high)) / step);
  const int digits = longest < 5 ? 6 : longest < 14 ? static_cast<int>(longest) + 2 : 16;
  for (double k = first; k <= last; k += 1) {
    if (!ticks_.empty() && ticks_.back().value == k * step) break;  // a range of a few of double's steps
    ticks_.push_back({k * step, short_number(k * step, digits)});
  }
}

// Powers of the base: each, or every 2nd, 5th, 10th, …
void Axis::mark_powers() {
  const int base = scale_ == Scale::log2 ? 2 : 10;
  const double first = std::ceil(low_ - 1e-6), last = std::floor(high_ + 1e-6);
  double step = 1;
  for (int i = 0; (last - first) / step > (base == 2 ? 11 : 8); ++i) step *= i % 3 == 1 ? 2.5 : 2;
  const bool plain = value(first) >= 1e-3 && value(last) < 1e5;
  for (double k = std::ceil(first / step) * step; k <= last; k += step)
    ticks_.push_back({value(k), plain ? short_number(value(k), 10) : power_label(base, k)});
}

double Axis::widest_label() const {
  double w = 0;
  for (const Tick& tick : ticks_) w = std::max(w, pixels(tick.label));
  return w;
}

}  // namespace figure

void save_svg(const std::string& path, const std::string& svg) { detail::write_file("save_svg", path, {svg}); }

}  // namespace tapehead
