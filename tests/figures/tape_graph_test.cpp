#include "tapehead/figures/tape_graph.hpp"

#include "figures/svg.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/reduce.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace testing;

TEST_CASE("tape_graph: for Graphviz and for Mermaid") {
  Tensor<float> a{1, 2}, b{3, 4};
  Tape<float> tape;
  tape.watch({{"a", a}, {"the \"b\"", b}});
  auto c = a * b;
  tape.watch({{"c", c}});
  sum(c + a);
  CHECK(tape.dot() ==
        "digraph tape {\n"
        "  node [shape=box, fontname=\"monospace\"];\n"
        "  n0 [label=\"a\\n(2,)\", style=rounded];\n"
        "  n1 [label=\"the \\\"b\\\"\\n(2,)\", style=rounded];\n"
        "  n2 [label=\"c = mul\\n(2,)\"];\n"
        "  n0 -> n2;\n"
        "  n1 -> n2;\n"
        "  n3 [label=\"add\\n(2,)\"];\n"
        "  n2 -> n3;\n"
        "  n0 -> n3;\n"
        "  n4 [label=\"sum\\n()\"];\n"
        "  n3 -> n4;\n"
        "}\n"sv);
  CHECK(tape.mermaid() ==
        "flowchart TD\n"
        "  n0([\"a<br>(2,)\"])\n"
        "  n1([\"the #quot;b#quot;<br>(2,)\"])\n"
        "  n2[\"c = mul<br>(2,)\"]\n"
        "  n0 --> n2\n"
        "  n1 --> n2\n"
        "  n3[\"add<br>(2,)\"]\n"
        "  n2 --> n3\n"
        "  n0 --> n3\n"
        "  n4[\"sum<br>()\"]\n"
        "  n3 --> n4\n"sv);
}

TEST_CASE("tape_graph: as a picture") {
  Tensor<float> a{1, 2}, b{3, 4}, late{5, 6};
  Tape<float> tape;
  tape.watch({{"a", a}, {"b < 1", b}, {"late", late}});
  auto c = a * b;
  tape.watch({{"c", c}});
  sum(c + late);
  const std::string svg = tape_svg(tape, "Title", "what it shows");
  CHECK(has(svg, "<title>Title</title>\n<desc>what it shows</desc>"));
  CHECK(has(svg, ">b &lt; 1</text>"));
  CHECK(has(svg, ">c = mul</text>"));
  const auto count = [&svg](const std::string& part) {
    int n = 0;
    for (std::size_t at = 0; (at = svg.find(part, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  CHECK(count("class='c1 area'") == 3);  // watched
  CHECK(count("class='c0 area'") == 3);  // mul, add, sum
  CHECK(count("<polyline ") == 5);
  // Rows are 70 apart: a and b, then c with `late` beside it, which waits for its use, then add and sum.
  for (const char* baseline : {"y='62'", "y='132'", "y='202'", "y='272'"}) CHECK(has(svg, baseline));
  const auto row_of = [&svg](const std::string& text) {
    const auto end = svg.find(">" + text + "</text>"), begin = svg.rfind("y='", end) + 3;
    return svg.substr(begin, svg.find('\'', begin) - begin);
  };
  CHECK(row_of("a") == "62"sv);
  CHECK(row_of("late") == "132"sv);
  CHECK(row_of("c = mul") == "132"sv);
  CHECK(row_of("sum") == "272"sv);

  // A way past a row goes around its boxes: x is used by exp, and again one row below.
  {
    const Tensor<float> x{1, 2};
    Tape<float> skips;
    skips.watch({{"x", x}});
    x / exp(x);
    const std::string around = tape_svg(skips);
    CHECK(has(around, "'52,58 52,90'"));                // x to exp
    CHECK(has(around, "'52,128 52,160'"));              // exp to div
    CHECK(has(around, "'52,58 94,90 94,128 52,160'"));  // x to div, on the right of exp, which ends at 84
  }
  CHECK(has(tape_svg(Tape<double>()), "<desc>a tape of 0 records</desc>"));
  Tensor<float> y = a;
  for (int i = 0; i < 251; ++i) y = -y;
  CHECK(message<ValueError>([&] { tape_svg(tape); }).find("tape_svg: 257 records; at most 256") == 0);
}

TEST_CASE("tape_graph: the title and the description have an effect") {
  const Tape<double> tape;
  const Svg plain = checked(tape_svg(tape)), titled = checked(tape_svg(tape, "A tape")),
            described = checked(tape_svg(tape, "", "An empty tape"));
  CHECK(titled.says("A tape"));
  CHECK_FALSE(plain.says("A tape"));
  CHECK(plain.elements.at(2).text == "a tape of 0 records"sv);
  CHECK(described.elements.at(2).text == "An empty tape"sv);
}
