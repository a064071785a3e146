#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "figures/svg.hpp"
#include "tapehead/figures/plot.hpp"
#include "tapehead/ops/select.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace testing;

namespace {

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

}  // namespace

TEST_CASE("plot: a heat map has its labels, numbers, scale and words") {
  const Tensor<double> A{{1, 0}, {0.25, 0.75}};
  const Svg svg = checked(heatmap_svg(A, {.title = "Weights",
                                          .row_axis = "query",
                                          .column_axis = "key",
                                          .row_labels = {"the", "cat"},
                                          .column_labels = {"der", "Kater"}}));
  CHECK(svg.texts() == std::vector<std::string>{"Weights", "the", "cat", "der", "Kater", "key", "query", "1.00", "0",
                                                "0.25", "0.75", "0", "0.2", "0.4", "0.6", "0.8", "1"});
  CHECK(svg.elements.at(1).text == "Weights"sv);
  CHECK(svg.elements.at(2).text == "2 by 2 matrix; values from 0 to 1"sv);
  CHECK(checked(heatmap_svg(A, {.description = "Row 2 blends"})).elements.at(2).text == "Row 2 blends"sv);
}

TEST_CASE("plot: a heat map's numbers have one format, and only 0 is shown as 0") {
  const auto cells = [](const std::vector<double>& values) {
    const auto texts = checked(heatmap_svg(row(values))).texts();
    return std::vector<std::string>(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(values.size()));
  };
  using Texts = std::vector<std::string>;
  CHECK(cells({0.5, -2, 1e-9, -0.001, 0, -0.0, 0.005}) == Texts{"0.50", "-2.00", "0.00", "-0.00", "0", "0", "0.01"});
  CHECK(cells({NaN, -NaN, inf, -inf, 1}) == Texts{"nan", "nan", "inf", "-inf", "1.00"});
  CHECK(cells({1e-9, -0.001, 0}) == Texts{"1.0e-09", "-1.0e-03", "0"});
  CHECK(cells({123456, -0.5, 0}) == Texts{"1.2e+05", "-5.0e-01", "0"});
  CHECK(checked(heatmap_svg(row({0.126}), {.precision = 3})).says("0.126"));
  CHECK(checked(heatmap_svg(Tensor<std::int64_t>{{123456789}})).says("123456789"));
  CHECK(!checked(heatmap_svg(row({0.5}), {.numbers = false})).says("0.50"));
  CHECK(!checked(heatmap_svg(full<float>({25, 1}, 0.5f))).says("0.50"));
}

TEST_CASE("plot: an axis that has a name and no labels is numbered") {
  const auto texts = [](std::int64_t rows, const HeatmapOptions& o) {
    return checked(heatmap_svg(tril(ones<bool>({rows, 3})), o)).texts();
  };
  CHECK(texts(2, {.row_axis = "query", .column_axis = "key"}) ==
        std::vector<std::string>{"0", "1", "0", "1", "2", "key", "query", "may attend", "hidden"});
  CHECK(texts(2, {.row_axis = "query", .row_labels = {"a", "b"}}) ==
        std::vector<std::string>{"a", "b", "query", "may attend", "hidden"});
  CHECK(texts(2, {}) == std::vector<std::string>{"may attend", "hidden"});
  const Svg many = checked(heatmap_svg(tril(ones<bool>({100, 100})), {.row_axis = "query", .column_axis = "key"}));
  for (const auto& e : many.named("text"))
    if (e.text == "90") CHECK(e.attributes.count("transform") == 0);
  for (const char* text : {"0", "10", "90"}) CHECK(many.says(text));
  CHECK(!many.says("5"));
}

TEST_CASE("plot: values of both signs have colours that are white at 0 and as dark on either side") {
  const auto colours = cell_colours(checked(heatmap_svg(row({-2, -1, 0, 1, 2}))), 5);
  CHECK(colours[2] == std::vector<double>{245 / 255.0, 245 / 255.0, 245 / 255.0});
  for (const std::size_t i : {0u, 1u}) CHECK(std::abs(luminance(colours[i]) - luminance(colours[4 - i])) < 0.04);
  CHECK(colours[0][2] > colours[0][0]);  // blue below
  CHECK(colours[4][0] > colours[4][2]);  // orange above
  // Symmetric, whatever the ends are: -1 has half of the colour of -2.
  CHECK(cell_colours(checked(heatmap_svg(row({-1, 2}))), 2) == std::vector{colours[1], colours[4]});
  CHECK(cell_colours(checked(heatmap_svg(row({0}), {.low = -1, .high = 4})), 1)[0] == colours[2]);
  CHECK(cell_colours(checked(heatmap_svg(row({0, 1}))), 2)[0] != colours[2]);
}

TEST_CASE("plot: the colour scale rises evenly in lightness, and the numbers can be read on it") {
  std::vector<double> ramp;
  for (int i = 0; i < 24; ++i) ramp.push_back(i);
  const Svg svg = checked(heatmap_svg(row(ramp)));
  const auto colours = cell_colours(svg, ramp.size());
  const auto lightness = [&](std::size_t i) { return 116 * std::cbrt(luminance(colours.at(i))) - 16; };  // CIE L*
  std::vector<Tag> numbers;
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
  for (const auto& x :
       {scalar(3.0), Tensor<double>{1, 2, 3}, Tensor<double>(), zeros<double>({0, 3}), zeros<double>({3, 0}),
        full<double>({2, 3}, -0.25), zeros<double>({256, 256}), zeros<double>({1, 500}), row({most, -most, 0}),
        row({5e-324, 0}), row({NaN}), row({inf, -inf}), row({1e300, 1e300 * (1 + 1e-15)}), row({-1, 1e-320})}) {
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
        }) == "heatmap_text: shape (257, 256) has more cells than a figure shows, 65536; draw a slice of it"sv);
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
  for (const char* broken :
       {"\xE2\x86", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80", "\xEF\xBF\xBF", "\xC2\x85", "\xFF"}) {
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
        "the   1.00       0\n"
        "  →   0.25     nan\n"sv);
  const std::string coloured = heatmap_text(Tensor<double>{{0, 1, NaN}}, {}, Colour::always);
  CHECK(coloured ==
        "\x1b[48;2;40;28;76m\x1b[38;2;255;255;255m    0 \x1b[0m"
        "\x1b[48;2;255;241;155m\x1b[38;2;0;0;0m 1.00 \x1b[0m"
        "\x1b[48;2;128;128;128m\x1b[38;2;0;0;0m  nan \x1b[0m\n"sv);
  setenv("NO_COLOR", "1", 1);
  CHECK(heatmap_text(A, o) == heatmap_text(A, o, Colour::never));
  unsetenv("NO_COLOR");
  CHECK(heatmap_text(Tensor<bool>{{true, false}}, {.row_axis = "query", .column_axis = "key"}, Colour::never) ==
        "rows: query\ncolumns: key\n 1  0\n"sv);
  CHECK(heatmap_text(Tensor<std::int64_t>{12, -3}, {}, Colour::never) == " 12  -3\n"sv);
  CHECK(heatmap_text(zeros<float>({2, 0}), {}, Colour::never) == "\n\n[]\n"sv);
}

TEST_CASE("plot: without numbers a matrix in the terminal has cells of one character") {
  const HeatmapOptions no{.numbers = false};
  const Tensor<double> A{{0, 0.25, 0.5}, {0.75, 1, NaN}};
  CHECK(heatmap_text(A, no, Colour::never) == " ░▒\n▓█?\n"sv);
  CHECK(heatmap_text(Tensor<double>{{0, 1, NaN}}, no, Colour::always) ==
        "\x1b[48;2;40;28;76m\x1b[38;2;255;255;255m \x1b[0m"
        "\x1b[48;2;255;241;155m\x1b[38;2;0;0;0m \x1b[0m"
        "\x1b[48;2;128;128;128m\x1b[38;2;0;0;0m?\x1b[0m\n"sv);
  CHECK(heatmap_text(tril(ones<bool>({3, 3})), no, Colour::never) == "█  \n██ \n███\n"sv);
  CHECK(heatmap_text(ones<bool>({1, 2}), no, Colour::never) == "██\n"sv);
  CHECK(heatmap_text(Tensor<std::int64_t>{-1, 3}, no, Colour::never) == "░█\n"sv);
  CHECK(heatmap_text(Tensor<double>{inf, -inf}, no, Colour::never) == "??\n"sv);
  CHECK(heatmap_text(full<float>({2, 2}, 7), no, Colour::never) == "▒▒\n▒▒\n"sv);
  CHECK(heatmap_text(zeros<float>({2, 0}), no, Colour::never) == "\n\n[]\n"sv);
  CHECK(heatmap_text(A, {.row_labels = {"the", "cat"}, .column_labels = {"a", "b", "c"}, .numbers = false},
                     Colour::never) == "    abc\nthe  ░▒\ncat ▓█?\n"sv);
  // Labels that are wider than a cell need their width.
  CHECK(heatmap_text(A, {.column_labels = {"a", "bc", "d"}, .numbers = false}, Colour::never) ==
        "  a  bc   d\n      ░   ▒\n  ▓   █   ?\n"sv);
  const std::string wide = heatmap_text(zeros<double>({2, 60}), no, Colour::never);
  CHECK(std::count_if(wide.begin(), wide.end(), [](char c) { return (c & 0xc0) != 0x80; }) == 2 * 61);
}

TEST_CASE("plot: every option of a heat map has an effect") {
  const Tensor<double> A{{0.125, 0.5}, {0.25, 1}};
  const HeatmapOptions plain{.row_labels = {"a", "b"}};
  const auto svg = [&](const HeatmapOptions& o) { return heatmap_svg(A, o); };
  const auto text = [&](const HeatmapOptions& o) { return heatmap_text(A, o, Colour::always); };
  const auto changes_both = [&](auto change) {
    HeatmapOptions o = plain;
    change(o);
    CHECK(svg(o) != svg(plain));
    CHECK(text(o) != text(plain));
  };
  changes_both([](auto& o) { o.title = "T"; });
  changes_both([](auto& o) { o.row_axis = "query"; });
  changes_both([](auto& o) { o.column_axis = "key"; });
  changes_both([](auto& o) { o.row_labels = {"a", "c"}; });
  changes_both([](auto& o) { o.column_labels = {"x", "y"}; });
  changes_both([](auto& o) { o.precision = 3; });
  changes_both([](auto& o) { o.low = -1; });
  changes_both([](auto& o) { o.high = 2; });
  changes_both([](auto& o) { o.numbers = false; });
  HeatmapOptions described = plain;
  described.description = "words";
  CHECK(svg(described) != svg(plain));  // a text alternative, which the terminal has no need of
  HeatmapOptions shades = plain;
  shades.numbers = false;
  HeatmapOptions lower = shades;
  lower.low = -1;
  CHECK(heatmap_text(A, shades, Colour::never) != heatmap_text(A, lower, Colour::never));
  CHECK(heatmap_text(A, plain, Colour::always) != heatmap_text(A, plain, Colour::never));
}

TEST_CASE("plot: an all-true mask in the terminal has the colour of true") {
  const std::string all = heatmap_text(ones<bool>({1, 1}), {}, Colour::always),
                    both = heatmap_text(Tensor<bool>{{true, false}}, {}, Colour::always);
  CHECK(both.find(all.substr(0, all.size() - 1)) == 0);
}
