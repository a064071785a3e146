#include "tapehead/tensor/print.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "tapehead/autograd/tape.hpp"
#include "tapehead/tensor/tensor.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double NaN = std::numeric_limits<double>::quiet_NaN();

// One case of golden/print.txt, in the script's words there.
struct Case {
  std::string head, dtype, text;
  Shape shape;
  std::vector<std::uint64_t> bits;
  PrintOptions options;
};

Case read_case(const std::string& head, std::istream& in) {
  Case c;
  c.head = head;
  c.dtype = head.substr(0, head.find(' '));
  const std::size_t open = head.find('('), close = head.find(')');
  std::vector<std::int64_t> sizes;
  std::string word, line;
  for (std::istringstream list(head.substr(open + 1, close - open - 1)); std::getline(list, word, ',');)
    if (word.find_first_not_of(' ') != std::string::npos) sizes.push_back(std::stoll(word));
  c.shape = Shape(sizes);
  for (std::istringstream words(head.substr(close + 1)); words >> word;) {
    const std::string name = word.substr(0, word.find('=')), value = word.substr(word.find('=') + 1);
    if (name == "precision")
      c.options.precision = std::stoi(value);
    else if (name == "floatmode")
      c.options.equal_digits = value == "fixed";
    else if (name == "suppress_small")
      c.options.suppress_small = value == "True";
    else if (name == "threshold")
      c.options.threshold = std::stoll(value);
    else if (name == "edge_items")
      c.options.edge_items = std::stoll(value);
    else if (name == "line_width")
      c.options.line_width = std::stoll(value);
    else
      FAIL("print.txt: unknown option " << word);
  }
  std::getline(in, line);
  for (std::istringstream words(line); words >> word;) c.bits.push_back(std::stoull(word, nullptr, 16));
  while (std::getline(in, line)) {  // an array of rank 3 has empty lines inside: the last bracket ends it
    c.text += (c.text.empty() ? "" : "\n") + line;
    std::int64_t depth = 0;
    for (const char x : c.text) depth += x == '[' ? 1 : x == ']' ? -1 : 0;
    if (depth == 0) break;
  }
  std::getline(in, line);
  return c;
}

template <class E, class Bits> std::string print_case(const Case& c) {
  std::vector<E> values(static_cast<std::size_t>(c.shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = static_cast<Bits>(c.bits[i % c.bits.size()]);
    if constexpr (std::is_same_v<E, bool>)
      values[i] = bits != 0;
    else
      values[i] = std::bit_cast<E>(bits);
  }
  return to_string(from_vector(values, c.shape), c.options);
}

std::string print_case(const Case& c) {
  if (c.dtype == "float32") return print_case<float, std::uint32_t>(c);
  if (c.dtype == "float64") return print_case<double, std::uint64_t>(c);
  if (c.dtype == "int64") return print_case<std::int64_t, std::uint64_t>(c);
  return print_case<bool, std::uint8_t>(c);
}

}  // namespace

TEST_CASE("print: as NumPy prints, in every golden case") {
  std::ifstream file("tests/golden/print.txt");
  REQUIRE_MESSAGE(file, "tests/golden/print.txt is missing: run from the top folder");
  int cases = 0;
  for (std::string head; std::getline(file, head); ++cases) {
    const Case c = read_case(head, file);
    CHECK_MESSAGE(print_case(c) == c.text, c.head);
  }
  CHECK(cases > 800);
}

TEST_CASE("print: fmt's specifications") {
  const Tensor<double> x{{1, 0.5}, {1.0 / 3, -2}};
  CHECK(fmt::format("{}", x) == "[[ 1.          0.5       ]\n [ 0.33333333 -2.        ]]"sv);
  CHECK(fmt::format("{:.3}", x) == "[[ 1.     0.5  ]\n [ 0.333 -2.   ]]"sv);
  CHECK(fmt::format("{:.3f}", x) == "[[ 1.000  0.500]\n [ 0.333 -2.000]]"sv);
  CHECK(fmt::format("{:.1e}", x) == "[[ 1.0e+00  5.0e-01]\n [ 3.3e-01 -2.0e+00]]"sv);
  CHECK(fmt::format("{:f}", x) == "[[ 1.000000  0.500000]\n [ 0.333333 -2.000000]]"sv);
  CHECK(fmt::format("{} and {}", Tensor<bool>{true, false}, Tensor<std::int64_t>{10, -2}) ==
        "[ True False] and [10 -2]"sv);
  CHECK(fmt::format("{:.2f}", Tensor<double>{1e-9, 12345678901.0}) == "[          0.00 12345678901.00]"sv);
  CHECK(fmt::format("{:.2e}", Tensor<double>{NaN, inf}) == "[nan inf]"sv);
  CHECK(fmt::format("{:.3} {:.3f}", scalar(1.0 / 3), scalar(2.0)) == "0.333 2.000"sv);
  CHECK(fmt::format("{:8.3f}", scalar(2.0f)) == "   2.000"sv);
  CHECK(fmt::format("{:9.2f}", Tensor<double>{1, NaN}) == "[     1.00       nan]"sv);
  CHECK(fmt::format("{:10.1e}", scalar(-0.5)) == "  -5.0e-01"sv);
  CHECK(fmt::format("{:3.3f}", x) == fmt::format("{:.3f}", x));
  CHECK(fmt::format("{:6} {:6} {:6} {:6}|{:4}|{:7}", scalar(0.5), scalar(true), scalar<std::int64_t>(12), scalar(NaN),
                    Tensor<std::int64_t>{1, -2},
                    Tensor<bool>{true, false}) == "   0.5   True     12    nan|[   1   -2]|[   True   False]"sv);
  CHECK(fmt::format("{} {}", x.shape(), Shape{5}) == "(2, 2) (5,)"sv);
  for (const char* wrong : {"{:.}", "{:d}", "{:.3g}", "{:>9}", "{:08.3f}", "{:1101}", "{:.1101}", "{:.99999999999}"})
    CHECK(message<ValueError>([&] { (void)fmt::format(fmt::runtime(wrong), x); }) ==
          "format: a tensor is printed by {}, {:.3} (at most three digits after the point), {:.3f} (exactly three), "
          "{:8.3f} (in eight characters or more) or {:.3e}, with at most 1100 digits"sv);
}

TEST_CASE("print: signs, what is not finite, and nothing shown as 0 that is not 0") {
  CHECK(to_string(Tensor<double>{-0.0, 0, NaN, inf, -inf}) == "[ -0.   0.  nan  inf -inf]"sv);
  CHECK(to_string(Tensor<double>{1e28, 1e-28}) == "[1.e+28 1.e-28]"sv);
  CHECK(to_string(Tensor<double>{5e-324, 1e308, 0}) == "[5.e-324 1.e+308 0.e+000]"sv);
  CHECK(to_string(scalar(-0.0)) == "-0.0"sv);
  CHECK(to_string(scalar(-NaN)) == "nan"sv);
  CHECK(to_string(Tensor<float>()) == "[]"sv);
  CHECK(to_string(zeros<float>({2, 0})) == "[]"sv);
  // the kind: whatever stands beside it, a number that is not 0 shows a digit that is not
  for (int a = -323; a <= 308; a += 3)
    for (int b = -323; b <= 308; b += 31) {
      const std::string text = to_string(Tensor<double>{std::pow(10, a), -std::pow(10, b)});
      const std::string left = text.substr(0, text.rfind(' ')), right = text.substr(text.rfind(' '));
      CHECK(left.substr(0, left.find('e')).find_first_of("123456789") != std::string::npos);
      CHECK(right.substr(0, right.find('e')).find_first_of("123456789") != std::string::npos);
    }
}

TEST_CASE("print: views print as their copies do") {
  const auto x = arange<double>(24).reshape({2, 3, 4});
  for (const auto& view : {x.transpose(0, 2), x.slice(2, 0, 4, 2), x.select(1, 2), x.slice(0, 1, 2)})
    CHECK(to_string(view) == to_string(from_vector(view.to_vector(), view.shape())));
}

TEST_CASE("print: options out of range") {
  const Tensor<double> x{1};
  PrintOptions options;
  options.precision = -2;
  CHECK(message<ValueError>([&] { to_string(x, options); }) ==
        "to_string: precision is -2; it must be 0 to 1100, or -1 for NumPy's default"sv);
  options = {};
  options.width = -1;
  CHECK(message<ValueError>([&] { to_string(x, options); }) == "to_string: width is -1; it must be 0 to 1100"sv);
  options = {};
  options.edge_items = 0;
  CHECK(message<ValueError>([&] { to_string(x, options); }) == "to_string: edge_items is 0; it must be at least 1"sv);
  options = {};
  options.threshold = -1;
  CHECK(message<ValueError>([&] { to_string(x, options); }) == "to_string: threshold is -1; it must be at least 0"sv);
  options = {};
  options.line_width = 0;
  CHECK(message<ValueError>([&] { to_string(x, options); }) == "to_string: line_width is 0; it must be at least 1"sv);
}

TEST_CASE("print: printing nothing away") {
  CHECK(to_string(Tensor<double>{-0.0, 0, std::nan(""), inf, -inf}) == "[ -0.   0.  nan  inf -inf]"sv);
  CHECK(to_string(Tensor<double>{1e28, 1e-28}) == "[1.e+28 1.e-28]"sv);
  CHECK(to_string(scalar(2.5)) == "2.5"sv);
  CHECK(to_string(zeros<double>({0})) == "[]"sv);
  CHECK(to_string(zeros<double>({2, 0})) == "[]"sv);
}
