#include <cmath>
#include <utility>

#include "checks/gradcheck.hpp"
#include "kernels/require.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/views.hpp"

// Each usual mistake is made on purpose with the right gradient, and the result is compared with the tape's
// gradient, in all elements.

namespace tapehead::detail {
namespace {

// The size that a wrong factor n may come from; "" where there is none.
std::string size_named(double n, const Shape& in, const Shape& out) {
  const auto is = [n](std::int64_t size) { return size > 1 && std::abs(n - static_cast<double>(size)) < 1e-4 * n; };
  for (const auto& [whose, shape] : {std::pair{"its", in}, std::pair{"the result's", out}}) {
    if (is(shape.numel())) return fmt::format("{} number of elements", whose);
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (is(shape[axis])) return fmt::format("{} size along axis {}", whose, axis);
  }
  return "";
}

// Where got = r expected in all elements: a sign, a forgotten 2, 1/n or 1/√d.
std::string factor(double r, const Shape& in, const Shape& out) {
  if (std::abs(r + 1) < 1e-4) return "every element has the wrong sign";
  const double n = std::abs(r) > 1 ? std::abs(r) : 1 / std::abs(r);
  std::string size = size_named(n, in, out);
  if (const std::string square = size_named(n * n, in, out); size.empty() && !square.empty())
    size = fmt::format("the square root of {:.6g}, {}", n * n, square);
  const bool inverse = std::abs(r) < 1 && (!size.empty() || std::abs(n - std::round(n)) < 1e-4);
  const std::string value = inverse ? fmt::format("{}1/{:.6g}", r < 0 ? "-" : "", n) : fmt::format("{:.6g}", r);
  return fmt::format("every element is {} times the right value{}", value,
                     size.empty() ? "" : fmt::format("; {:.6g} is {}", n, size));
}

}  // namespace

std::string likely_cause(const Disagreement& d) {
  const Tensor<double>&got = d.got[d.argument], &expected = d.expected[d.argument];
  const auto is = [&](const Tensor<double>& mistaken) { return allclose(got, mistaken, 0, 2 * d.allowed); };
  if (!std::isfinite(sum(abs(got)).item()))
    return "the tape's gradient is NaN or infinite: a pullback multiplies 0 by infinity, or divides by 0";
  if (!std::isfinite(sum(abs(expected)).item()))
    return "the differences are NaN or infinite: f is NaN or infinite within a step of its inputs";
  if (equal(got, zeros_like(got)))
    return "the gradient is zero: the path from this input to the result was not recorded (raw elements, "
           "detach(), or a constant made of them)";
  const double r = sum(got * expected).item() / sum(expected * expected).item();
  if (got.numel() > 1 && std::isfinite(r) && is(expected * r)) return factor(r, got.shape(), d.output);
  for (int i = 0; i < got.rank(); ++i)
    for (int j = i + 1; j < got.rank(); ++j)
      if (got.shape()[i] == got.shape()[j] && is(transpose(expected, i, j)))
        return fmt::format("it is transposed: axes {} and {} are swapped", i, j);
  for (std::size_t j = 0; j < d.expected.size(); ++j)
    if (j != d.argument && d.expected[j].shape() == got.shape() && is(d.expected[j]))
      return fmt::format("it is the gradient of \"{}\"", d.names[j]);
  return is(d.without_dy) ? "the pullback ignores dy, the upstream gradient" : "";
}

}  // namespace tapehead::detail
