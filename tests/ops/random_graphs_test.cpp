// Programs made at random from the operations: the library's result against the plain interpreter's, its
// gradients against differences, first and second. A failure is shrunk and printed as C++. TAPEHEAD_FUZZ_N
// says how many (2,000 otherwise), TAPEHEAD_FUZZ_SEED which the first is.
#include "ops/random_graphs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "ops/random_graphs_elements.hpp"
#include "ops/random_graphs_lines.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace graphs;

namespace {

Array interpret(const Node& node, const Program& program) {
  if (node.kind == nullptr) return node.value;
  std::vector<const Array*> in;
  for (int i : node.in) in.push_back(&program[static_cast<std::size_t>(i)].value);
  return node.kind->interpret(node, in);
}

Tensor<double> run(const Program& program, const std::vector<Tensor<double>>& leaves) {
  std::vector<Tensor<double>> values;
  std::size_t leaf = 0;
  for (const Node& node : program) {
    std::vector<Tensor<double>> in;
    for (int i : node.in) in.push_back(values[static_cast<std::size_t>(i)]);
    values.push_back(node.kind == nullptr ? leaves.at(leaf++) : node.kind->call(node, in));
  }
  return values.back();
}

// One by one: fmt::join would compile fmt's own way of writing numbers here.
template <class List> std::string joined(const List& list) {
  std::string text;
  for (const auto& each : list) text += fmt::format("{}{}", text.empty() ? "" : ", ", each);
  return text;
}
std::string braces(const Shape& shape) { return "{" + joined(shape) + "}"; }

std::string call_text(const Node& node) {
  std::string text;
  const std::string& source = node.kind->source;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '$') {
      text += source[i];
      continue;
    }
    const char what = source[++i];
    const std::string constant =
        fmt::format("from_vector<std::int64_t>({{{}}}, {})", joined(node.constants), braces(node.constant_shape));
    if (what == 'a' || what == 'b')
      text += fmt::format("v{}", node.in.at(static_cast<std::size_t>(what - 'a')));
    else if (what == '*')
      text += joined(node.ints);
    else if (what == 'i')
      text += constant;
    else if (what == 'm')
      text += "to<bool>(" + constant + ")";
    else if (what == 't')
      text += node.text;
    else
      text += fmt::format("{}", node.ints.at(static_cast<std::size_t>(what - '0')));
  }
  return text;
}

std::string as_cpp(const Program& program) {
  std::string leaves, parameters, named, body;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Node& node = program[i];
    if (node.kind != nullptr) {
      body += fmt::format("  const auto v{} = {};\n", i, call_text(node));
      continue;
    }
    leaves += fmt::format("const auto v{} = from_vector<double>({{{}}}, {});\n", i, joined(node.value.data),
                          braces(node.value.shape));
    parameters += fmt::format("{}const Tensor<double>& v{}", parameters.empty() ? "" : ", ", i);
    named += fmt::format("{}{{\"v{}\", v{}}}", named.empty() ? "" : ", ", i, i);
  }
  return fmt::format("{}const auto f = []({}) {{\n{}  return v{};\n}};\nCHECK(gradcheck(f, {{{}}}, {{.order = 2}}));\n",
                     leaves, parameters, body, program.size() - 1, named);
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> list;
    for (auto* group : {elementwise_kinds, view_kinds, line_kinds, joint_kinds})
      for (Kind& kind : group()) list.push_back(std::move(kind));
    return list;
  }();
  return all;
}

std::vector<Named<double>> leaves_of(const Program& program) {
  std::vector<Named<double>> leaves;
  for (std::size_t i = 0; i < program.size(); ++i)
    if (program[i].kind == nullptr)
      leaves.emplace_back(fmt::format("v{}", i), tapehead::from_vector(program[i].value.data, program[i].value.shape));
  return leaves;
}

// Only what the result needs, numbered anew, with the values worked out again.
Program cleaned(const Program& program) {
  std::vector<char> needed(program.size(), 0);
  needed.back() = 1;
  for (std::size_t i = program.size(); i-- > 0;)
    if (needed[i])
      for (int from : program[i].in) needed[static_cast<std::size_t>(from)] = 1;
  std::vector<int> number(program.size());
  Program out;
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (!needed[i]) continue;
    number[i] = static_cast<int>(out.size());
    Node node = program[i];
    for (int& from : node.in) from = number[static_cast<std::size_t>(from)];
    node.value = interpret(node, out);
    out.push_back(node);
  }
  return out;
}

bool acceptable(const Array& a) {
  return a.shape.numel() <= 200 && a.shape.rank() <= 5 &&
         std::all_of(a.data.begin(), a.data.end(), [](double v) { return std::isfinite(v) && std::abs(v) <= 30; });
}

Program generated(std::uint64_t seed, const std::vector<Kind>& from) {
  std::mt19937_64 random(seed);
  Program program;
  Chooser c(program, random);
  for (std::int64_t n = 1 + c.below(2); n > 0; --n) c.leaf(c.shape());
  for (std::int64_t wanted = 1 + c.below(20), tries = 100; wanted > 0 && tries > 0; --tries) {
    const std::size_t before = program.size();
    Node node;
    node.kind = &from[static_cast<std::size_t>(c.below(static_cast<std::int64_t>(from.size())))];
    bool taken = node.kind->propose(c, node);
    if (taken) {
      node.value = interpret(node, program);
      taken = acceptable(node.value);
    }
    if (taken)
      program.push_back(node), --wanted;
    else
      program.resize(before);
  }
  return cleaned(program);
}

struct Verdict {
  std::string failure;  // empty: none
  bool differentiated = false;
};

std::string compare(const Tensor<double>& y, const Array& expected) {
  if (y.shape() != expected.shape)
    return fmt::format("the result has shape {}, expected {}", y.shape().str(), expected.shape.str());
  const auto got = y.to_vector();
  double largest = 1;
  for (double e : expected.data) largest = std::max(largest, std::abs(e));
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - expected.data[i]) <= 1e-11 * largest))
      return fmt::format("element {} of the result is {}, expected {}", i, got[i], expected.data[i]);
  return "";
}

// A program may be steep or nearly kinked where one step of the differences is not good enough: it fails when
// none is.
Verdict check(const Program& program, int order) {
  try {
    const auto leaves = leaves_of(program);
    std::vector<Tensor<double>> tensors;
    std::int64_t elements = 0;
    for (const auto& leaf : leaves) tensors.push_back(leaf.tensor), elements += leaf.tensor.numel();
    const auto y = run(program, tensors);
    if (auto text = compare(y, program.back().value); !text.empty()) return {text};
    if (elements == 0 || y.numel() == 0) return {};
    GradcheckReport report;
    for (double step : {0x1p-11, 0x1p-14, 0x1p-8, 0x1p-17}) {
      report = gradcheck(
          [&](const std::vector<Tensor<double>>& x) { return run(program, x); }, leaves,
          {.order = order, .points = 4, .step = step, .tolerance = 1e-6, .skip_kinks = true, .may_be_zero = true});
      if (report) return {"", true};
    }
    if (report.text().find("lies at a kink") != std::string::npos) return {};
    return {report.text(), true};
  } catch (const std::exception& e) {
    return {fmt::format("it throws: {}", e.what())};
  }
}

// Smaller programs that still fail, one change at a time, until none does.
Program shrunk(Program program, int order) {
  const auto fails = [order](const Program& p) { return !check(p, order).failure.empty(); };
  const auto try_this = [&](Program candidate) {
    candidate = cleaned(candidate);
    if (!fails(candidate)) return false;
    program = std::move(candidate);
    return true;
  };
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i + 1 < program.size() && !again; ++i)  // an earlier node as the result
      if (program[i].kind != nullptr)
        again = try_this(Program(program.begin(), program.begin() + static_cast<std::ptrdiff_t>(i) + 1));
    for (std::size_t i = program.size(); i-- > 0 && !again;) {  // a node's value as a leaf
      if (program[i].kind == nullptr || i + 1 == program.size()) continue;
      Program candidate = program;
      candidate[i].kind = nullptr, candidate[i].in.clear();
      again = try_this(candidate);
    }
    for (std::size_t i = 0; i < program.size() && !again; ++i)  // simpler numbers
      for (double scale : {1.0, 10.0}) {
        Program candidate = program;
        if (candidate[i].kind != nullptr) continue;
        for (double& v : candidate[i].value.data) v = std::round(v * scale) / scale;
        if (candidate[i].value.data != program[i].value.data && !again) again = try_this(candidate);
      }
  }
  return program;
}

std::int64_t from_environment(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : otherwise;
}

}  // namespace

TEST_CASE("random programs: values by a plain interpreter, gradients by differences") {
  const std::int64_t count = from_environment("TAPEHEAD_FUZZ_N", 2000),
                     first = from_environment("TAPEHEAD_FUZZ_SEED", 1);
  std::map<std::string, int> used;
  std::int64_t differentiated = 0, failures = 0;
  for (std::int64_t seed = first; seed < first + count && failures < 5; ++seed) {
    const Program program = generated(static_cast<std::uint64_t>(seed), kinds());
    for (const Node& node : program)
      if (node.kind != nullptr) ++used[node.kind->name];
    const int order = seed % 2 == 0 ? 2 : 1;
    const Verdict verdict = check(program, order);
    differentiated += verdict.differentiated;
    if (verdict.failure.empty()) continue;
    ++failures;
    const Program small = shrunk(program, order);
    FAIL_CHECK(fmt::format("program {}: {}\nshrunk: {}\n{}", seed, verdict.failure, check(small, order).failure,
                           as_cpp(small)));
  }
  if (count < 2000) return;
  CHECK(differentiated * 10 > count * 8);
  for (const Kind& kind : kinds())
    CHECK_MESSAGE(used[kind.name] > count / 500, kind.name << " occurs " << used[kind.name] << " times");
}

TEST_CASE("random programs: a wrong operation is found, shrunk to itself and printed") {
  static const Op wrong_op{"test: wrong", "y = exp(x)", "dx = 1.5 dy y, on purpose"};
  const auto found = [](const std::function<Tensor<double>(const Tensor<double>&)>& wrong) {
    std::vector<Kind> with_wrong = kinds();
    for (Kind& kind : with_wrong)
      if (kind.name == "exp")
        kind.call = [wrong](const Node&, const std::vector<Tensor<double>>& x) { return wrong(x[0]); };
    for (std::uint64_t seed = 1; seed < 500; ++seed) {
      const Program program = generated(seed, with_wrong);
      if (program.size() < 6 || check(program, 1).failure.empty()) continue;
      const Program small = shrunk(program, 1);
      CHECK(small.size() == 2);
      return as_cpp(small) + check(small, 1).failure;
    }
    return std::string();
  };
  const std::string gradient = found([](const Tensor<double>& x) {
    const auto y = exp(detach(x));
    return record(wrong_op, y, wrt(x, [y](const auto& dy) { return dy * y * 1.5; }));
  });
  CHECK(gradient.find("const auto v0 = from_vector<double>({") == 0);
  CHECK(gradient.find("  const auto v1 = exp(v0);\n  return v1;\n};\nCHECK(gradcheck(f, {{\"v0\", v0}}, "
                      "{.order = 2}));\n") != std::string::npos);
  CHECK(gradient.find(", a ratio of 1.5") != std::string::npos);
  CHECK(found([](const Tensor<double>& x) { return exp(x) + 1e-6; }).find("element 0 of the result is ") !=
        std::string::npos);
  CHECK(found([](const Tensor<double>& x) { return exp(x).unsqueeze(0); }).find("the result has shape ") !=
        std::string::npos);
}
