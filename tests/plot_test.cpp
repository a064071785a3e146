#include "tapehead/plot.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <locale>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tapehead/select.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double NaN = std::numeric_limits<double>::quiet_NaN();
constexpr double most = std::numeric_limits<double>::max();

struct Element {
  std::string name, text;
  std::map<std::string, std::string> attributes;
  double number(const std::string& key) const { return std::stod(attributes.at(key)); }
};

// A reader of just the XML that a figure may be: elements in order, and in `error` the first thing wrong.
struct Svg {
  explicit Svg(const std::string& source) : s(source) {
    while (error.empty() && i < s.size()) s[i] == '<' ? tag() : content();
    if (error.empty() && !open.empty()) error = "not closed: " + elements[open.back()].name;
  }
  void content() {
    const std::size_t end = std::min(s.find('<', i), s.size());
    std::string text = s.substr(i, end - i);
    for (std::size_t at = 0; (at = text.find('&', at)) != std::string::npos; ++at) {
      const std::string entity = text.substr(at, text.find(';', at) - at + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;") error = "bad entity " + entity;
      text.replace(at, entity.size(), entity == "&amp;" ? "&" : entity == "&lt;" ? "<" : ">");
    }
    if (!open.empty()) elements[open.back()].text += text;
    i = end;
  }
  void tag() {
    const std::size_t end = s.find('>', i);
    if (end == std::string::npos) return void(error = "a tag without end");
    std::string inside = s.substr(i + 1, end - i - 1);
    i = end + 1;
    if (inside[0] == '/') {
      if (open.empty() || elements[open.back()].name != inside.substr(1))
        return void(error = "closes wrongly: " + inside);
      return open.pop_back();
    }
    const bool empty = inside.back() == '/';
    if (empty) inside.pop_back();
    Element e;
    std::size_t at = std::min(inside.find(' '), inside.size());
    e.name = inside.substr(0, at);
    while ((at = inside.find_first_not_of(' ', at)) != std::string::npos) {
      const std::size_t equals = inside.find("='", at), quote = inside.find('\'', equals + 2);
      if (equals == std::string::npos || quote == std::string::npos)
        return void(error = "attributes: " + inside);
      if (!e.attributes.emplace(inside.substr(at, equals - at), inside.substr(equals + 2, quote - equals - 2))
               .second)
        error = "an attribute twice: " + inside;
      at = quote + 1;
    }
    elements.push_back(e);
    if (!empty) open.push_back(elements.size() - 1);
  }
  std::vector<Element> named(const std::string& name) const {
    std::vector<Element> found;
    for (const auto& e : elements)
      if (e.name == name) found.push_back(e);
    return found;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> found;
    for (const auto& e : named("text")) found.push_back(e.text);
    return found;
  }
  bool says(const std::string& text) const {
    for (const auto& t : texts())
      if (t == text) return true;
    return false;
  }
  std::string s, error;
  std::size_t i = 0;
  std::vector<Element> elements;
  std::vector<std::size_t> open;
};

// What holds for every figure: well-formed, a title, a description, both colour sets, and everything inside.
Svg checked(const std::string& source) {
  const Svg svg(source);
  CHECK(svg.error == ""sv);
  REQUIRE(!svg.elements.empty());
  const Element& root = svg.elements[0];
  CHECK(root.name == "svg"sv);
  CHECK(svg.elements.at(1).name == "title"sv);
  CHECK(!svg.elements.at(1).text.empty());
  CHECK(svg.elements.at(2).name == "desc"sv);
  CHECK(!svg.elements.at(2).text.empty());
  CHECK(svg.named("style").at(0).text.find("prefers-color-scheme:dark") != std::string::npos);
  const double width = root.number("width"), height = root.number("height");
  const auto inside = [&](double x, double y) { CHECK((x >= 0 && y >= 0 && x <= width && y <= height)); };
  for (const auto& e : svg.elements) {
    if (e.attributes.count("points") != 0) {
      std::istringstream points(e.attributes.at("points"));
      char comma;
      for (double x, y; points >> x >> comma >> y;) inside(x, y);
      CHECK(points.eof());
    }
    if (e.name == "rect" || e.name == "text") inside(e.number("x"), e.number("y"));
    if (e.name == "rect") inside(e.number("x") + e.number("width"), e.number("y") + e.number("height"));
    if (e.name == "line") inside(e.number("x1"), e.number("y1")), inside(e.number("x2"), e.number("y2"));
    if (e.name == "circle") inside(e.number("cx"), e.number("cy"));
  }
  return svg;
}

Tensor<double> row(const std::vector<double>& values) {
  return from_vector(values, {1, static_cast<std::int64_t>(values.size())});
}

// The cells' colours, as red, green, blue in 0 … 1; the ground, frame and scale aside.
std::vector<std::vector<double>> cell_colours(const Svg& svg, std::size_t cells) {
  std::vector<std::vector<double>> colours;
  for (const auto& e : svg.named("rect"))
    if (e.attributes.count("fill") != 0 && colours.size() < cells) {
      const auto rgb = std::stoul(e.attributes.at("fill").substr(1), nullptr, 16);
      colours.push_back({double(rgb >> 16) / 255, double(rgb >> 8 & 255) / 255, double(rgb & 255) / 255});
    }
  return colours;
}

// Relative luminance, by WCAG 2's definition.
double luminance(const std::vector<double>& rgb) {
  const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2]);
}

Series line(const std::vector<double>& x, const std::vector<double>& y, Style style = Style::line) {
  return {"a", x, y, style, {}};
}

}  // namespace

TEST_CASE("plot: a heat map has its labels, numbers, scale and words") {
  const Tensor<double> A{{1, 0}, {0.25, 0.75}};
  const Svg svg = checked(heatmap_svg(A, {.title = "Weights",
                                          .row_axis = "query",
                                          .column_axis = "key",
                                          .row_labels = {"the", "cat"},
                                          .column_labels = {"der", "Kater"}}));
  CHECK(svg.texts() == std::vector<std::string>{"Weights", "the", "cat", "der", "Kater", "key", "query",
                                                "1.00", "0.00", "0.25", "0.75", "0", "0.2", "0.4", "0.6",
                                                "0.8", "1"});
  CHECK(svg.elements.at(1).text == "Weights"sv);
  CHECK(svg.elements.at(2).text == "2 by 2 matrix; values from 0 to 1"sv);
  CHECK(checked(heatmap_svg(A, {.description = "Row 2 blends"})).elements.at(2).text == "Row 2 blends"sv);
}

TEST_CASE("plot: a heat map's numbers: what is not finite has its name, and nothing shows 0 that is not 0") {
  const Svg svg = checked(heatmap_svg(row({NaN, inf, -inf, 1e-9, -0.001, 0.005, 123456, -2})));
  for (const char* text : {"nan", "inf", "-inf", "1e-09", "-1e-03", "0.01", "1.2e+05", "-2.00"})
    CHECK(svg.says(text));
  CHECK(checked(heatmap_svg(row({0.126}), {.precision = 3})).says("0.126"));
  CHECK(checked(heatmap_svg(Tensor<std::int64_t>{{123456789}})).says("123456789"));
  CHECK(!checked(heatmap_svg(row({0.5}), {.numbers = false})).says("0.50"));
  CHECK(!checked(heatmap_svg(full<float>({25, 1}, 0.5f))).says("0.50"));
}

TEST_CASE("plot: the colour scale rises evenly in lightness, and the numbers can be read on it") {
  std::vector<double> ramp;
  for (int i = 0; i < 24; ++i) ramp.push_back(i);
  const Svg svg = checked(heatmap_svg(row(ramp)));
  const auto colours = cell_colours(svg, ramp.size());
  const auto lightness = [&](std::size_t i) {
    return 116 * std::cbrt(luminance(colours.at(i))) - 16;
  };  // CIE L*
  std::vector<Element> numbers;
  for (const auto& e : svg.named("text"))
    if (e.attributes.count("class") != 0) numbers.push_back(e);
  REQUIRE(numbers.size() == ramp.size());
  for (std::size_t i = 0; i < ramp.size(); ++i) {
    // From 14 to 95 in 23 steps are 3.5 each; a third off is the most that sRGB's gamut makes of it.
    if (i > 0) CHECK(std::abs(lightness(i) - lightness(i - 1) - 3.5) < 1.2);
    const double own = luminance(colours[i]) + 0.05;
    const bool black = numbers[i].attributes.at("class") == "mid black";
    CHECK((black ? own / 0.05 : 1.05 / own) >= 4.5);  // WCAG AA
  }
}

TEST_CASE("plot: low and high fix the ends of the colours") {
  const auto one = [](double v, const HeatmapOptions& o) {
    return cell_colours(checked(heatmap_svg(row({v}), o)), 1).at(0);
  };
  const auto both = cell_colours(checked(heatmap_svg(row({0, 1}))), 2);
  CHECK(one(0, {.low = 0, .high = 1}) == both[0]);
  CHECK(one(7, {.low = 0, .high = 1}) == both[1]);
  CHECK(one(7, {.low = 10}) == one(3, {}));  // a single value, between ends that are one
  CHECK(message<ValueError>([&] { one(0, {.low = 1, .high = 0}); }) ==
        "heatmap_svg: colours from low = 1 to high = 0; low must be the smaller one"sv);
  CHECK(message<ValueError>([&] { one(0, {.high = NaN}); }) ==
        "heatmap_svg: colours from low = 0 to high = nan; low must be the smaller one"sv);
}

TEST_CASE("plot: matrices at the edge of what can be drawn") {
  for (const auto& x : {scalar(3.0), Tensor<double>{1, 2, 3}, Tensor<double>(), zeros<double>({0, 3}),
                        zeros<double>({3, 0}), full<double>({2, 3}, -0.25), zeros<double>({256, 256}),
                        zeros<double>({1, 500}), row({most, -most, 0}), row({5e-324, 0}), row({NaN}),
                        row({inf, -inf}), row({1e300, 1e300 * (1 + 1e-15)}), row({-1, 1e-320})}) {
    CAPTURE(x.shape().str());
    checked(heatmap_svg(x));
    heatmap_text(x, {}, Colour::always);
  }
  CHECK(checked(heatmap_svg(zeros<double>({0, 3}))).says("empty: (0, 3)"));
  CHECK(checked(heatmap_svg(full<double>({2, 3}, -0.25))).says("-0.25"));
  CHECK(message<ShapeError>([] {
          heatmap_svg(zeros<double>({2, 3, 4}));
        }) == "heatmap_svg: shape (2, 3, 4) has 3 axes; draw one matrix of it, x.select(0, i)"sv);
  CHECK(message<ValueError>([] {
          heatmap_text(zeros<float>({257, 256}));
        }) ==
        "heatmap_text: shape (257, 256) has more cells than a figure shows, 65536; draw a slice of it"sv);
  CHECK(message<ValueError>([] {
          heatmap_svg(zeros<float>({2, 2}), {.row_labels = {"a"}});
        }) == "heatmap_svg: 1 row labels for shape (2, 2); 2 are needed, or none"sv);
  CHECK(message<ValueError>([] {
          heatmap_svg(zeros<float>({2, 2}), {.column_labels = {"a", "b", "c"}});
        }) == "heatmap_svg: 3 column labels for shape (2, 2); 2 are needed, or none"sv);
  CHECK(message<ValueError>([] {
          heatmap_svg(zeros<float>({2, 2}), {.precision = -1});
        }) == "heatmap_svg: precision is -1; it must be 0 to 17"sv);
}

TEST_CASE("plot: a mask is a grid of filled and open cells") {
  const Svg svg = checked(heatmap_svg(tril(ones<bool>({4, 4})), {.title = "Causal"}));
  std::string cells;
  for (const auto& e : svg.named("rect"))
    if (e.attributes.at("class") != "ground" && e.attributes.at("class") != "frame")
      cells += e.attributes.at("class") == "on" ? '1' : '0';
  CHECK(cells ==
        "1000"
        "1100"
        "1110"
        "1111"
        "10"sv);  // and the legend
  CHECK(svg.elements.at(2).text == "4 by 4 mask; 10 of 16 pairs may attend"sv);
  checked(heatmap_svg(zeros<bool>({0, 0})));
}

TEST_CASE("plot: labels may hold anything") {
  const std::string odd = "<b>&\"'\n\x1b\x7f";
  const Svg svg = checked(heatmap_svg(row({1, 2}), {.title = odd,
                                                    .description = odd,
                                                    .row_axis = odd,
                                                    .column_axis = odd,
                                                    .row_labels = {odd},
                                                    .column_labels = {"\xC3", "äöü→𝄞"}}));
  CHECK(svg.says("<b>&\"'\uFFFD\uFFFD\uFFFD"));
  CHECK(svg.says("\uFFFD"));
  CHECK(svg.says("äöü→𝄞"));
  // cut short, overlong, a surrogate, beyond Unicode, a stray continuation, U+FFFF, U+0085
  for (const char* broken : {"\xE2\x86", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80",
                             "\xEF\xBF\xBF", "\xC2\x85", "\xFF"}) {
    const auto texts = checked(heatmap_svg(row({1}), {.row_labels = {broken}})).texts();
    for (const char c : texts.at(0)) CHECK((c == '\xEF' || c == '\xBF' || c == '\xBD'));
  }
  CHECK(heatmap_text(row({1}), {.row_labels = {"a\x1b[2Jb"}}) == "a\uFFFD[2Jb 1.00\n"sv);
}

TEST_CASE("plot: a matrix in the terminal") {
  const Tensor<double> A{{1, 0}, {0.25, NaN}};
  const HeatmapOptions o{.title = "Weights", .row_labels = {"the", "→"}, .column_labels = {"a", "longer"}};
  CHECK(heatmap_text(A, o, Colour::never) ==
        "Weights\n"
        "         a  longer\n"
        "the   1.00    0.00\n"
        "  →   0.25     nan\n"sv);
  const std::string coloured = heatmap_text(Tensor<double>{{0, 1, NaN}}, {}, Colour::always);
  CHECK(coloured ==
        "\x1b[48;2;40;28;76m\x1b[38;2;255;255;255m 0.00 \x1b[0m"
        "\x1b[48;2;255;241;155m\x1b[38;2;0;0;0m 1.00 \x1b[0m"
        "\x1b[48;2;128;128;128m\x1b[38;2;0;0;0m  nan \x1b[0m\n"sv);
  setenv("NO_COLOR", "1", 1);
  CHECK(heatmap_text(A, o) == heatmap_text(A, o, Colour::never));
  unsetenv("NO_COLOR");
  CHECK(heatmap_text(Tensor<bool>{{true, false}}, {.row_axis = "query", .column_axis = "key"},
                     Colour::never) == "rows: query\ncolumns: key\n 1  0\n"sv);
  CHECK(heatmap_text(Tensor<std::int64_t>{12, -3}, {}, Colour::never) == " 12  -3\n"sv);
  CHECK(heatmap_text(zeros<float>({2, 0}), {}, Colour::never) == "\n\n[]\n"sv);
}

TEST_CASE("plot: lines, with round numbers at the axes") {
  const Svg svg = checked(plot_svg({{.name = "eager", .x = {0, 1, 2}, .y = {0, 0.5, 1}},
                                    {.name = "flash", .x = {0, 2}, .y = {1, 0}, .style = Style::dashed}},
                                   {.title = "Time", .x_axis = "n", .y_axis = "ms"}));
  for (const char* text :
       {"Time", "n", "ms", "eager", "flash", "0", "0.2", "0.4", "0.6", "0.8", "1", "0.5", "1.5", "2"})
    CHECK(svg.says(text));
  CHECK(svg.named("polyline").size() == 2);
  CHECK(svg.named("polyline")[1].attributes.at("class") == "c1 stroke dashed"sv);
  CHECK(svg.elements.at(2).text == "A plot: eager, flash"sv);
  // The middle of the first line is half-way between its ends, up being more.
  std::istringstream points(svg.named("polyline")[0].attributes.at("points"));
  double x[3], y[3];
  char comma;
  for (int i = 0; i < 3; ++i) points >> x[i] >> comma >> y[i];
  CHECK(std::abs(x[1] - (x[0] + x[2]) / 2) < 0.011);
  CHECK(std::abs(y[1] - (y[0] + y[2]) / 2) < 0.011);
  CHECK(y[0] > y[2]);
}

TEST_CASE("plot: ticks") {
  const auto ticks = [](double low, double high, Scale scale) {
    std::vector<std::string> found;
    for (const auto& e : checked(plot_svg({line({1, 2}, {low, high})}, {.y_scale = scale})).named("text"))
      if (e.attributes.count("class") != 0 && e.attributes.at("class") == "end") found.push_back(e.text);
    return found;
  };
  using Texts = std::vector<std::string>;
  CHECK(ticks(0, 100, Scale::linear) == Texts{"0", "20", "40", "60", "80", "100"});
  CHECK(ticks(-0.3, 0.3, Scale::linear) == Texts{"-0.3", "-0.2", "-0.1", "0", "0.1", "0.2", "0.3"});
  CHECK(ticks(0, 5e6, Scale::linear) == Texts{"0", "1e6", "2e6", "3e6", "4e6", "5e6"});
  CHECK(ticks(0, 3e-7, Scale::linear) == Texts{"0", "5e-8", "1e-7", "1.5e-7", "2e-7", "2.5e-7", "3e-7"});
  CHECK(ticks(1000000.5, 1000001, Scale::linear) ==
        Texts{"1000000.5", "1000000.6", "1000000.7", "1000000.8", "1000000.9", "1000001"});
  CHECK(ticks(7, 7, Scale::linear) == Texts{"4", "6", "8", "10"});
  CHECK(ticks(0.01, 1e6, Scale::log10) ==
        Texts{"0.01", "0.1", "1", "10", "100", "1000", "10000", "10⁵", "10⁶"});
  CHECK(ticks(1e-300, 1e300, Scale::log10) ==
        Texts{"10⁻³⁰⁰", "10⁻²⁰⁰", "10⁻¹⁰⁰", "1", "10¹⁰⁰", "10²⁰⁰", "10³⁰⁰"});
  CHECK(ticks(1, 1024, Scale::log2) ==
        Texts{"1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024"});
  CHECK(ticks(2, 9, Scale::log10) == Texts{"2", "4", "6", "8"});  // no two powers: as on a linear axis
}

TEST_CASE("plot: what has no place is left out, and breaks the line") {
  CHECK(checked(plot_svg({line({0, 1, 2, 3, 4}, {1, 2, NaN, 2, 1})})).named("polyline").size() == 2);
  CHECK(checked(plot_svg({line({-1, 0, 1, 2}, {1, 1, 1, 1})}, {.x_scale = Scale::log10}))
            .named("polyline")
            .size() == 1);
  const Svg alone =
      checked(plot_svg({line({0, 1, 2}, {NaN, 2, inf})}));  // one point: a dot, or nobody would see it
  CHECK(alone.named("polyline").empty());
  CHECK(alone.named("circle").size() == 1);
  const Svg points = checked(
      plot_svg({{.x = {0, 1, NaN}, .y = {0, 1, 1}, .style = Style::points, .labels = {"v0", "v1", "v2"}}}));
  CHECK(points.named("circle").size() == 2);
  CHECK(points.says("v1"));
  CHECK(!points.says("v2"));
  for (const Scale scale : {Scale::linear, Scale::log10, Scale::log2})
    for (const Style style : {Style::line, Style::dashed, Style::points, Style::line_points, Style::polygon})
      for (const auto& s :
           {line({}, {}, style), line({1}, {1}, style), line({NaN}, {1}, style),
            line({-1, -2}, {-1, -2}, style), line({most, -most}, {most, -most}, style),
            line({5e-324, 0, 1}, {0, 5e-324, most}, style), line({5e-324, 0}, {0, 5e-324}, style),
            line({1e300, 1e300 * (1 + 1e-15)}, {1, 1}, style)})
        checked(plot_svg({s, s}, {.x_scale = scale, .y_scale = scale}));
  checked(plot_svg({}));
  checked(plot_svg(std::vector<Series>(9, line({1, 2}, {1, 2})), {.width = 200, .height = 200}));
  checked(plot_svg({{.name = std::string(80, 'w'), .x = {1}, .y = {1}}}, {.width = 200, .height = 200}));
  CHECK(
      message<ValueError>([] {
        plot_svg({line({1, 2}, {1})});
      }) ==
      "plot_svg: \"a\" has 2 x, 1 y and 0 labels; there must be as many y as x, and as many labels or none"sv);
  CHECK(message<ValueError>([] { plot_svg({}, {.width = NaN}); }) ==
        "plot_svg: nan x 400 pixels; both must be 200 to 10000"sv);
}

TEST_CASE("plot: the convex hull") {
  const auto hull = [](const std::vector<double>& x, const std::vector<double>& y) {
    const Series s = convex_hull({.name = "v", .x = x, .y = y});
    CHECK(s.style == Style::polygon);
    CHECK(s.name == "v"sv);
    std::vector<std::pair<double, double>> corners;
    for (std::size_t i = 0; i < s.x.size(); ++i) corners.emplace_back(s.x[i], s.y.at(i));
    return corners;
  };
  using Corners = std::vector<std::pair<double, double>>;
  CHECK(hull({0, 4, 5, 1, 2}, {0, -1, 3, 4, 2}) == Corners{{0, 0}, {4, -1}, {5, 3}, {1, 4}});
  CHECK(hull({0, 1, 1, 0, 0.5, 1, 0}, {0, 0, 1, 1, 0, 0.5, 0}) == Corners{{0, 0}, {1, 0}, {1, 1}, {0, 1}});
  CHECK(hull({0, 0.1, 0.2, 0.3}, {0, 0.3, 0.6, 0.9}) ==
        Corners{{0, 0}, {0.3, 0.9}});  // on a line, but for rounding
  CHECK(hull({2, 2}, {3, 3}) == Corners{{2, 3}});
  CHECK(hull({}, {}).empty());
  CHECK(hull({0, NaN, 1, 0}, {0, 0, 0, 1}) == Corners{{0, 0}, {1, 0}, {0, 1}});
}

TEST_CASE("plot: bars start at 0") {
  const Svg svg = checked(bars_svg({"value path", "query path"},
                                   {{.name = "uniform", .y = {2, -1}}, {.name = "one-hot", .y = {NaN, 0}}}));
  for (const char* text : {"value path", "query path", "uniform", "one-hot", "2.00", "-1.00", "nan", "0.00"})
    CHECK(svg.says(text));
  std::vector<Element> bars;
  for (const auto& e : svg.named("rect"))
    if (e.attributes.at("class") == "c0 fill") bars.push_back(e);
  const double up = bars.at(0).number("height"), down = bars.at(1).number("height");
  CHECK(std::abs(up - 2 * down) < 0.03);
  CHECK(std::abs(bars[0].number("y") + up - bars[1].number("y")) < 0.02);  // both from the line at 0
  for (const auto& y : {std::vector<double>{}, {0}, {-5}, {inf}, {most}, {-most}, {5e-324}, {most, -most}})
    checked(bars_svg(std::vector<std::string>(y.size(), "x"), {{.y = y}}));
  checked(bars_svg({"a"}, {}));
  CHECK(message<ValueError>([] {
          bars_svg({"a"}, {{.name = "n", .y = {1, 2}}});
        }) == "bars_svg: \"n\" has 2 values for 1 names"sv);
  CHECK(message<ValueError>([] { bars_svg({}, {}, {.y_scale = Scale::log10}); }) ==
        "bars_svg: bars start at 0, which no logarithmic axis has; use plot_svg and points"sv);
}

TEST_CASE("plot: the same text where a value differs in its last bit") {
  const auto draw = [](double v) {
    return heatmap_svg(row({v, 0, 2 * v})) + plot_svg({line({0, v, 1}, {0, v, 1})});
  };
  CHECK(draw(0.375) == draw(std::nextafter(0.375, 0)));  // half-way between 0.37 and 0.38
}

TEST_CASE("plot: the same text whatever the locale") {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
    char do_thousands_sep() const override { return '.'; }
  };
  const auto draw = [] {
    return heatmap_svg(row({0.5, 1234.5})) + plot_svg({line({0, 1}, {0.5, 99999})}) +
           heatmap_text(row({1234.5}), {}, Colour::never);
  };
  const std::string before = draw();
  const std::locale old = std::locale::global(std::locale(std::locale(), new Comma));
  const std::string after = draw();
  std::locale::global(old);
  CHECK(before == after);
}

TEST_CASE("plot: save_svg writes all of a file or leaves the old one") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("tapehead-plot-" + std::to_string(std::rand()));
  fs::create_directory(folder);
  const auto content = [](const fs::path& p) {
    std::ifstream in(p);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const auto files = [&] { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); };
  const std::string path = (folder / "a.svg").string();
  save_svg(path, "first, and longer");
  save_svg(path, "second");
  CHECK(content(path) == "second"sv);
  CHECK(files() == 1);
  const std::string missing = (folder / "no" / "a.svg").string();
  CHECK(message<FileError>([&] { save_svg(missing, "x"); }) ==
        "save_svg: " + missing + " cannot be written: No such file or directory; make its folder first");
  fs::create_directory(folder / "taken.svg");
  CHECK(message<FileError>([&] {
          save_svg((folder / "taken.svg").string(), "x");
        }).find("cannot be written: ") != std::string::npos);
  CHECK(files() == 2);
  fs::remove_all(folder);
}
