#include "checker.hpp"

#include <fmt/format.h>

#include <set>

namespace {
struct NotYet {};
}  // namespace
void todo() { throw NotYet(); }

namespace exercise {
namespace {

using Outcomes = std::vector<Outcome>;

std::string indent(const std::string& text, int by) {
  const std::string space(static_cast<std::size_t>(by), ' ');
  std::string out = space;
  for (const char c : text) c == '\n' ? out += c + space : out += c;
  return out;
}

std::string show(const std::string& name, const Part& p) {
  const bool both = !name.empty() && !p.name.empty() && p.name[0] != '[';
  const std::string label = name + (both ? "." : "") + p.name;
  const std::string text = p.text.empty() && p.value.rank() > 0 ? p.value.shape().str() + "\n" : p.text;
  const std::string values = p.text.empty() ? to_string(p.value, {.precision = 6}) : "";
  if (const auto line = text.find('\n'); line != std::string::npos)  // a shape, and the values below it
    return fmt::format("    {}{}{}\n{}\n", label, label.empty() ? "" : " ", text.substr(0, line),
                       indent(text.substr(line + 1) + values, 6));
  return fmt::format("    {}{}{}\n", label, label.empty() ? "" : " = ", text + values);
}

struct Allowed {
  double absolute, relative;
  bool operator()(double actual, double expected) const {
    if (std::isnan(actual) || std::isnan(expected)) return std::isnan(actual) && std::isnan(expected);
    return actual == expected || std::abs(actual - expected) <= absolute + relative * std::abs(expected);
  }
};

bool same(const T& actual, const T& expected, const Allowed& allowed, double factor = 1) {
  if (!(actual.shape() == expected.shape())) return false;
  const auto a = actual.to_vector(), b = expected.to_vector();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!allowed(a[i], factor * b[i])) return false;
  return true;
}
bool same(const Part& actual, const Part& expected, const Allowed& allowed) {
  return actual.text == expected.text && same(actual.value, expected.value, allowed);
}
// Two exceptions of one kind are the same, whatever their texts say.
bool same(const Outcome& actual, const Outcome& expected, const Allowed& allowed) {
  if (actual.error != expected.error || actual.parts.size() != expected.parts.size()) return false;
  for (std::size_t i = 0; i < actual.parts.size(); ++i)
    if (!same(actual.parts[i], expected.parts[i], allowed)) return false;
  return true;
}

// Whether two equal results say something about how they were computed: a NaN, a single word or an exception
// can have many causes.
bool telling(const Outcome& x) {
  bool numbers = false;
  for (const Part& p : x.parts) {
    for (const double v : p.value.to_vector())
      if (!std::isfinite(v))
        return false;
      else
        numbers |= v != 0;
    numbers |= p.text.find('\n') != std::string::npos;
  }
  return x.error.empty() && numbers;
}

// Where the first part that differs is furthest from the right result.
std::string difference(const Outcome& actual, const Outcome& expected, const Allowed& allowed) {
  for (std::size_t n = 0; n < std::min(actual.parts.size(), expected.parts.size()); ++n) {
    const Part &a = actual.parts[n], &b = expected.parts[n];
    if (same(a, b, allowed) || !b.text.empty()) continue;
    const std::string of = b.name.empty() ? "" : b.name + ": ";
    const Shape& shape = b.value.shape();
    if (!(a.value.shape() == shape))
      return fmt::format("  {}the shape is {}; it should be {}\n", of, a.value.shape().str(), shape.str());
    if (shape.rank() == 0) continue;
    const auto x = a.value.to_vector(), y = b.value.to_vector();
    std::size_t worst = 0;
    double most = -1;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double off = allowed(x[i], y[i]) ? 0 : std::isfinite(x[i] - y[i]) ? std::abs(x[i] - y[i]) : inf;
      if (off > most) worst = i, most = off;
    }
    Shape at = shape;
    auto rest = static_cast<std::int64_t>(worst);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) at[axis] = rest % shape[axis], rest /= shape[axis];
    const auto digits = [](double value, int digit_count) {
      return std::isnan(value) ? "nan" : fmt::format("{:.{}g}", value, digit_count);
    };
    const int precise = digits(x[worst], 6) == digits(y[worst], 6) ? 15 : 6;
    return fmt::format("  {}the largest error is at {}: {} instead of {}\n", of, at.str(),
                       digits(x[worst], precise), digits(y[worst], precise));
  }
  return "";
}

Outcomes all(const Asked::Run& run, std::size_t inputs) {
  Outcomes outcomes;
  for (std::size_t i = 0; i < inputs; ++i) outcomes.push_back(run(i));
  return outcomes;
}

// What can be said of one part of any answer, whatever the question: `actual` and `expected` are this part's
// values on all inputs.
std::string mistake_in_general(const std::vector<T>& actual, const std::vector<T>& expected,
                               const Allowed& allowed) {
  const auto everywhere = [&](const auto& agree) {
    for (std::size_t i = 0; i < actual.size(); ++i)
      if (!agree(actual[i], expected[i])) return false;
    return true;
  };
  std::int64_t numbers = 0;
  double factor = std::nan("");
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!(actual[i].shape() == expected[i].shape())) continue;
    const auto a = actual[i].to_vector(), b = expected[i].to_vector();
    for (std::size_t k = 0; k < a.size(); ++k)
      if (std::abs(b[k]) > 1e-3) ++numbers, factor = std::isnan(factor) ? a[k] / b[k] : factor;
  }
  if (numbers >= 2 && std::isfinite(factor) &&
      everywhere([&](const T& a, const T& b) { return same(a, b, allowed, factor); })) {
    if (std::abs(factor) < 1e-9) return "every number is 0";
    if (std::abs(factor + 1) < 1e-9)
      return "the sign is wrong: every number is the negative of the right one";
    return fmt::format("every number is {:.6g} times the right one", factor);
  }
  if (everywhere([&](const T& a, const T& b) { return a.rank() == 2 && same(a.T(), b, allowed); }))
    return "rows and columns are exchanged: the result is transposed";
  if (allowed.absolute < 1e-5 && everywhere([&](const T& a, const T& b) { return same(a, b, {1e-4, 1e-4}); }))
    return "the numbers are right to four digits: was something rounded, or computed as a float?";
  const auto constant = [&](const std::vector<T>& x) {
    for (const T& one : x)
      if (!same(one, x[0], allowed)) return false;
    return x.size() > 1;
  };
  if (constant(actual) && !constant(expected)) return "the result does not depend on the input";
  return "";
}

// The same for all parts: those that are wrong must have one mistake in common.
std::string mistake_in_general(const Outcomes& actual, const Outcomes& expected, const Allowed& allowed) {
  std::string names, mistake;
  for (std::size_t n = 0; n < expected[0].parts.size(); ++n) {
    std::vector<T> a, b;
    bool right = true;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      if (!expected[i].error.empty() && same(actual[i], expected[i], allowed)) continue;  // rightly refused
      if (!actual[i].error.empty() || actual[i].parts.size() != expected[i].parts.size()) return "";
      const Part &x = actual[i].parts[n], &y = expected[i].parts[n];
      if (x.text != y.text) return "";
      a.push_back(x.value), b.push_back(y.value);
      right = right && same(x, y, allowed);
    }
    if (right) continue;
    const std::string found = mistake_in_general(a, b, allowed);
    if (found.empty() || (!mistake.empty() && found != mistake)) return "";
    mistake = found, names += (names.empty() ? "" : ", ") + expected[0].parts[n].name;
  }
  return names.empty() ? mistake : names + ": " + mistake;
}

// "Most likely" needs agreement on all inputs; or wherever the answer is wrong, and then on more than a NaN or a
// single word, and with one mistake alone. What agrees on the input that is shown, but not on others, is said to
// do so. A mistake that would be wrong where the answer is right is not the answer's mistake.
std::string name_mistake(const Asked& q, const Outcomes& actual, const Outcomes& expected,
                         const std::vector<std::size_t>& failing) {
  // Where rounded results are accepted, those of a mistake may be rounded too.
  const Allowed allowed{std::min(q.absolute, 1e-3), q.relative == 0 ? 0.01 : q.relative};
  std::set<std::string> on_failing, on_shown;  // two mistakes can have one name
  bool all_telling = true;
  for (const std::size_t i : failing) all_telling = all_telling && telling(actual[i]);
  for (const auto& mistake : q.wrongs) {
    if (!mistake.usual) continue;
    const auto theirs = all(mistake.run, actual.size());
    const auto agree = [&](std::size_t i) { return same(actual[i], theirs[i], allowed); };
    std::size_t inputs = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) inputs += agree(i);
    if (inputs == actual.size()) return "Most likely: " + mistake.name;
    bool possible = true;
    for (std::size_t i = 0; i < actual.size(); ++i)
      possible = possible && (agree(i) || std::find(failing.begin(), failing.end(), i) != failing.end());
    if (!possible) continue;
    if (all_telling && std::all_of(failing.begin(), failing.end(), agree)) on_failing.insert(mistake.name);
    if (agree(failing[0]) && telling(actual[failing[0]])) on_shown.insert(mistake.name);
  }
  if (const auto general = mistake_in_general(actual, expected, {q.absolute, q.relative}); !general.empty())
    return "Most likely: " + general;
  if (on_failing.size() == 1) return "Most likely: " + *on_failing.begin();
  if (on_shown.size() == 1) return "On this input it looks like this mistake: " + *on_shown.begin();
  return "";
}

// Takes the parts that are right out of both, where others are not, and returns their names.
std::string take_right_parts(Outcome& actual, Outcome& expected, const Allowed& allowed) {
  if (!actual.error.empty() || actual.parts.size() != expected.parts.size()) return "";
  std::string names;
  for (std::size_t n = actual.parts.size(); n-- > 0;) {
    if (!same(actual.parts[n], expected.parts[n], allowed)) continue;
    names = expected.parts[n].name + (names.empty() ? "" : ", ") + names;
    actual.parts.erase(actual.parts.begin() + static_cast<std::ptrdiff_t>(n));
    expected.parts.erase(expected.parts.begin() + static_cast<std::ptrdiff_t>(n));
  }
  return names;
}

std::string result(const Outcome& x) {
  return x.error.empty() ? describe("", x.parts)
                         : fmt::format("    {}{}\n", x.error, x.message.empty() ? "" : ": " + x.message);
}

}  // namespace

std::string describe(const std::string& name, const Parts& all) {
  std::string text;
  for (const Part& p : all) text += show(name, p);
  return text;
}

Outcome call(const std::function<Parts()>& f) {
  try {
    return {.parts = f()};
  } catch (const NotYet&) {
    return {.todo = true};
  } catch (const ValueError& e) {
    return {.error = "a ValueError", .message = e.what()};
  } catch (const std::bad_alloc&) {
    return {.error = "out of memory"};
  } catch (const Error& e) {  // the library's own way to say so has no type of its own
    return std::string(e.what()).rfind("memory:", 0) == 0
               ? Outcome{.error = "out of memory"}
               : Outcome{.error = "an exception", .message = e.what()};
  } catch (const std::exception& e) {
    return {.error = "an exception", .message = e.what()};
  } catch (...) {
    return {.error = "something was thrown that is not an exception (a std::exception or its child)"};
  }
}

void Check::wrong_signature(const std::string& name) {
  throw Error(fmt::format("{} has other arguments or another result than in the stub", name));
}

Verdict judge(const Asked& q, const Asked::Run& answer) {
  const Allowed allowed{q.absolute, q.relative};
  Outcomes actual;
  const Outcomes expected = all(q.expected, q.inputs.size());
  std::vector<std::size_t> failing;
  for (std::size_t i = 0; i < q.inputs.size(); ++i) {
    actual.push_back(answer(i));
    if (actual.back().todo) return {.todo = true};
    if (!same(actual[i], expected[i], allowed)) failing.push_back(i);
  }
  if (failing.empty()) return {.solved = true};
  const auto first = failing[0];
  Outcome wrong = actual[first], right = expected[first];
  Verdict verdict{.named = name_mistake(q, actual, expected, failing)};
  if (!q.inputs[first].empty()) verdict.report += "  For this input:\n" + q.inputs[first];
  if (const auto names = take_right_parts(wrong, right, allowed); !names.empty())
    verdict.report += "  These parts of your result are right: " + names + "\n";
  verdict.report += "  Expected:\n" + result(right) + "  Your result:\n" + result(wrong);
  if (right.error.empty() && wrong.error.empty()) verdict.report += difference(wrong, right, allowed);
  if (!q.note.empty()) verdict.report += "  " + q.note + "\n";
  if (!verdict.named.empty()) verdict.report += "\n  " + verdict.named + ".\n";
  return verdict;
}

}  // namespace exercise
