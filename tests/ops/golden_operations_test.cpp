// Every operation against PyTorch's answers (golden/ops) and NumPy's (golden/ops_more): values, and gradients
// for the gradient that arrives. Which operations were met is read off the tapes: each must be.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "golden_cases.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;

namespace {

// One case: its line of the table, and its inputs in the order of their names.
template <class T> struct Case {
  Case(const golden::Words& line, const NamedTensors& all)
      : name(line.text("name")), attrs(golden::options(line.text("attrs"))), tensors(all) {
    const std::string prefix = name + "/in/";
    for (const auto& [key, tensor] : all)
      if (key.rfind(prefix, 0) == 0 && std::holds_alternative<Tensor<double>>(tensor))
        inputs.emplace_back(key.substr(prefix.size()), to<T>(std::get<Tensor<double>>(tensor)));
  }
  bool has(const std::string& input) const { return tensors.contains(name + "/in/" + input); }
  const Tensor<T>& operator()(const std::string& input) const {
    for (const auto& [key, value] : inputs)
      if (key == input) return value;
    throw std::runtime_error("golden: no input " + input);
  }
  std::vector<Tensor<T>> all() const {
    std::vector<Tensor<T>> list;
    for (const auto& input : inputs) list.push_back(input.second);
    return list;
  }
  template <class E> Tensor<E> get(const std::string& part) const { return tensors.get<E>(name + "/" + part); }
  Tensor<std::int64_t> index(const std::string& input = "index") const { return get<std::int64_t>("in/" + input); }
  Tensor<bool> mask(const std::string& input) const { return get<bool>("in/" + input); }
  std::optional<Tensor<T>> maybe(const std::string& input) const {
    return has(input) ? std::optional((*this)(input)) : std::nullopt;
  }

  T number(const std::string& key) const { return static_cast<T>(attrs.number(key)); }
  T number(const std::string& key, double otherwise) const { return static_cast<T>(attrs.number(key, otherwise)); }
  std::int64_t whole(const std::string& key, std::int64_t otherwise) const { return attrs.integer(key, otherwise); }
  std::int64_t whole(const std::string& key) const { return attrs.integer(key); }
  int axis(const std::string& key = "dim") const { return static_cast<int>(attrs.integer(key)); }
  bool keepdim() const { return attrs.flag("keepdim"); }
  std::vector<int> ints(const std::string& key) const {
    const auto list = attrs.integers(key);
    return std::vector<int>(list.begin(), list.end());
  }
  Axes axes() const { return attrs.text("dims", "none") == "none" ? Axes() : Axes(ints("dims")); }
  Shape shape() const { return Shape(attrs.integers("shape")); }
  Reduction reduction() const {
    const std::string how = attrs.text("reduction", "mean");
    return how == "mean" ? Reduction::mean : how == "sum" ? Reduction::sum : Reduction::none;
  }

  std::string name;
  golden::Words attrs;
  const NamedTensors& tensors;
  std::vector<std::pair<std::string, Tensor<T>>> inputs;
  mutable std::optional<Tensor<std::int64_t>> indices;  // the answer's second part, where it has one
};

template <class T> struct Call {
  const char* op;
  Tensor<T> (*f)(const Case<T>&);
};

template <class T> const std::vector<Call<T>>& calls() {
  using C = Case<T>;
  static constexpr double inf = std::numeric_limits<double>::infinity();
  static const std::vector<Call<T>> all{
      {"add", [](const C& c) { return c("a") + c("b"); }},
      {"sub", [](const C& c) { return c("a") - c("b"); }},
      {"mul", [](const C& c) { return c("a") * c("b"); }},
      {"div", [](const C& c) { return c("a") / c("b"); }},
      {"neg", [](const C& c) { return -c("x"); }},
      {"add_number", [](const C& c) { return c("x") + c.number("number"); }},
      {"sub_number", [](const C& c) { return c("x") - c.number("number"); }},
      {"number_sub", [](const C& c) { return c.number("number") - c("x"); }},
      {"mul_number", [](const C& c) { return c.number("number") * c("x"); }},
      {"div_number", [](const C& c) { return c("x") / c.number("number"); }},
      {"number_div", [](const C& c) { return c.number("number") / c("x"); }},
      {"pow", [](const C& c) { return pow(c("a"), c("b")); }},
      {"pow_scalar", [](const C& c) { return pow(c("x"), c.number("exponent")); }},
      {"maximum", [](const C& c) { return maximum(c("a"), c("b")); }},
      {"minimum", [](const C& c) { return minimum(c("a"), c("b")); }},
      {"exp", [](const C& c) { return exp(c("x")); }},
      {"log", [](const C& c) { return log(c("x")); }},
      {"sqrt", [](const C& c) { return sqrt(c("x")); }},
      {"tanh", [](const C& c) { return tanh(c("x")); }},
      {"erf", [](const C& c) { return erf(c("x")); }},
      {"relu", [](const C& c) { return relu(c("x")); }},
      {"gelu", [](const C& c) { return gelu(c("x"), c.attrs.text("approximate") == "tanh" ? Gelu::tanh : Gelu::erf); }},
      {"sigmoid", [](const C& c) { return sigmoid(c("x")); }},
      {"silu", [](const C& c) { return silu(c("x")); }},
      {"abs", [](const C& c) { return abs(c("x")); }},
      {"clamp", [](const C& c) { return clamp(c("x"), c.number("min", -inf), c.number("max", inf)); }},
      {"where", [](const C& c) { return where(c.mask("cond"), c("a"), c("b")); }},
      {"masked_fill", [](const C& c) { return masked_fill(c("x"), c.mask("mask"), c.number("value")); }},
      {"tril", [](const C& c) { return tril(c("x"), c.whole("diagonal")); }},
      {"triu", [](const C& c) { return triu(c("x"), c.whole("diagonal")); }},
      {"matmul", [](const C& c) { return matmul(c("a"), c("b")); }},
      {"transpose", [](const C& c) { return c("x").transpose(c.axis("dim0"), c.axis("dim1")); }},
      {"permute", [](const C& c) { return c("x").permute(c.ints("dims")); }},
      {"reshape", [](const C& c) { return c("x").reshape(c.shape()); }},
      {"expand", [](const C& c) { return broadcast_to(c("x"), c.shape()); }},
      {"contiguous", [](const C& c) { return contiguous(c("x").T()); }},
      {"slice",
       [](const C& c) { return c("x").slice(c.axis(), c.whole("start"), c.whole("stop"), c.whole("step", 1)); }},
      {"unslice",
       [](const C& c) { return unslice(c("x"), c.shape(), c.axis(), c.whole("start"), c.whole("step", 1)); }},
      {"select", [](const C& c) { return c("x").select(c.axis(), c.whole("index")); }},
      {"flip", [](const C& c) { return flip(c("x"), c.axis()); }},
      {"unsqueeze", [](const C& c) { return c("x").unsqueeze(c.axis()); }},
      {"squeeze", [](const C& c) { return c("x").squeeze(c.axis()); }},
      {"cat", [](const C& c) { return cat(c.all(), c.axis()); }},
      {"stack", [](const C& c) { return stack(c.all(), c.axis()); }},
      {"sum", [](const C& c) { return sum(c("x"), c.axes(), c.keepdim()); }},
      {"mean", [](const C& c) { return mean(c("x"), c.axes(), c.keepdim()); }},
      {"max",
       [](const C& c) {
         c.indices = argmax(c("x"), c.axis(), c.keepdim());
         return max(c("x"), c.axis(), c.keepdim());
       }},
      {"max_all", [](const C& c) { return max(c("x")); }},
      {"amax", [](const C& c) { return max(c("x"), c.axes(), c.keepdim()); }},
      {"min", [](const C& c) { return min(c("x"), c.axes(), c.keepdim()); }},
      {"var", [](const C& c) { return var(c("x"), c.axes(), c.attrs.flag("unbiased", true) ? 1 : 0, c.keepdim()); }},
      {"std",
       [](const C& c) { return std_dev(c("x"), c.axes(), static_cast<int>(c.whole("correction")), c.keepdim()); }},
      {"norm", [](const C& c) { return norm(c("x"), c.axes(), c.keepdim()); }},
      {"softmax", [](const C& c) { return softmax(c("x"), c.axis()); }},
      {"safe_softmax", [](const C& c) { return softmax(c("x"), c.axis(), EmptyRows::zero); }},
      {"log_softmax", [](const C& c) { return log_softmax(c("x"), c.axis()); }},
      {"logsumexp", [](const C& c) { return logsumexp(c("x"), c.axis(), c.keepdim()); }},
      {"cumsum", [](const C& c) { return cumsum(c("x"), c.axis()); }},
      {"gather", [](const C& c) { return gather(c("x"), c.axis(), c.index()); }},
      {"scatter_add", [](const C& c) { return scatter_add(c("x"), c.axis(), c.index(), c("src")); }},
      {"index_select", [](const C& c) { return index_select(c("x"), c.axis(), c.index()); }},
      {"index_add", [](const C& c) { return index_add(c("x"), c.axis(), c.index(), c("src")); }},
      {"embedding", [](const C& c) { return embedding(c.index(), c("weight")); }},
      {"topk",
       [](const C& c) {
         const auto top = topk(c("x"), c.whole("k"), c.axis());
         c.indices = top.indices;
         return top.values;
       }},
      {"linear", [](const C& c) { return linear(c("x"), c("weight"), c.maybe("bias")); }},
      {"layer_norm",
       [](const C& c) { return layer_norm(c("x"), c.maybe("weight"), c.maybe("bias"), c.attrs.number("eps")); }},
      {"rms_norm", [](const C& c) { return rms_norm(c("x"), c.maybe("weight"), c.attrs.number("eps")); }},
      {"cross_entropy",
       [](const C& c) {
         return cross_entropy(c("logits"), c.index("target"),
                              {.ignore_index = c.whole("ignore_index", -100),
                               .label_smoothing = c.attrs.number("label_smoothing", 0),
                               .reduction = c.reduction()});
       }},
      {"mse_loss", [](const C& c) { return mse_loss(c("x"), c("target"), c.reduction()); }},
      {"einsum",  // as the products they are
       [](const C& c) {
         const bool transposed = c.attrs.text("equation") != "bhqk,bhkd->bhqd";
         return matmul(c("a"), transposed ? mT(c("b")) : c("b"));
       }},
      {"sin", [](const C& c) { return sin(c("x")); }},
      {"cos", [](const C& c) { return cos(c("x")); }},
      {"expm1", [](const C& c) { return expm1(c("x")); }},
      {"log1p", [](const C& c) { return log1p(c("x")); }},
      {"softplus", [](const C& c) { return softplus(c("x"), c.attrs.number("beta")); }},
      {"softmax_backward", [](const C& c) { return softmax_backward(c("A"), c("dA"), c.axis("dim")); }},
      {"rope", [](const C& c) { return rope(c("x"), c.index("pos"), c.attrs.number("theta")); }},
      {"dropout", [](const C& c) { return dropout(c("x"), c.attrs.number("p"), c.mask("keep")); }},
  };
  return all;
}

// The reference's gradient, but where our convention is another on purpose: equal winners of a maximum along
// one axis share what PyTorch gives to the first, and the logsumexp of nothing but -inf has gradient 0.
Tensor<double> expected_gradient(const Case<double>& c, const std::string& op, const std::string& input) {
  const auto theirs = c.get<double>("grad/" + input);
  if (op == "max") {
    const auto x = c(input), most = max(x, c.axis(), true);
    const auto won = where(eq(x, most) | ne(x, x), ones_like(x), zeros_like(x));
    return won * (sum(theirs * won, c.axis(), true) / sum(won, c.axis(), true));
  }
  if (op == "logsumexp")
    return masked_fill(theirs, logsumexp(c(input), c.axis(), true) < std::numeric_limits<double>::lowest(), 0);
  return theirs;
}

// Whether every finite number of the case is one in float too, not 0 and not infinite.
bool fits_float(const std::string& name, const NamedTensors& tensors) {
  for (const auto& [key, tensor] : tensors) {
    if (key.rfind(name + "/", 0) != 0 || !std::holds_alternative<Tensor<double>>(tensor)) continue;
    for (const double v : std::get<Tensor<double>>(tensor).to_vector())
      if (std::isfinite(v) && v != 0 &&
          (std::abs(v) > std::numeric_limits<float>::max() || std::abs(v) < std::numeric_limits<float>::min()))
        return false;
  }
  return true;
}

// Checks one case; gives the operations that it met, in a backward pass too: an outer tape sees both.
template <class T>
std::set<std::string> check_case(const golden::Words& line, const NamedTensors& tensors, double tolerance) {
  const std::string& op = line.text("op");
  const auto& all = calls<T>();
  const auto call = std::find_if(all.begin(), all.end(), [&](const Call<T>& each) { return each.op == op; });
  REQUIRE_MESSAGE(call != all.end(), "no call for operation " << op);
  const Case<T> c(line, tensors);
  Tape<T> outer, tape;
  for (const auto& input : c.inputs) outer.watch(input.second), tape.watch(input.second);
  const auto differs = [&](const auto& x, const Tensor<double>& reference) {
    return golden::difference(to<double>(detach(x)), reference, tolerance);
  };
  const Tensor<T> y = call->f(c);
  CHECK(differs(y, c.template get<double>("out/out")) == ""sv);
  CHECK(c.indices.has_value() == tensors.contains(c.name + "/out/indices"));
  if (c.indices) CHECK(equal(*c.indices, c.template get<std::int64_t>("out/indices")));
  const auto grad = tape.backward(y, to<T>(c.template get<double>("grad_out")));
  for (const auto& input : c.inputs) {  // no structured binding: clang 14's lambdas cannot capture those
    const std::string& name = input.first;
    const Tensor<T>& x = input.second;
    CAPTURE(name);
    CHECK(differs(grad[x], expected_gradient(Case<double>(line, tensors), op, name)) == ""sv);
  }
  std::set<std::string> met;
  for (std::int64_t i = 0; i < outer.size(); ++i)
    if (const Op* recorded = outer.node(i).op) met.insert(recorded->name);
  return met;
}

template <class T> std::set<std::string> check_file(const std::string& name, double tolerance) {
  const NamedTensors tensors = load_npz(golden::path(name + ".npz"));
  std::set<std::string> met;
  for (const golden::Words& line : golden::table(name + ".tsv")) {
    const std::string& label = line.text("name");
    if (std::is_same_v<T, float> && !fits_float(label, tensors)) continue;
    CAPTURE(label);
    met.merge(check_case<T>(line, tensors, std::max(tolerance, line.number("tol"))));
  }
  return met;
}

template <class T> std::set<std::string> check_all(double tolerance) {
  auto names = check_file<T>("ops", tolerance);
  if (std::getenv("TAPEHEAD_GOLDEN") == nullptr)
    names.merge(check_file<T>("ops_more", tolerance));  // another oracle has none
  return names;
}

// The names of the operations that the cases have met, in a backward pass too; checks those cases, once.
const std::set<std::string>& met_in_double() {
  static const std::set<std::string> met = check_all<double>(0);
  return met;
}

}  // namespace

TEST_CASE("operations: PyTorch's and NumPy's answers, values and gradients, in double") {
  CHECK(met_in_double().size() > 50);
}

TEST_CASE("every operation has a golden case") {
  // Attention is compared with PyTorch in golden_attention_test.cpp, and the gradient of a norm's bias as layer_norm's.
  const std::set<std::string> golden_attention{"norm_bias_backward",        "flash_attention",
                                               "flash_attention_qkvpacked", "flex_attention",
                                               "flash_attention_varlen",    "fused_attention_gradient"};
  for (const Op* op : all_operations()) {
    const std::string name = op->name;
    if (name.rfind("test: ", 0) == 0) continue;  // those that tests define
    CAPTURE(name);
    CHECK_MESSAGE(met_in_double().count(name) + golden_attention.count(name) == 1,
                  "add a case to tests/golden/make_ops_more.py");
  }
}

// In float the inputs are rounded too: a few ε for each of the dozen operations behind a gradient of size 10
// or less.
TEST_CASE("operations: the same in float") { CHECK(check_all<float>(5e-6).size() > 50); }
