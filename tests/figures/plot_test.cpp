#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <locale>
#include <string>
#include <vector>

#include "figures/svg.hpp"
#include "tapehead/figures/plot.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace testing;

namespace {

Series line(const std::vector<double>& x, const std::vector<double>& y, Style style = Style::line) {
  return {"a", x, y, style, {}};
}

}  // namespace

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
  CHECK(ticks(0.01, 1e6, Scale::log10) == Texts{"10⁻²", "10⁻¹", "10⁰", "10¹", "10²", "10³", "10⁴", "10⁵", "10⁶"});
  CHECK(ticks(0.01, 1e4, Scale::log10) == Texts{"0.01", "0.1", "1", "10", "100", "1000", "10000"});
  CHECK(ticks(1e-300, 1e300, Scale::log10) == Texts{"10⁻³⁰⁰", "10⁻²⁰⁰", "10⁻¹⁰⁰", "10⁰", "10¹⁰⁰", "10²⁰⁰", "10³⁰⁰"});
  CHECK(ticks(1, 1024, Scale::log2) == Texts{"1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024"});
  CHECK(ticks(2, 9, Scale::log10) == Texts{"2", "4", "6", "8"});  // no two powers: as on a linear axis
}

TEST_CASE("plot: what has no place is left out, and breaks the line") {
  CHECK(checked(plot_svg({line({0, 1, 2, 3, 4}, {1, 2, NaN, 2, 1})})).named("polyline").size() == 2);
  CHECK(checked(plot_svg({line({-1, 0, 1, 2}, {1, 1, 1, 1})}, {.x_scale = Scale::log10})).named("polyline").size() ==
        1);
  const Svg alone = checked(plot_svg({line({0, 1, 2}, {NaN, 2, inf})}));  // one point: a dot, or nobody would see it
  CHECK(alone.named("polyline").empty());
  CHECK(alone.named("circle").size() == 1);
  const Svg points =
      checked(plot_svg({{.x = {0, 1, NaN}, .y = {0, 1, 1}, .style = Style::points, .labels = {"v0", "v1", "v2"}}}));
  CHECK(points.named("circle").size() == 2);
  CHECK(points.says("v1"));
  CHECK(!points.says("v2"));
  for (const Scale scale : {Scale::linear, Scale::log10, Scale::log2})
    for (const Style style : {Style::line, Style::dashed, Style::points, Style::line_points, Style::polygon})
      for (const auto& s :
           {line({}, {}, style), line({1}, {1}, style), line({NaN}, {1}, style), line({-1, -2}, {-1, -2}, style),
            line({most, -most}, {most, -most}, style), line({5e-324, 0, 1}, {0, 5e-324, most}, style),
            line({5e-324, 0}, {0, 5e-324}, style), line({1e300, 1e300 * (1 + 1e-15)}, {1, 1}, style)})
        checked(plot_svg({s, s}, {.x_scale = scale, .y_scale = scale}));
  checked(plot_svg({}));
  checked(plot_svg(std::vector<Series>(9, line({1, 2}, {1, 2})), {.width = 200, .height = 200}));
  checked(plot_svg({{.name = std::string(80, 'w'), .x = {1}, .y = {1}}}, {.width = 200, .height = 200}));
  CHECK(message<ValueError>([] {
          plot_svg({line({1, 2}, {1})});
        }) == "plot_svg: \"a\" has 2 x, 1 y and 0 labels; there must be as many y as x, and as many labels or none"sv);
  CHECK(message<ValueError>([] { plot_svg({}, {.width = NaN}); }) ==
        "plot_svg: nan x 400 pixels; both must be 200 to 10000"sv);
}

TEST_CASE("plot: without x, the points are counted from 0") {
  const std::vector<double> losses{3, 1, 0.5};
  CHECK(plot_svg({{.name = "loss", .y = losses}}) == plot_svg({{.name = "loss", .x = {0, 1, 2}, .y = losses}}));
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
  CHECK(hull({0, 0.1, 0.2, 0.3}, {0, 0.3, 0.6, 0.9}) == Corners{{0, 0}, {0.3, 0.9}});  // on a line, but for rounding
  CHECK(hull({2, 2}, {3, 3}) == Corners{{2, 3}});
  CHECK(hull({}, {}).empty());
  CHECK(hull({0, NaN, 1, 0}, {0, 0, 0, 1}) == Corners{{0, 0}, {1, 0}, {0, 1}});
}

TEST_CASE("plot: points with labels keep away from the frame") {
  const auto gap = [](const std::vector<std::string>& labels) {
    const Svg svg = checked(plot_svg({{"p", {0, 1}, {1, 0}, Style::points, labels}}));
    double frame_top = 0, frame_height = 1, top = 1e9;
    for (const auto& e : svg.named("rect"))
      if (e.attributes.at("class") == "frame") frame_top = e.number("y"), frame_height = e.number("height");
    for (const auto& e : svg.named("circle"))
      if (e.number("cx") < 500) top = std::min(top, e.number("cy"));
    return (top - frame_top) / frame_height;
  };
  CHECK(gap({}) < 0.05);
  CHECK(gap({"a", "b"}) > 0.09);
}

TEST_CASE("plot: bars start at 0") {
  const Svg svg = checked(
      bars_svg({"value path", "query path"}, {{.name = "uniform", .y = {2, -1}}, {.name = "one-hot", .y = {NaN, 0}}}));
  for (const char* text : {"value path", "query path", "uniform", "one-hot", "2.00", "-1.00", "nan", "0"})
    CHECK(svg.says(text));
  std::vector<Tag> bars;
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
        "bars_svg: bars start at 0, which no logarithmic axis has, and have names along the x axis; use "
        "plot_svg and "
        "points"sv);
}

TEST_CASE("plot: the same text where a value differs in its last bit") {
  const auto draw = [](double v) {
    return heatmap_svg(Tensor<double>{{v, 0, 2 * v}}) + plot_svg({line({0, v, 1}, {0, v, 1})});
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
    return heatmap_svg(Tensor<double>{{0.5, 1234.5}}) + plot_svg({line({0, 1}, {0.5, 99999})}) +
           heatmap_text(Tensor<double>{{1234.5}}, {}, Colour::never);
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
        "save_svg: '" + missing + "': cannot be written: No such file or directory; make its folder first");
  fs::create_directory(folder / "taken.svg");
  CHECK(message<FileError>([&] { save_svg((folder / "taken.svg").string(), "x"); }).find("cannot be written: ") !=
        std::string::npos);
  CHECK(files() == 2);
  fs::remove_all(folder);
}

TEST_CASE("plot: every option of a plot and of bars has an effect, or is refused") {
  const std::vector<Series> series{line({1, 2}, {10, 20})}, bars{{.name = "a", .y = {1, 2}}};
  const std::vector<std::string> names{"x", "y"};
  const PlotOptions plain;
  const auto changes = [&](bool both, auto change) {
    PlotOptions o = plain;
    change(o);
    CHECK(plot_svg(series, o) != plot_svg(series, plain));
    if (both)
      CHECK(bars_svg(names, bars, o) != bars_svg(names, bars, plain));
    else
      CHECK_THROWS_AS(bars_svg(names, bars, o), ValueError);
  };
  changes(true, [](auto& o) { o.title = "T"; });
  changes(true, [](auto& o) { o.description = "words"; });
  changes(true, [](auto& o) { o.x_axis = "x"; });
  changes(true, [](auto& o) { o.y_axis = "y"; });
  changes(true, [](auto& o) { o.width = 300; });
  changes(true, [](auto& o) { o.height = 300; });
  for (const Scale scale : {Scale::log2, Scale::log10}) {
    changes(false, [&](auto& o) { o.x_scale = scale; });
    changes(false, [&](auto& o) { o.y_scale = scale; });
  }
  std::vector<std::string> drawn;
  for (const Style style : {Style::line, Style::dashed, Style::points, Style::line_points, Style::polygon})
    drawn.push_back(plot_svg({line({1, 2, 3}, {1, 3, 2}, style)}));
  for (std::size_t i = 0; i < drawn.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK(drawn[i] != drawn[j]);
  Series labelled = line({1, 2}, {10, 20});
  labelled.labels = {"v0", "v1"};
  CHECK(checked(plot_svg({labelled})).says("v1"));
  CHECK(message<ValueError>([&] {
          bars_svg(names, {{.name = "a", .y = {1, 2}, .labels = {"p", "q"}}});
        }) == "bars_svg: \"a\" has a style or labels, which bars do not show; use plot_svg"sv);
  CHECK_THROWS_AS(bars_svg(names, {{.y = {1, 2}, .style = Style::points}}), ValueError);
}

TEST_CASE("plot: the hull of lists of unequal length is refused") {
  CHECK(message<ValueError>([] {
          convex_hull({.x = {0, 1, 2}, .y = {0, 1}});
        }) == "convex_hull: 3 values of x and 2 of y; give as many"sv);
}
