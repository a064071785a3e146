#pragma once
// Compares an answer with what is right, input by input, and where it is wrong, with what the usual mistakes
// give.
//
//   Question<T, T, T> q(check, "softmax_pullback", answer, {"y", "dy"});   // result, then the arguments
//   q.right([](const auto& y, const auto& dy) { ... });
//   q.mistake("the D term is missing: ...", [](const auto& y, const auto& dy) { return y * dy; });
//   q.input(y, dy);
//   q.ask();
//
// A mistake is a function of the same arguments, so that the harness can hand it in as an answer: it has to
// be refused, and recognised under its own name.
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "tapehead/random/random.hpp"

namespace exercise {

/// One tensor of a result or an argument; or a word, where the value is one.
struct Part {
  std::string name;
  T value;
  std::string word = {};
  bool truth = false;  // printed as True and False
};
using Parts = std::vector<Part>;

Parts parts(const T& x);
Parts parts(const Mask& x);
Parts parts(const std::optional<Mask>& x);
Parts parts(const Attention<double>& x);
Parts parts(const Symmetric& x);
Parts parts(const Limits& x);
Parts parts(const Backward& x);
Parts parts(const Running& x);
Parts parts(const std::vector<Block>& x);
Parts parts(const RowGradients& x);
Parts parts(const std::vector<std::int64_t>& x);
Parts parts(double x);
Parts parts(bool x);
Parts parts(std::int64_t x);
inline Parts parts(Parts x) { return x; }

/// The parts as text, each under its name.
std::string describe(const std::string& name, const Parts& parts);

/// What one call gave: a result, or the text of what it threw.
struct Outcome {
  Parts parts = {};
  std::string thrown = {};
  bool todo = false;
};
using Run = std::function<Outcome(std::size_t input)>;

/// A question without its types.
struct Asked {
  std::string name;
  std::vector<std::string> inputs = {};
  Run answer = {}, right = {};
  std::vector<std::pair<std::string, Run>> mistakes = {};
  std::string note = {};                    // shown with a wrong answer
  double absolute = 1e-9, relative = 1e-9;  // allowed |came - expected|: see Question::within
};

struct Verdict {
  bool solved = false, todo = false;
  std::string mistake = {};  // its name, where it was recognised
  std::string report = {};
};
Verdict judge(const Asked& question, const Run& answer);

class Checker {
 public:
  /// With `trial` each mistake is handed in as an answer too, and counted in trials and problems.
  explicit Checker(bool trial = false) : trial_(trial) {}
  void ask(const Asked& question);

  bool solved() const { return asked_ > 0 && right_ == asked_; }
  int asked() const { return asked_; }
  int right() const { return right_; }
  int todo() const { return todo_; }
  const std::string& text() const { return text_; }
  int trials() const { return trials_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  bool trial_;
  int asked_ = 0, right_ = 0, todo_ = 0, trials_ = 0;
  std::string text_;
  std::vector<std::string> problems_;
};

Outcome call(const std::function<Parts()>& f);

template <class R, class... A>
class Question {
 public:
  using Function = std::function<R(const A&...)>;

  Question(Checker& check, std::string name, Function answer,
           std::array<const char*, sizeof...(A)> arguments = {})
      : check_(check), answer_(std::move(answer)), arguments_(arguments) {
    asked_.name = std::move(name);
  }
  void right(Function f) { right_ = std::move(f); }
  void mistake(std::string name, Function f) { mistakes_.emplace_back(std::move(name), std::move(f)); }
  void input(const A&... values) { inputs_.emplace_back(values...); }
  void note(std::string text) { asked_.note = std::move(text); }
  /// Answers may be rounded: |came - expected| <= difference is right. Otherwise 1e-9 (1 + |expected|): sums
  /// in another order differ by some 1e-15, a mistake by more than 1e-3.
  void within(double difference) { asked_.absolute = difference * (1 + 1e-9), asked_.relative = 0; }

  void ask() {
    if (sizeof...(A) == 0) inputs_.resize(1);
    for (const auto& input : inputs_) asked_.inputs.push_back(text(input, std::index_sequence_for<A...>()));
    asked_.answer = runner(answer_), asked_.right = runner(right_);
    for (const auto& [name, f] : mistakes_) asked_.mistakes.emplace_back(name, runner(f));
    check_.ask(asked_);
  }

 private:
  using Input = std::tuple<A...>;
  Run runner(const Function& f) const {
    return [this, f](std::size_t i) { return call([&] { return parts(std::apply(f, inputs_[i])); }); };
  }
  template <std::size_t... i>
  std::string text([[maybe_unused]] const Input& input, std::index_sequence<i...>) const {
    return (std::string() + ... + describe(arguments_[i], parts(std::get<i>(input))));
  }

  Checker& check_;
  Asked asked_{};
  Function answer_, right_ = {};
  std::vector<std::pair<std::string, Function>> mistakes_ = {};
  std::vector<Input> inputs_ = {};
  std::array<const char*, sizeof...(A)> arguments_;
};

/// Random inputs, with two digits after the point so that they can be read (and typed in) exactly.
class Draw {
 public:
  explicit Draw(std::int64_t seed) : random_(seed) {}
  T operator()(const Shape& shape) { return round(random_.randn(shape), 2); }
  /// Rows of positive numbers that sum to one.
  T weights(const Shape& shape) { return softmax(random_.randn(shape), -1); }
  Mask mask(const Shape& shape, double share) { return random_.rand(shape) < share; }
  double number(double low, double high) { return low + (high - low) * round(random_.rand({}), 2).item(); }

 private:
  NumpyRandom random_;
};

}  // namespace exercise
