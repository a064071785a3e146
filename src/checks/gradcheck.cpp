#include "checks/gradcheck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "checks/differences.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {
namespace detail {
namespace {

// Uniform in ±[0.5, 1.5): no weight is so small that an error under it would be missed.
Tensor<double> random_weights(const Shape& shape, std::mt19937_64& random) {
  Buffer<double> w(shape);
  for (std::int64_t i = 0; i < w.numel(); ++i) {
    const std::uint64_t bits = random();
    w[i] = (0.5 + std::ldexp(static_cast<double>(bits >> 12), -52)) * (bits & 1 ? 1 : -1);
  }
  return w;
}

// The gradients of Σ dy ⊙ f(x) by the tape; zeros where f's result is not recorded.
Inputs gradients(const CheckedFunction& f, const Inputs& x, const Tensor<double>& dy) {
  Tape<double> tape;
  tape.watch(x);
  const Tensor<double> y = f(x);
  Inputs dx;
  if (!tape.knows(y)) {
    for (const auto& each : x) dx.push_back(zeros_like(each));
  } else {
    const auto grad = tape.backward(y, dy);
    for (const auto& each : x) dx.push_back(grad[each]);
  }
  return dx;
}

std::string place(const std::string& name, const Shape& shape, std::size_t flat) {
  if (shape.rank() == 0) return name;
  std::string text;
  auto rest = static_cast<std::int64_t>(flat);
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = std::to_string(rest % shape[axis]) + (text.empty() ? "" : ", ") + text;
    rest /= shape[axis];
  }
  return name + "[" + text + "]";
}

// One run of the check, of the first or of the second derivatives.
class Run {
 public:
  Run(const Measured& measured, std::vector<std::string> names, Inputs got, int order,
      const GradcheckOptions& o, std::mt19937_64& random, GradcheckReport& report)
      : m_(measured),
        names_(std::move(names)),
        got_(std::move(got)),
        order_(order),
        o_(o),
        random_(random),
        report_(report) {
    tolerance_ = order == 1 ? o.tolerance : o.tolerance2;
  }

  void all() {
    for (std::size_t k = 0; k < names_.size(); ++k) {
      const std::int64_t before = report_.checked, skipped = report_.skipped;
      o_.directions > 0 ? directions(k) : elements(k);
      if (report_.ok && report_.checked == before && report_.skipped > skipped)
        fail(
            fmt::format("{}: every element lies at a kink and was left out; choose other inputs", names_[k]));
    }
    if (report_.ok && report_.checked == 0) fail("nothing was checked: no input has an element");
    if (report_.ok && order_ == 1 && !moved_ && !o_.may_be_zero)
      fail(
          "every difference is 0: f does not depend on its inputs here, and a gradient that was never "
          "recorded would pass "
          "as well; choose another function or other inputs, or say .may_be_zero");
  }

 private:
  void fail(const std::string& text) {
    report_.message += (report_.ok ? "" : "\n") +
                       std::string(order_ == 1 ? "gradcheck: " : "gradcheck, second derivatives: ") + text;
    report_.ok = false;
  }

  double allowed(double largest, double noise) const { return tolerance_ * std::max(largest, 1e-3) + noise; }

  // Differences that rounding drowns would agree with anything.
  bool resolved(std::size_t k, double largest, const Slope& s) {
    if (s.noise <= 1e-2 * largest + 1e-4) return true;
    fail(
        fmt::format("{}: differences with a step of {:.1e} leave {:.1e} uncertain, too much to check a "
                    "gradient of {:.1e} by; "
                    "take a larger step, or scale the inputs",
                    names_[k], m_.step(), s.noise, largest));
    return false;
  }

  bool avoided(double x) const {
    return std::any_of(o_.avoid.begin(), o_.avoid.end(),
                       [&](double kink) { return std::abs(x - kink) <= 4 * m_.step() * Measured::unit(x); });
  }

  Values expected(std::size_t k, const Tensor<double>& weights, std::vector<Slope>* slopes = nullptr) const {
    const Values x = m_.x()[k].to_vector();
    Values e(x.size()), v(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      v[i] = Measured::unit(x[i]);
      Slope s = m_.slope(k, v, weights);
      s.value /= v[i], s.noise /= v[i];
      v[i] = 0;
      e[i] = s.value;
      if (slopes != nullptr) slopes->push_back(s);
    }
    return e;
  }

  void elements(std::size_t k) {
    std::vector<Slope> slopes;
    const Values x = m_.x()[k].to_vector(), g = got_[k].to_vector(), e = expected(k, m_.dy(), &slopes);
    double largest = 0;
    for (double value : e) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    moved_ |= largest > 0;
    std::size_t wrong = 0, worst = 0;
    double excess = 0;
    std::string kinks;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (avoided(x[i])) {
        ++report_.skipped;
        continue;
      }
      const double error = std::abs(g[i] - e[i]), share = error / allowed(largest, slopes[i].noise);
      if (!std::isfinite(error)) {
        ++report_.checked, ++wrong;
        if (std::isfinite(excess)) worst = i, excess = std::numeric_limits<double>::infinity();
        continue;
      }
      if (!resolved(k, largest, slopes[i])) return;
      if (share > 1) {
        Values v(x.size());
        v[i] = Measured::unit(x[i]);
        if (m_.kink(k, v, error * v[i])) {
          if (o_.skip_kinks) {
            ++report_.skipped;
            continue;
          }
          kinks = place(names_[k], m_.x()[k].shape(), i);
        }
        ++wrong;
        if (share > excess) worst = i, excess = share;
      }
      ++report_.checked;
      report_.worst = std::max(report_.worst, share);
    }
    if (wrong == 0) return;
    fail(fmt::format(
        "\"{}\", shape {}: {} of {} elements disagree; the worst is {}: the tape gives {:.10g}, expected "
        "{:.10g} (to {:.1e})",
        names_[k], got_[k].shape().str(), wrong, x.size(), place(names_[k], got_[k].shape(), worst), g[worst],
        e[worst], allowed(largest, slopes[worst].noise)));
    report_.message += "\n  likeliest cause: ";
    if (!kinks.empty())
      report_.message += fmt::format(
          "f has a kink or a jump at {} (or bends too sharply for the step), where a difference means "
          "nothing: "
          "name the value in .avoid, or set .skip_kinks",
          kinks);
    else
      report_.message += cause(k, e, largest);
  }

  std::string cause(std::size_t k, const Values& e, double largest) {
    const auto shaped = [&](const Values& values, std::size_t j) {
      return from_vector(values, m_.x()[j].shape());
    };
    Disagreement d{k, names_, got_, {}, m_.dy().shape(), order_, {}, {}};
    for (std::size_t j = 0; j < names_.size(); ++j)
      d.expected.push_back(shaped(j == k ? e : expected(j, m_.dy()), j));
    d.expected_from = [&, k](int axis, std::int64_t position) {
      const Tensor<double> only = slice(m_.dy(), axis, position, position + 1);
      return shaped(expected(k, unslice(only, m_.dy().shape(), axis, position)), k);
    };
    d.close = [bound = allowed(largest, 1e-9)](const Tensor<double>& a, const Tensor<double>& b) {
      return allclose(a, b, 0, 2 * bound);
    };
    return likeliest_cause(d);
  }

  // The slope along a direction of ±1 everywhere, beside the same of the tape's gradient.
  struct Compared {
    double got = 0, expected = 0, allowed = 0;
    double error() const { return std::abs(got - expected); }
  };
  Compared along(std::size_t k, const Values& v) {
    const Values g = got_[k].to_vector();
    Compared c;
    double squares = 0;
    for (std::size_t i = 0; i < v.size(); ++i) c.got += g[i] * v[i], squares += g[i] * v[i] * g[i] * v[i];
    const Slope s = m_.slope(k, v);
    c.expected = s.value;
    c.allowed = resolved(k, std::sqrt(squares), s) ? allowed(std::sqrt(squares), s.noise) : 0;
    return c;
  }

  void directions(std::size_t k) {
    const Values x = m_.x()[k].to_vector();
    if (x.empty()) return;
    for (int n = 0; n < o_.directions; ++n) {
      Values v(x.size());
      bool any = false;
      for (std::size_t i = 0; i < x.size(); ++i) {
        v[i] = avoided(x[i]) ? 0 : Measured::unit(x[i]) * (random_() & 1 ? 1 : -1);
        any |= v[i] != 0;
      }
      if (!any) {
        ++report_.skipped;
        continue;
      }
      const Compared c = along(k, v);
      if (c.allowed == 0) return;  // not resolved: said so
      moved_ |= c.expected != 0;
      if (std::isfinite(c.error()) && c.error() > c.allowed && o_.skip_kinks && m_.kink(k, v, c.error())) {
        ++report_.skipped;
        continue;
      }
      ++report_.checked;
      report_.worst = std::max(report_.worst, c.error() / c.allowed);
      if (!(c.error() <= c.allowed)) return narrow_down(k, std::move(v), n + 1);
    }
  }

  // Halves a direction that disagrees until one element is left.
  void narrow_down(std::size_t k, Values v, int number) {
    std::size_t first = 0, last = v.size();
    while (last - first > 1) {
      const std::size_t middle = first + (last - first) / 2;
      Values left = v, right = v;
      std::fill(left.begin() + static_cast<std::ptrdiff_t>(middle), left.end(), 0.0);
      std::fill(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(middle), 0.0);
      const bool go_left = !(along(k, left).error() <= along(k, right).error());
      (go_left ? last : first) = middle;
      v = go_left ? std::move(left) : std::move(right);
    }
    const Compared c = along(k, v);
    fail(
        fmt::format("\"{}\", shape {}: random direction {} disagrees; narrowed down to {}: the tape gives "
                    "{:.10g}, expected {:.10g} (to {:.1e})",
                    names_[k], got_[k].shape().str(), number, place(names_[k], got_[k].shape(), first),
                    c.got / v[first], c.expected / v[first], c.allowed / std::abs(v[first])));
    if (m_.kink(k, v, c.error())) {
      report_.message +=
          "\n  likeliest cause: f has a kink or a jump there: name the value in .avoid, or set .skip_kinks";
    } else if (v.size() <= 256) {
      const Values e = expected(k, m_.dy());
      double largest = 0;
      for (double value : e) largest = std::max(largest, std::abs(value));
      report_.message += "\n  likeliest cause: " + cause(k, e, largest);
    }
  }

  const Measured& m_;
  std::vector<std::string> names_;
  Inputs got_;
  int order_;
  const GradcheckOptions& o_;
  std::mt19937_64& random_;
  GradcheckReport& report_;
  double tolerance_;
  bool moved_ = false;
};

void check_options(const std::vector<Named<double>>& inputs, const GradcheckOptions& o) {
  if (inputs.empty()) throw ValueError("gradcheck: no inputs; give at least one tensor");
  if (o.order != 1 && o.order != 2)
    throw ValueError(fmt::format("gradcheck: order {}; it must be 1 or 2", o.order));
  if (o.points != 2 && o.points != 4)
    throw ValueError(fmt::format("gradcheck: {} points; the differences have 2 or 4", o.points));
  if (!(o.step >= 0) || o.directions < 0 || !(o.tolerance > 0) || !(o.tolerance2 > 0))
    throw ValueError(fmt::format(
        "gradcheck: step {}, {} directions, tolerances {} and {}; none may be negative, tolerances not 0",
        o.step, o.directions, o.tolerance, o.tolerance2));
}

// Σ v ⊙ (df/dx · dy) with fixed random v: a function of x and dy, whose gradients are the second derivatives.
void second_order(const CheckedFunction& f, const Measured& first, std::vector<std::string> names,
                  const GradcheckOptions& o, std::mt19937_64& random, GradcheckReport& report) {
  Inputs v, x_dy = first.x();
  for (const auto& each : first.x()) v.push_back(random_weights(each.shape(), random));
  x_dy.push_back(first.dy());
  names.push_back("dy");
  const auto weighted = [&f, &v](const Inputs& at) {
    const Inputs dx = gradients(f, Inputs(at.begin(), at.end() - 1), at.back());
    Tensor<double> total = scalar(0.0);
    for (std::size_t i = 0; i < dx.size(); ++i) total = total + sum(dx[i] * v[i]);
    return total;
  };
  const CheckedFunction slopes(weighted, std::index_sequence<>());
  const Tensor<double> one = scalar(1.0);
  const Measured second(slopes, x_dy, one, o);
  Run(second, names, gradients(slopes, x_dy, one), 2, o, random, report).all();
}

}  // namespace

void check_arity(std::size_t taken, std::size_t given) {
  if (taken != given)
    throw ValueError(fmt::format(
        "gradcheck: f takes {} tensors and {} inputs are given; they must be as many (a function of a "
        "std::vector<Tensor<double>> takes any number)",
        taken, given));
}

GradcheckReport gradcheck(const CheckedFunction& f, const std::vector<Named<double>>& inputs,
                          const GradcheckOptions& o) {
  check_options(inputs, o);
  std::mt19937_64 random(o.seed);
  GradcheckReport report;
  report.ok = true;
  Inputs x;
  std::vector<std::string> names;
  std::string listed;
  for (const auto& input : inputs) {
    x.push_back(from_vector(input.tensor.to_vector(), input.tensor.shape()));
    names.push_back(input.name.empty() ? fmt::format("argument {}", names.size()) : input.name);
    listed += (listed.empty() ? "" : ", ") + names.back();
  }
  const Tensor<double> y = f(x), dy = random_weights(y.shape(), random);
  if (y.numel() == 0) {
    report.ok = false;
    report.message = fmt::format("gradcheck: nothing was checked: the result of shape {} has no elements",
                                 y.shape().str());
    return report;
  }
  const Measured first(f, x, dy, o);
  try {
    Run(first, names, gradients(f, x, dy), 1, o, random, report).all();
    if (report.ok && o.order == 2) second_order(f, first, names, o, random, report);
  } catch (const GradientError& error) {
    report.ok = false;
    report.message = fmt::format("gradcheck: the tape cannot differentiate this: {}", error.what());
  }
  if (report.ok)
    report.message = fmt::format(
        "gradcheck: {} {} of {} agree{}, the worst at {:.2g} of what is allowed{}", report.checked,
        o.directions > 0 ? "directions" : "elements", listed, o.order == 2 ? " to second order" : "",
        report.worst, report.skipped > 0 ? fmt::format("; {} at kinks left out", report.skipped) : "");
  return report;
}

}  // namespace detail
}  // namespace tapehead
