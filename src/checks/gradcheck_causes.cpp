#include <fmt/format.h>

#include <cmath>

#include "checks/gradcheck.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/views.hpp"

// What a wrong gradient looks most like: each usual slip is made on purpose with the right gradient, and the
// result is compared with what the tape gave.

namespace tapehead::detail {
namespace {

bool all_zero(const Tensor<double>& x) { return equal(x, zeros_like(x)); }

// r where got = r expected everywhere, as far as the elements that are not small can tell; NaN where there is
// no such r.
double ratio(const Disagreement& d) {
  const Tensor<double>&got = d.got[d.argument], &expected = d.expected[d.argument];
  const double square = sum(expected * expected).item();
  const double r = sum(got * expected).item() / square;
  return square > 0 && d.close(got, expected * r) ? r : std::nan("");
}

// The numbers that a forgotten or needless division brings in, and where they come from.
std::string size_named(double n, const Disagreement& d) {
  const Shape &in = d.got[d.argument].shape(), &out = d.output;
  const auto is = [n](std::int64_t size) {
    return size > 1 && std::abs(n - static_cast<double>(size)) < 1e-4 * n;
  };
  if (is(in.numel())) return "the number of its elements";
  if (is(out.numel())) return "the number of elements of the result";
  for (int axis = 0; axis < in.rank(); ++axis)
    if (is(in[axis])) return fmt::format("its size along axis {}", axis);
  for (int axis = 0; axis < out.rank(); ++axis)
    if (is(out[axis])) return fmt::format("the result's size along axis {}", axis);
  if (in.numel() > 0 && is(out.numel() / in.numel())) return "how often each of its elements is used";
  return "";
}

std::string factor(double r, const Disagreement& d) {
  if (std::abs(r + 1) < 1e-4) return "the sign is wrong: it is the negative of the right gradient";
  const double n = std::abs(r) > 1 ? std::abs(r) : 1 / std::abs(r);
  const std::string size = size_named(n, d), sign = r < 0 ? ", and the sign is wrong" : "";
  if (std::abs(n - 2) < 1e-4)
    return fmt::format("a factor 2 is {}{}{}", std::abs(r) > 1 ? "too many" : "missing",
                       size.empty() ? "" : fmt::format(" (2 is also {})", size), sign);
  if (size.empty())
    return fmt::format("a constant factor: every element is {:.6g} times what it should be", r);
  if (std::abs(r) < 1)
    return fmt::format(
        "a factor 1/{0:.4g} too many, {0:.4g} being {1}: a mean is taken where a sum belongs{2}", n, size,
        sign);
  return fmt::format(
      "a factor {0:.4g} too many, {0:.4g} being {1}: the 1/n of a mean is missing, or copies are counted "
      "twice{2}",
      n, size, sign);
}

// The right gradient with its axes or positions in another order.
std::string misplaced(const Disagreement& d) {
  const Tensor<double>&got = d.got[d.argument], &expected = d.expected[d.argument];
  for (int i = 0; i < got.rank(); ++i)
    for (int j = i + 1; j < got.rank(); ++j)
      if (got.shape()[i] == got.shape()[j] && d.close(got, transpose(expected, i, j)))
        return fmt::format("it is transposed: axes {} and {} are swapped", i, j);
  for (int i = 0; i < got.rank(); ++i)
    if (d.close(got, flip(expected, i))) return fmt::format("it stands in reverse along axis {}", i);
  for (int i = 0; i < got.rank(); ++i) {
    const std::int64_t n = got.shape()[i];
    if (n > 2 && (d.close(slice(got, i, 1, n), slice(expected, i, 0, n - 1)) ||
                  d.close(slice(got, i, 0, n - 1), slice(expected, i, 1, n))))
      return fmt::format("it is shifted by one position along axis {}", i);
  }
  for (std::size_t j = 0; j < d.expected.size(); ++j)
    if (j != d.argument && d.expected[j].shape() == got.shape() && d.close(got, d.expected[j]))
      return fmt::format("it is the gradient of \"{}\"", d.names[j]);
  return "";
}

// Only part of what should be summed: the contributions of one position along an axis of the result.
std::string partial(const Disagreement& d) {
  const Tensor<double>& got = d.got[d.argument];
  if (got.numel() > 256) return "";
  for (int axis = 0; axis < d.output.rank(); ++axis) {
    const std::int64_t n = d.output[axis];
    if (n < 2) continue;
    for (std::int64_t position : {std::int64_t{0}, n - 1})
      if (d.close(got, d.expected_from(axis, position)))
        return fmt::format(
            "a sum is missing: only position {} along axis {} of the result counts (a broadcast input's "
            "gradient is summed "
            "over what it was broadcast along; repeated indices accumulate)",
            position, axis);
  }
  return "";
}

// got - expected the same all along an axis: a term that is summed over the axis is missing or too many.
std::string offset(const Disagreement& d) {
  const Tensor<double>& got = d.got[d.argument];
  const Tensor<double> excess = got - d.expected[d.argument];
  for (int axis = got.rank() - 1; axis >= 0; --axis)
    if (got.shape()[axis] > 1 && d.close(excess, broadcast_to(mean(excess, axis, true), got.shape())))
      return fmt::format(
          "it is off by the same amount all along axis {}: a term summed (or averaged) over that axis is "
          "missing or too many",
          axis);
  return "";
}

}  // namespace

std::string likeliest_cause(const Disagreement& d) {
  const Tensor<double>& got = d.got[d.argument];
  const bool finite = std::isfinite(sum(abs(got)).item());
  if (!finite || !std::isfinite(sum(abs(d.expected[d.argument])).item()))
    return finite ? "the differences are NaN or infinite: f is, somewhere within a step of its inputs"
                  : "the tape's gradient is NaN or infinite: 0 times infinity, or a division by 0, in a "
                    "pullback";
  if (all_zero(got))
    return d.order == 1 ? "the gradient is zero: the way from it to the result was never recorded (raw "
                          "elements, detach(), a constant made of it)"
                        : "the second derivative is zero: a pullback captures a float that the forward "
                          "computed, a constant to the outer "
                          "tape; recompute it from the inputs in recorded operations";
  if (const double r = ratio(d); std::isfinite(r)) return factor(r, d);
  for (const auto& guess : {misplaced(d), partial(d), offset(d)})
    if (!guess.empty()) return guess;
  return d.order == 1 ? "none of the usual slips (sign, factor, 1/n, transpose, order, a missing sum): the "
                        "formula itself, or one of its terms"
                      : "the first derivatives are right, so a pullback may capture a float that the forward "
                        "computed, a constant to the "
                        "outer tape; recompute it from the inputs in recorded operations";
}

}  // namespace tapehead::detail
