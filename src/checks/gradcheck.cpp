#include "checks/gradcheck.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "checks/differences.hpp"
#include "kernels/require.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/random/random.hpp"

namespace tapehead {
namespace detail {
namespace {

// In ±[1, 1.5): no weight is so small that an error under it would be missed.
Tensor<double> random_weights(const Shape& shape, NumpyRandom& random) {
  const Tensor<double> u = random.rand(shape);
  return where(u < 0.5, u - 1.5, u + 0.5);
}

// The tape's gradients of Σ dy ⊙ f(x); zeros where f's result is not recorded.
Inputs gradients(const CheckedFunction& f, const Inputs& x, const Tensor<double>& dy) {
  Tape<double> tape;
  tape.watch(x);
  const Tensor<double> y = f(x);
  const auto grad = tape.knows(y) ? tape.backward(y, dy) : tape.backward(x[0], zeros_like(x[0]));
  Inputs dx;
  for (const auto& each : x) dx.push_back(grad[each]);
  return dx;
}

// "a[1, 2]", by the index in row-major order.
std::string place(const std::string& name, const Shape& shape, std::size_t flat) {
  Shape index = shape;
  auto rest = static_cast<std::int64_t>(flat);
  for (int axis = shape.rank() - 1; axis >= 0; rest /= shape[axis--]) index[axis] = rest % shape[axis];
  return shape.rank() == 0 ? name : fmt::format("{}[{}]", name, fmt::join(index, ", "));
}

// The check of the first or of the second derivatives: the tape's gradients `got` of Σ dy ⊙ f(x).
struct Check {
  const Measured& f;
  std::vector<std::string> names;
  Inputs got;
  Tensor<double> dy;
  int order;
  const GradcheckOptions& options;
  GradcheckReport& report;

  template <class... A> void fail(Format<A...> text, const A&... arguments) {
    report.message += (report.ok ? "gradcheck" : "\ngradcheck");
    report.message += (order == 1 ? ": " : ", second derivatives: ") + fmt::format(text, shown(arguments)...);
    report.ok = false;
  }
  // The derivatives of Σ weights ⊙ f(x) with respect to argument k.
  std::vector<Slope> slopes(std::size_t k, const Tensor<double>& weights) const {
    std::vector<Slope> all(static_cast<std::size_t>(got[k].numel()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = f.slope(k, i, weights);
    return all;
  }
  Tensor<double> expected(std::size_t k, const Tensor<double>& weights) const {
    Values values;
    for (const Slope& slope : slopes(k, weights)) values.push_back(slope.value);
    return from_vector(values, got[k].shape());
  }
  void all();
  double argument(std::size_t k);
  std::string cause(std::size_t k, double allowed) const;
};

void Check::all() {
  double largest = 0;
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::int64_t checked = report.checked, skipped = report.skipped;
    largest = std::max(largest, argument(k));
    if (report.ok && report.checked == checked && report.skipped > skipped)
      fail("{}: every element lies at a kink and was skipped; choose other inputs", names[k]);
  }
  if (report.ok && report.checked == 0) fail("nothing was checked: no input has an element");
  if (report.ok && order == 1 && largest == 0 && !options.may_be_zero)
    fail(
        "every difference is 0, and so is a gradient that was never recorded: choose a function "
        "or inputs for which f depends on its inputs, or set .may_be_zero");
}

// Checks each element of one argument, and returns its largest gradient.
double Check::argument(std::size_t k) {
  const Shape& shape = got[k].shape();
  const Values g = got[k].to_vector();
  const std::vector<Slope> e = slopes(k, dy);
  double largest = 0, most = 1;
  for (const Slope& s : e) largest = std::isfinite(s.value) ? std::max(largest, std::abs(s.value)) : largest;
  const double tolerance = order == 1 ? options.tolerance : options.tolerance2;
  const auto allowed = [&](double noise) { return tolerance * std::max(largest, 1e-3) + noise; };
  std::size_t wrong = 0, worst = 0;
  std::string why;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double error = std::abs(g[i] - e[i].value);
    const bool finite = std::isfinite(error);
    if (finite && e[i].noise > 1e-2 * largest + 1e-4) {  // such differences would agree with anything
      fail(
          "{}: differences with a step of {:.1e} have a rounding error of {:.1e}, too large to check "
          "a gradient of {:.1e}; take a larger step, or scale the inputs",
          names[k], f.step(k, i), e[i].noise, largest);
      return largest;
    }
    const double excess = finite ? error / allowed(e[i].noise) : std::numeric_limits<double>::infinity();
    if (finite && excess > 1 && f.kink(k, i, dy, error)) {
      report.skipped += options.skip_kinks;
      if (options.skip_kinks) continue;
      why = fmt::format(
          "f has a kink or a jump at {} (or bends too sharply for the step), where "
          "differences mean nothing: choose other inputs, or set .skip_kinks",
          place(names[k], shape, i));
    }
    ++report.checked;
    report.worst = std::max(report.worst, excess);
    wrong += excess > 1;
    if (excess > most) worst = i, most = excess;
  }
  if (wrong == 0) return largest;
  fail(
      "\"{}\", shape {}: {} of {} elements disagree; the worst is {}: the tape gives {:.10g}, "
      "central differences give {:.10g} (± {:.1e}), a ratio of {:.6g}",
      names[k], shape, wrong, g.size(), place(names[k], shape, worst), g[worst], e[worst].value,
      allowed(e[worst].noise), g[worst] / e[worst].value);
  if (why.empty()) why = cause(k, allowed(1e-9));
  if (!why.empty()) report.message += "\n  likely cause: " + why;
  return largest;
}

std::string Check::cause(std::size_t k, double allowed) const {
  if (order == 2)
    return "the first derivatives are right, so a pullback uses a float that the forward pass computed, "
           "which is a constant to the outer tape; compute it again from the inputs in recorded operations";
  Disagreement d{k, names, got, {}, expected(k, ones_like(dy)), dy.shape(), allowed};
  for (std::size_t j = 0; j < names.size(); ++j) d.expected.push_back(expected(j, dy));
  return likely_cause(d);
}

void check_options(std::size_t taken, std::size_t given, const GradcheckOptions& o) {
  require<ValueError>(taken == 0 || taken == given,
                      "gradcheck: f takes {} tensors and {} inputs are given; give one input for each (a function of a "
                      "std::vector<Tensor<double>> takes any number)",
                      taken, given);
  require<ValueError>(given > 0, "gradcheck: no inputs; give at least one tensor");
  require<ValueError>(o.order == 1 || o.order == 2, "gradcheck: order {}; it must be 1 or 2", o.order);
  require<ValueError>(o.points == 2 || o.points == 4, "gradcheck: {} points; the differences have 2 or 4", o.points);
  require<ValueError>(o.step >= 0 && o.tolerance > 0 && o.tolerance2 > 0,
                      "gradcheck: step {}, tolerances {} and {}; tolerances must be above 0, and the step not below",
                      o.step, o.tolerance, o.tolerance2);
}

// Σ v ⊙ (df/dx · dy) with fixed random v: a function of x and dy, whose gradients are the second derivatives.
void second_order(const CheckedFunction& f, const Check& first, NumpyRandom& random) {
  Inputs v, x_dy = first.f.x;
  for (const auto& each : x_dy) v.push_back(random_weights(each.shape(), random));
  x_dy.push_back(first.dy);
  std::vector<std::string> names = first.names;
  names.push_back("dy");
  const auto weighted = [&f, &v](const Inputs& at) {
    const Inputs dx = gradients(f, Inputs(at.begin(), at.end() - 1), at.back());
    Tensor<double> total = scalar(0.0);
    for (std::size_t i = 0; i < dx.size(); ++i) total = total + sum(dx[i] * v[i]);
    return total;
  };
  const CheckedFunction slopes = checked(weighted, std::index_sequence<>());
  const Tensor<double> one = scalar(1.0);
  const Measured second{slopes, x_dy, first.options};
  Check{second, names, gradients(slopes, x_dy, one), one, 2, first.options, first.report}.all();
}

}  // namespace

GradcheckReport gradcheck(const CheckedFunction& f, std::size_t taken, const std::vector<Named<double>>& inputs,
                          const GradcheckOptions& o) {
  check_options(taken, inputs.size(), o);
  NumpyRandom random(1);
  GradcheckReport report;
  Inputs x;
  std::vector<std::string> names;
  std::string listed;
  for (const auto& input : inputs) {
    x.push_back(from_vector(input.tensor.to_vector(), input.tensor.shape()));
    names.push_back(input.name.empty() ? fmt::format("argument {}", names.size()) : input.name);
    listed += (listed.empty() ? "" : ", ") + names.back();
  }
  const Measured measured{f, x, o};
  const Tensor<double> y = f(x), dy = random_weights(y.shape(), random);
  Check first{measured, names, {}, dy, 1, o, report};
  try {
    if (y.numel() == 0)
      first.fail("nothing was checked: the result of shape {} has no elements", y.shape());
    else
      first.got = gradients(f, x, dy), first.all();
    if (report.ok && o.order == 2) second_order(f, first, random);
  } catch (const GradientError& error) {
    report.ok = false;
    report.message = fmt::format("gradcheck: the tape cannot differentiate this: {}", error.what());
  }
  if (report.ok)
    report.message = fmt::format("gradcheck: {} elements of {} agree{}, the worst at {:.2g} of what is allowed{}",
                                 report.checked, listed, o.order == 2 ? " to second order" : "", report.worst,
                                 report.skipped > 0 ? fmt::format("; {} at kinks skipped", report.skipped) : "");
  return report;
}

}  // namespace detail
}  // namespace tapehead
