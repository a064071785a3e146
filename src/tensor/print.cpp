#include "tapehead/tensor/print.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/require.hpp"

namespace tapehead {

namespace {

// ---- one number ----------------------------------------------------------------------------------------

// A finite number in decimal, in pieces: -1.25e-03 is "-1", "25", "-03". No exponent in positional notation.
struct Decimal {
  std::string whole, fraction, exponent;
};

// Takes apart what fmt wrote, which knows the shortest digits and rounds the exact value, in any locale.
Decimal split(const std::string& text) {
  const std::size_t e = std::min(text.find('e'), text.size());
  const std::size_t point = std::min(text.find('.'), e);
  Decimal d{text.substr(0, point), "", ""};
  if (point < e) d.fraction = text.substr(point + 1, e - point - 1);
  if (e < text.size()) d.exponent = text.substr(e + 1);
  return d;
}

Decimal assemble(bool negative, const std::string& digits, int exponent, bool scientific) {
  const auto zeros = [](int n) { return std::string(static_cast<std::size_t>(std::max(n, 0)), '0'); };
  Decimal d{negative ? "-" : "", "", ""};
  const int whole = scientific ? 1 : exponent + 1;  // digits before the point
  const auto n = static_cast<int>(digits.size());
  d.whole += whole <= 0 ? "0" : digits.substr(0, static_cast<std::size_t>(whole)) + zeros(whole - n);
  d.fraction = whole < n ? zeros(-whole) + digits.substr(static_cast<std::size_t>(std::max(whole, 0))) : "";
  if (scientific) d.exponent = fmt::format("{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  return d;
}

// The fewest digits that no other double, or of a float (`single`) no other float, is nearer to.
Decimal shortest(double v, bool single, bool scientific) {
  const Decimal d = split(single ? fmt::format("{}", std::abs(static_cast<float>(v))) : fmt::format("{}", std::abs(v)));
  std::string digits = d.whole + d.fraction;
  auto exponent = static_cast<int>(d.whole.size()) - 1 + (d.exponent.empty() ? 0 : std::stoi(d.exponent));
  const std::size_t first = std::min(digits.find_first_not_of('0'), digits.size() - 1);
  exponent = digits[first] == '0' ? 0 : exponent - static_cast<int>(first);
  digits = digits.substr(first);
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  return assemble(std::signbit(v), digits, exponent, scientific);
}

// How many digits after the point: those of the shortest text, but at most `most`; with `equal`, just `most`.
// Where the shortest text has another number of them, the exact value is rounded; with `exact`, always.
struct Digits {
  int most;
  bool equal, exact;
};

Decimal write(double v, bool single, bool scientific, const Digits& digits) {
  Decimal d = shortest(v, single, scientific);
  const auto n = static_cast<int>(d.fraction.size());
  if (!digits.exact && (n == digits.most || (n < digits.most && !digits.equal))) return d;
  d = split(scientific ? fmt::format("{:.{}e}", v, digits.most) : fmt::format("{:.{}f}", v, digits.most));
  if (!digits.equal) d.fraction.resize(d.fraction.find_last_not_of('0') + 1);
  return d;
}

// ---- a column: what its cells have in common -----------------------------------------------------------

class RealCells {
 public:
  RealCells(const std::vector<double>& shown, bool single, const PrintOptions& options) : single_(single) {
    const int precision = options.precision < 0 ? 8 : options.precision;
    digits_ = {precision, options.equal_digits, options.equal_digits};
    scientific_ = options.notation == Notation::scientific ||
                  (options.notation == Notation::automatic && spread(shown, options.suppress_small));
    std::size_t fraction = 0, finite = 0;
    for (const double v : shown) {
      if (!std::isfinite(v)) continue;
      ++finite;
      const Decimal d = write(v, single_, scientific_, digits_);
      left_ = std::max(left_, d.whole.size());
      fraction = std::max(fraction, d.fraction.size());
      exponent_ = std::max(exponent_, d.exponent.size());
    }
    if (scientific_) digits_ = {static_cast<int>(fraction), true, options.equal_digits};
    right_ = fraction + (scientific_ && finite > 0 ? exponent_ + 1 : 0);
    left_ = std::max(
        left_, static_cast<std::size_t>(options.width) - std::min(static_cast<std::size_t>(options.width), right_ + 1));
    for (const double v : shown)
      if (!std::isfinite(v)) left_ = std::max(left_, other(v).size() - std::min(other(v).size(), right_ + 1));
  }

  std::string operator()(double v) const {
    if (!std::isfinite(v)) return fmt::format("{:>{}}", other(v), left_ + right_ + 1);
    Decimal d = write(v, single_, scientific_, digits_);
    std::string text = fmt::format("{:>{}}.{}", d.whole, left_, d.fraction);
    if (scientific_)  // "-05" in a column with an "+100" is "-005"
      text += "e" + d.exponent.substr(0, 1) + std::string(exponent_ - d.exponent.size(), '0') + d.exponent.substr(1);
    text.resize(left_ + 1 + right_, ' ');
    return text;
  }

 private:
  // In the elements' own type, whose limits and rounding NumPy's are.
  bool spread(const std::vector<double>& shown, bool suppress_small) const {
    double smallest = std::numeric_limits<double>::infinity(), largest = 0;
    for (const double v : shown)
      if (std::isfinite(v) && v != 0)
        smallest = std::min(smallest, std::abs(v)), largest = std::max(largest, std::abs(v));
    if (largest == 0) return false;
    if (largest >= (single_ ? 1e6 : 1e8)) return true;
    const double small = single_ ? 0.0001F : 0.0001;
    const double ratio = single_ ? static_cast<float>(largest) / static_cast<float>(smallest) : largest / smallest;
    return !suppress_small && (smallest < small || ratio > 1000);
  }
  static std::string other(double v) { return v != v ? "nan" : v < 0 ? "-inf" : "inf"; }

  bool single_;
  bool scientific_;
  Digits digits_;
  std::size_t left_ = 0, right_ = 0, exponent_ = 0;  // widths before and after the point, and of the exponent
};

// ---- the whole -----------------------------------------------------------------------------------------

// The elements by their offsets, whatever their type.
class Printer {
 public:
  using Cell = std::function<std::string(std::int64_t offset)>;

  Printer(const Shape& shape, const Strides& strides, const PrintOptions& options)
      : shape_(shape), strides_(strides), options_(options) {
    edge_ = shape.numel() > options.threshold ? options.edge_items : shape.numel();
  }

  std::string str(const Cell& cell) const {
    return shape_.rank() == 0 ? cell(0) : list(cell, 0, 0, " ", options_.line_width);
  }

 private:
  // One axis in brackets. `indent` is the spaces before its elements, `width` the length of a line.
  std::string list(const Cell& cell, int axis, std::int64_t offset, const std::string& indent,
                   std::int64_t width) const {
    const int below = shape_.rank() - axis - 1;
    std::string text, line = indent;
    const auto length = [](const std::string& s) { return static_cast<std::int64_t>(s.size()); };
    const auto add_word = [&](const std::string& word) {
      if (line != indent) line += ' ';
      if (length(line) + length(word) > width - 1 && line.size() > indent.size()) {
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        line = indent;
      }
      line += word;
    };
    const auto add_block = [&](const std::string& block) {
      if (!text.empty()) text += std::string(static_cast<std::size_t>(below), '\n');
      text += indent + block;
    };
    const std::int64_t n = shape_[axis];
    for (std::int64_t i = 0; i < n; ++i) {
      if (i == edge_ && n - edge_ > edge_) below == 0 ? add_word("...") : add_block("..."), i = n - edge_;
      const std::int64_t at = offset + i * strides_[axis];
      below == 0 ? add_word(cell(at)) : add_block(list(cell, axis + 1, at, indent + " ", width - 1));
    }
    if (below == 0) text += line;
    return "[" + text.substr(indent.size()) + "]";
  }

  const Shape& shape_;
  const Strides& strides_;
  const PrintOptions& options_;
  std::int64_t edge_;
};

// Of a tensor of rank 0: as NumPy writes a scalar, with every digit it has.
std::string scalar_text(double v, bool single) {
  if (!std::isfinite(v)) return fmt::format("{}", v != v ? std::abs(v) : v);
  const double size = std::abs(v);
  const bool scientific = size != 0 && (size >= (single ? 1e6 : 1e16) || size < 0.0001);
  const Decimal d = shortest(v, single, scientific);
  if (!scientific) return d.whole + "." + (d.fraction.empty() ? "0" : d.fraction);
  return d.whole + (d.fraction.empty() ? "" : "." + d.fraction) + "e" + d.exponent;
}

void check(const PrintOptions& options) {
  const auto within = [](bool in, const char* name, std::int64_t value, const char* range) {
    require<ValueError>(in, "to_string: {} is {}; it must be {}", name, value, range);
  };
  within(options.width >= 0 && options.width <= 1100, "width", options.width, "0 to 1100");
  within(options.precision >= -1 && options.precision <= 1100, "precision", options.precision,
         "0 to 1100, or -1 for NumPy's default");
  within(options.edge_items >= 1, "edge_items", options.edge_items, "at least 1");
  within(options.threshold >= 0, "threshold", options.threshold, "at least 0");
  within(options.line_width >= 1, "line_width", options.line_width, "at least 1");
}

}  // namespace

void detail::throw_bad_print_spec() {
  raise<ValueError>(
      "format: a tensor is printed by {{}}, {{:.3}} (at most three digits after the point), {{:.3f}} (exactly three), "
      "{{:8.3f}} (in eight characters or more) or {{:.3e}}, with at most 1100 digits");
}

template <class E> std::string to_string(const Tensor<E>& x, const PrintOptions& options) {
  check(options);
  if (x.numel() == 0) return "[]";
  const Printer printer(x.shape(), x.strides(), options);
  const E* p = x.data();
  const auto shown = [&](auto one) {  // as numbers of that type
    std::vector<decltype(one)> values;
    printer.str([&](std::int64_t offset) { return values.push_back(p[offset]), ""; });
    return values;
  };
  if constexpr (std::is_same_v<E, bool>) {
    const int width = std::max(options.width, x.rank() == 0 ? 0 : 5);
    return printer.str([&](std::int64_t offset) { return fmt::format("{:>{}}", p[offset] ? "True" : "False", width); });
  } else if constexpr (std::is_integral_v<E>) {
    auto width = static_cast<std::size_t>(options.width);
    for (const std::int64_t v : shown(std::int64_t{})) width = std::max(width, std::to_string(v).size());
    return printer.str([&](std::int64_t offset) { return fmt::format("{:>{}}", p[offset], width); });
  } else {
    constexpr bool single = std::is_same_v<E, float>;
    if (x.rank() == 0 && options.precision < 0 && options.notation == Notation::automatic)
      return fmt::format("{:>{}}", scalar_text(x.item(), single), options.width);
    const RealCells cells(shown(double{}), single, options);
    return printer.str([&](std::int64_t offset) { return cells(p[offset]); });
  }
}

#define TAPEHEAD_PRINT(E) template std::string to_string(const Tensor<E>&, const PrintOptions&);
TAPEHEAD_ELEMENTS(TAPEHEAD_PRINT)

}  // namespace tapehead
