#pragma once
// Checks the answers to one exercise. Every exercise's check.cpp defines check(), a table of questions:
//
//   void exercise::check(Check& check) {
//     auto& q = check.question<T(const T&, const T&)>("softmax_pullback", {"y", "dy"});  // the answer's
//     function q.right([](T y, T dy) { ... });                       // the right result q.mistake("forgot
//     the D term", [](T y, T dy) { return y * dy; });  // what a usual mistake returns q.wrong("", [](T y, T
//     dy) { ... });                   // another wrong answer, which gets no name q.input(check.draw({2, 3}),
//     check.draw({2, 3}));
//   }
//
// The answer is compared with the right result on every input, and where it is wrong, with the results of
// the usual mistakes. Mistakes and other wrong answers are also handed in as answers by the self-test.
#include <any>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "exercise.hpp"

namespace exercise {

using T = Tensor<double>;
using Mask = Tensor<bool>;

/// One tensor of a result or of an argument, or a text where the value has no numbers to compare.
struct Part {
  std::string name;
  T value = {};
  std::string text = {};
};
using Parts = std::vector<Part>;

inline Parts parts(const T& x) { return {{"", x}}; }
inline Parts parts(double x) { return parts(scalar(x)); }
inline Parts parts(bool x) { return {{"", {}, x ? "true" : "false"}}; }
inline Parts parts(std::int64_t x) { return {{"", {}, std::to_string(x)}}; }
inline Parts parts(const Mask& x) { return {{"", {}, x.shape().str() + "\n" + to_string(x)}}; }
inline Parts parts(const std::optional<Mask>& x) { return x ? parts(*x) : Parts{{"", {}, "none"}}; }
inline Parts parts(Parts x) { return x; }

}  // namespace exercise
#if __has_include("parts.hpp")
#include "parts.hpp"  // the same for the chapter's own types
#endif
namespace exercise {

/// The parts as indented text, each under its name.
std::string describe(const std::string& name, const Parts& parts);

/// What one call gave: a result, or what it threw.
struct Outcome {
  Parts parts = {};
  std::string error = {};    ///< the kind of exception, such as "a ValueError"; empty when nothing was thrown
  std::string message = {};  ///< the exception's text
  bool todo = false;
};
Outcome call(const std::function<Parts()>& f);

/// A question without its types.
struct Asked {
  using Run = std::function<Outcome(std::size_t input)>;
  struct Wrong {
    std::string name;
    Run run;
    bool usual;  ///< a usual mistake, with which answers are compared
  };
  virtual ~Asked() = default;
  std::string name;
  std::vector<std::string> inputs;  ///< as text
  Run answer, expected;
  std::vector<Wrong> wrongs;
  std::string note;                         ///< shown with a wrong answer
  double absolute = 1e-9, relative = 1e-9;  ///< allowed |actual - expected|; see Question::within
};

template <class F>
class Question;
template <class R, class... A>
class Question<R(A...)> : public Asked {
 public:
  using Function = std::function<R(A...)>;

  void right(Function f) { expected = runner(std::move(f)); }
  /// A usual mistake. Its name says what is wrong and what to do, as a clause without a full stop.
  void mistake(const std::string& mistake_name, Function f) {
    wrongs.push_back({mistake_name, runner(std::move(f)), true});
  }
  /// Another wrong answer, for the self-test. `verdict` is the mistake that has to be named, or "" for none.
  void wrong(const std::string& verdict, Function f) {
    wrongs.push_back({verdict, runner(std::move(f)), false});
  }
  void input(const A&... values) {
    values_.emplace_back(values...);
    inputs.push_back(text(values_.back(), std::index_sequence_for<A...>()));
  }
  /// Accepts rounded answers: |actual - expected| <= difference. The default is 1e-9 (1 + |expected|): sums
  /// in another order differ by some 1e-15, a mistake by more than 1e-3.
  void within(double difference) { absolute = difference * (1 + 1e-9), relative = 0; }

  void takes(Function f, std::vector<std::string> argument_names) {
    answer = runner(std::move(f)), arguments_ = std::move(argument_names);
    if (sizeof...(A) == 0) inputs.resize(1);
  }

 private:
  using Values = std::tuple<A...>;
  Run runner(Function f) {
    if (sizeof...(A) == 0) values_.resize(1);
    return [this, f](std::size_t i) { return call([&] { return parts(std::apply(f, values_[i])); }); };
  }
  template <std::size_t... i>
  std::string text([[maybe_unused]] const Values& values, std::index_sequence<i...>) const {
    return (std::string() + ... + describe(arguments_[i], parts(std::get<i>(values))));
  }
  std::vector<std::string> arguments_;
  std::vector<Values> values_;
};

/// Random inputs. They have two digits after the point, so that they can be read and typed in exactly.
class Draw {
 public:
  explicit Draw(std::int64_t seed) : random_(seed) {}
  T operator()(const Shape& shape) { return round(random_.randn(shape), 2); }
  /// Rows of positive numbers that sum to one.
  T weights(const Shape& shape) { return softmax(random_.randn(shape), -1); }
  Mask mask(const Shape& shape, double probability) { return random_.rand(shape) < probability; }

 private:
  NumpyRandom random_;
};

class Check {
 public:
  explicit Check(std::int64_t seed) : draw(seed) {}
  Draw draw;

  /// The question that is answered by calling the answer's function of that name and type.
  template <class F>
  auto& question(const std::string& name, std::vector<std::string> arguments = {}) {
    return ask(name, function<F>(name), std::move(arguments));
  }
  /// The same for a function that calls the answer's functions.
  template <class R, class... A>
  auto& question(const std::string& name, std::vector<std::string> arguments, std::function<R(A...)> f) {
    auto made = std::make_unique<Question<R(std::decay_t<A>...)>>();
    auto& q = *made;
    q.name = name, q.takes(std::move(f), std::move(arguments));
    questions_.push_back(std::move(made));
    return q;
  }
  /// The answer's function of that name.
  template <class F>
  F* function(const std::string& name) const {
    F* const* f = std::any_cast<F*>(&functions().at(name));
    if (f == nullptr) wrong_signature(name);
    return *f;
  }
  const std::vector<std::unique_ptr<Asked>>& questions() const { return questions_; }

 private:
  template <class R, class... A>
  auto& ask(const std::string& name, R (*f)(A...), std::vector<std::string> arguments) {
    return question(name, std::move(arguments), std::function<R(A...)>(f));
  }
  [[noreturn]] static void wrong_signature(const std::string& name);
  static const std::map<std::string, std::any>& functions();  // defined by answer.cpp
  std::vector<std::unique_ptr<Asked>> questions_;
};

/// Defined by the exercise's check.cpp.
void check(Check& check);

/// What is said of one answer to one question.
struct Verdict {
  bool solved = false, todo = false;
  std::string named = {};  ///< the mistake that was recognised
  std::string report = {};
};
Verdict judge(const Asked& question, const Asked::Run& answer);

}  // namespace exercise
