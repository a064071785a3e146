#include "checker.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct NotYet {};
void todo() { throw NotYet(); }

namespace exercise {
namespace {

std::string now_running;  // for the text of a crash

T truth(bool x) { return scalar(x ? 1.0 : 0.0); }
Part part(const char* name, const T& value) { return {name, value}; }
Part word(const char* name, Weights w) {
  return {name, {}, w == Weights::one_hot ? "one_hot" : w == Weights::even ? "even" : "unchanged"};
}

std::string indent(const std::string& text, int by) {
  std::string out(static_cast<std::size_t>(by), ' ');
  for (const char c : text) {
    out += c;
    if (c == '\n') out.append(static_cast<std::size_t>(by), ' ');
  }
  return out;
}

std::string show(const std::string& name, const Part& p) {
  const auto full = name.empty() ? p.name : p.name.empty() ? name : name + "." + p.name;
  const std::string label = full.empty() ? "" : full + " ";
  if (!p.word.empty()) return fmt::format("    {}= {}\n", label, p.word);
  if (p.truth && p.value.rank() == 0)
    return fmt::format("    {}= {}\n", label, p.value.item() != 0 ? "true" : "false");
  const std::string values =
      p.truth ? to_string(to<bool>(ne(p.value, scalar(0.0)))) : to_string(p.value, {.precision = 6});
  if (p.value.rank() == 0) return fmt::format("    {}= {}\n", label, values);
  return fmt::format("    {}{}\n{}\n", label, p.value.shape().str(), indent(values, 6));
}

// How far apart two numbers may be, and are.
struct Allowed {
  double absolute, relative;
  bool operator()(double came, double expected) const {
    if (std::isnan(came) || std::isnan(expected)) return std::isnan(came) && std::isnan(expected);
    return came == expected || std::abs(came - expected) <= absolute + relative * std::abs(expected);
  }
};

bool same(const Part& came, const Part& expected, const Allowed& allowed, double factor = 1) {
  if (came.word != expected.word || !(came.value.shape() == expected.value.shape())) return false;
  const auto a = came.value.to_vector(), b = expected.value.to_vector();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!allowed(a[i], factor * b[i])) return false;
  return true;
}

bool same(const Outcome& came, const Outcome& expected, const Allowed& allowed, double factor = 1) {
  if (came.thrown != expected.thrown || came.parts.size() != expected.parts.size()) return false;
  for (std::size_t i = 0; i < came.parts.size(); ++i)
    if (!same(came.parts[i], expected.parts[i], allowed, factor)) return false;
  return true;
}

// An input that is to be refused may be refused in any words.
bool right(const Outcome& came, const Outcome& expected, const Allowed& allowed) {
  if (!expected.thrown.empty()) return !came.thrown.empty();
  return same(came, expected, allowed);
}

// Of the first part that differs: which one it is, and where it is furthest off.
std::string difference(const Outcome& came, const Outcome& expected, const Allowed& allowed) {
  if (!came.thrown.empty()) return "";
  for (std::size_t n = 0; n < std::min(came.parts.size(), expected.parts.size()); ++n) {
    const Part &a = came.parts[n], &b = expected.parts[n];
    if (same(a, b, allowed) || !b.word.empty()) continue;
    const std::string of = b.name.empty() ? "" : b.name + ": ";
    const Shape& shape = b.value.shape();
    if (!(a.value.shape() == shape))
      return fmt::format("  {}the shape is {}; it should be {}\n", of, a.value.shape().str(), shape.str());
    if (shape.rank() == 0 || b.truth) continue;
    const auto x = a.value.to_vector(), y = b.value.to_vector();
    std::size_t worst = 0;
    double most = -1;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double apart = allowed(x[i], y[i]) ? 0 : std::isfinite(x[i] - y[i]) ? std::abs(x[i] - y[i]) : inf;
      if (apart > most) worst = i, most = apart;
    }
    Shape at = shape;
    auto rest = static_cast<std::int64_t>(worst);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) at[axis] = rest % shape[axis], rest /= shape[axis];
    const bool close = fmt::format("{:.6g}", x[worst]) == fmt::format("{:.6g}", y[worst]);
    return fmt::format("  {}furthest off at {}: {:.{}g} came, {:.{}g} is right\n", of, at.str(), x[worst],
                       close ? 15 : 6, y[worst], close ? 15 : 6);
  }
  return "";
}

std::vector<Outcome> all(const Run& run, std::size_t inputs) {
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < inputs; ++i) outcomes.push_back(run(i));
  return outcomes;
}

using Outcomes = std::vector<Outcome>;
template <class F>
bool everywhere(const Outcomes& came, const Outcomes& expected, const F& agree) {
  for (std::size_t i = 0; i < came.size(); ++i)
    if (!agree(came[i], expected[i])) return false;
  return true;
}

bool same_or_transposed(const Outcome& came, const Outcome& expected, const Allowed& allowed) {
  for (std::size_t i = 0; i < came.parts.size(); ++i) {
    Part turned = came.parts[i];
    if (turned.value.rank() == 2) turned.value = turned.value.T();
    const Part& right = expected.parts[i];
    if (!same(came.parts[i], right, allowed) && !same(turned, right, allowed)) return false;
  }
  return true;
}

// What can be said of any answer, whatever was asked. Inputs that are to be refused do not count here.
std::string in_general(Outcomes came, Outcomes expected, const Allowed& allowed) {
  for (std::size_t i = came.size(); i-- > 0;)
    if (!expected[i].thrown.empty()) {
      came.erase(came.begin() + static_cast<std::ptrdiff_t>(i));
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(i));
    }
  if (came.empty()) return "";
  const auto every = [&](const auto& agree) { return everywhere(came, expected, agree); };
  const auto times = [&](double factor, const Allowed& within) {
    return every([&](const Outcome& a, const Outcome& b) { return same(a, b, within, factor); });
  };
  bool thrown = false, words = false, changes = false, constant = came.size() > 1;
  for (std::size_t i = 0; i < came.size(); ++i) {
    thrown |= !came[i].thrown.empty();
    for (const Part& p : expected[i].parts) words |= p.truth || !p.word.empty();
    constant = constant && same(came[i], came[0], allowed);
    changes |= !same(expected[i], expected[0], allowed);
  }
  if (thrown || words) return "";
  if (constant && changes) return "the answer does not depend on the input";
  if (times(-1, allowed)) return "the sign is the wrong way round";
  if (every([&](const Outcome& a, const Outcome& b) { return same_or_transposed(a, b, allowed); }) &&
      !times(1, allowed))
    return "rows and columns are exchanged: the result is transposed";
  if (times(1, {1e-4, 1e-4}))
    return "the numbers are right to four digits: was something rounded, or a float?";
  const auto& parts = expected[0].parts;
  if (expected.size() == 1 && parts.size() == 1 && parts[0].value.numel() == 1) return "";  // says nothing
  for (const Part& p : parts) {
    const auto i = static_cast<std::size_t>(&p - expected[0].parts.data());
    const auto x = came[0].parts[i].value.to_vector(), y = p.value.to_vector();
    for (std::size_t k = 0; k < std::min(x.size(), y.size()); ++k)
      if (std::abs(y[k]) > 1e-3 && std::isfinite(x[k]) && std::abs(x[k]) > 1e-6 &&
          times(x[k] / y[k], allowed))
        return fmt::format("every number is {:.6g} times what it should be", x[k] / y[k]);
  }
  return "";
}

std::string likely_mistake(const Asked& q, const Outcomes& came, const Outcomes& expected,
                           std::size_t first) {
  const Allowed allowed{q.absolute, q.relative};
  const auto agree = [&](const Outcome& a, const Outcome& b) { return same(a, b, allowed); };
  std::string on_this_input;
  for (const auto& [name, run] : q.mistakes) {
    const auto theirs = all(run, came.size());
    if (everywhere(came, theirs, agree)) return name;
    if (on_this_input.empty() && agree(came[first], theirs[first])) on_this_input = name;
  }
  const std::string general = in_general(came, expected, allowed);
  return general.empty() ? on_this_input : general;
}

// Takes the parts that are right out of both, where others are not, and gives their names.
std::string take_right_parts(Outcome& came, Outcome& expected, const Allowed& allowed) {
  if (!came.thrown.empty() || came.parts.size() != expected.parts.size()) return "";
  std::string names;
  for (std::size_t n = came.parts.size(); n-- > 0;) {
    if (!same(came.parts[n], expected.parts[n], allowed)) continue;
    names = expected.parts[n].name + (names.empty() ? "" : ", ") + names;
    came.parts.erase(came.parts.begin() + static_cast<std::ptrdiff_t>(n));
    expected.parts.erase(expected.parts.begin() + static_cast<std::ptrdiff_t>(n));
  }
  return names;
}

std::string result(const Outcome& x) {
  return x.thrown.empty() ? describe("", x.parts) : "    an exception: " + x.thrown + "\n";
}

}  // namespace

Parts parts(const T& x) { return {part("", x)}; }
Parts parts(const Mask& x) { return {{"", to<double>(x), "", true}}; }
Parts parts(const std::optional<Mask>& x) { return x ? parts(*x) : Parts{{"", {}, "none"}}; }
Parts parts(const Attention<double>& x) { return {part("weights", x.weights), part("out", x.out)}; }
Parts parts(const Symmetric& x) {
  return {{"scores_of_one_input", truth(x.scores_of_one_input), "", true},
          {"scores_of_two_matrices", truth(x.scores_of_two_matrices), "", true},
          {"scores_of_shared_matrix", truth(x.scores_of_shared_matrix), "", true},
          {"weights_of_one_input", truth(x.weights_of_one_input), "", true}};
}
Parts parts(const Limits& x) {
  return {word("tau_to_zero", x.tau_to_zero), word("tau_to_infinity", x.tau_to_infinity)};
}
Parts parts(const Backward& x) {
  return {part("dV", x.dV), part("dA", x.dA), part("dS", x.dS), part("dQ", x.dQ), part("dK", x.dK)};
}
Parts parts(const Running& x) { return {part("max", scalar(x.max)), part("sum", scalar(x.sum))}; }
Parts parts(const std::vector<Block>& x) {
  Parts all;
  for (std::size_t i = 0; i < x.size(); ++i) {
    all.push_back({fmt::format("[{}].K", i), x[i].K});
    all.push_back({fmt::format("[{}].V", i), x[i].V});
  }
  return all;
}
Parts parts(const RowGradients& x) { return {part("dq", x.dq), part("dK", x.dK), part("dV", x.dV)}; }
Parts parts(const std::vector<std::int64_t>& x) {
  return {{"", {}, fmt::format("{{{}}}", fmt::join(x, ", "))}};
}
Parts parts(double x) { return parts(scalar(x)); }
Parts parts(bool x) { return {{"", truth(x), "", true}}; }
Parts parts(std::int64_t x) { return {{"", {}, std::to_string(x)}}; }

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
  } catch (const std::bad_alloc&) {
    return {.thrown = "out of memory"};
  } catch (const std::exception& e) {
    return {.thrown = e.what()[0] != 0 ? e.what() : "(an exception without a text)"};
  } catch (...) {
    return {.thrown = "(of a type that is not a std::exception)"};
  }
}

Verdict judge(const Asked& q, const Run& answer) {
  const Allowed allowed{q.absolute, q.relative};
  Outcomes came, expected = all(q.right, q.inputs.size());
  for (std::size_t i = 0; i < q.inputs.size(); ++i) {
    now_running = q.name + (q.inputs[i].empty() ? "" : ", given\n" + q.inputs[i]);
    came.push_back(answer(i));
    if (came.back().todo) return {.todo = true};
  }
  for (std::size_t i = 0; i < came.size(); ++i) {
    if (right(came[i], expected[i], allowed)) continue;
    Verdict verdict{.mistake = likely_mistake(q, came, expected, i)};
    if (!q.inputs[i].empty()) verdict.report += "  given\n" + q.inputs[i];
    const std::string fine = take_right_parts(came[i], expected[i], allowed);
    if (!fine.empty()) verdict.report += "  right: " + fine + "\n";
    verdict.report +=
        "  expected\n" +
        (expected[i].thrown.empty() ? result(expected[i])
                                    : "    an exception, such as: " + expected[i].thrown + "\n") +
        "  came\n" + result(came[i]);
    if (expected[i].thrown.empty()) verdict.report += difference(came[i], expected[i], allowed);
    if (!q.note.empty()) verdict.report += "  " + q.note + "\n";
    if (!verdict.mistake.empty()) verdict.report += "\n  Most likely: " + verdict.mistake + ".\n";
    return verdict;
  }
  return {.solved = true};
}

void Checker::ask(const Asked& q) {
  const Verdict verdict = judge(q, q.answer);
  const bool first_wrong = right_ + todo_ == asked_;
  ++asked_;
  right_ += verdict.solved, todo_ += verdict.todo;
  const auto n = q.inputs.size();
  text_ += fmt::format("{}: {}\n", q.name,
                       verdict.todo      ? "no answer yet"
                       : !verdict.solved ? "not right"
                       : n == 1          ? "right"
                                         : fmt::format("right, on {} inputs", n));
  if (!verdict.solved && !verdict.todo && first_wrong) text_ += verdict.report;
  if (!trial_) return;
  for (const auto& [name, run] : q.mistakes) {
    ++trials_;
    const Verdict trial = judge(q, run);
    if (trial.solved)
      problems_.push_back(fmt::format("{}: this mistake passes: {}", q.name, name));
    else if (trial.mistake != name)
      problems_.push_back(fmt::format("{}: {}\n  is taken for: {}", q.name, name, trial.mistake));
  }
}

namespace {

// Only what is safe inside a signal handler: write() and _exit().
void say(const char* text) {
  if (write(STDOUT_FILENO, text, std::strlen(text)) < 0) _exit(1);
}
void stopped(int signal) {
  say(signal == SIGALRM ? "Stopped: no result after some seconds. Is there a loop without an end?\n"
      : signal == SIGSEGV
          ? "Crashed: memory was used that is not there (an index outside, or endless recursion).\n"
      : signal == SIGFPE ? "Crashed: a whole number was divided by 0.\n"
                         : "Crashed: the program was aborted.\n");
  say("It was in ");
  say(now_running.c_str());
  say("\n");
  _exit(1);
}

}  // namespace

int run(const char* title, void (*check)(Checker&), int seconds) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what an answer prints before it crashes is seen
  static char stack[1 << 16];                // endless recursion leaves none of the ordinary one
  stack_t other{};
  other.ss_sp = stack, other.ss_size = sizeof stack;
  sigaltstack(&other, nullptr);
  for (const int signal : {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) {
    struct sigaction action {};
    action.sa_handler = stopped, action.sa_flags = SA_ONSTACK;
    sigaction(signal, &action, nullptr);
  }
  const char* sanitizers = std::getenv("SANITIZE");  // these reserve far more than they use
  if (sanitizers == nullptr || *sanitizers == 0) {
    rlimit memory{};
    getrlimit(RLIMIT_AS, &memory);
    memory.rlim_cur = std::min<rlim_t>(memory.rlim_max, rlim_t{4} << 30);
    setrlimit(RLIMIT_AS, &memory);
  }
  alarm(static_cast<unsigned>(seconds));

  Checker checker;
  check(checker);
  alarm(0);
  fmt::print("{}\n", checker.text());
  if (checker.solved()) {
    fmt::print("{}: solved.\n", title);
    return 0;
  }
  const int open = checker.asked() - checker.right();
  fmt::print("{}: {} of {} still open.\n", title, open, checker.asked());
  return checker.todo() == checker.asked() ? 2 : 1;
}

}  // namespace exercise
