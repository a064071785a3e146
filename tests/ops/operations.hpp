#pragma once
// Every operation of the library with inputs to run it on: the table that operations_test.cpp walks.
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapehead/tapehead.hpp"

struct Operation {
  /// f on a list of tensors, from a function of one, two or three. Plain pointers: a std::function for each
  /// of a hundred lambdas took most of the time that the table takes to compile.
  template <class T> class Function {
    using X = tapehead::Tensor<T>;
    using One = X (*)(X);
    using Two = X (*)(X, X);
    using Three = X (*)(X, X, X);

   public:
    template <class F> Function(F f) {
      if constexpr (std::is_convertible_v<F, One>)
        one_ = f;
      else if constexpr (std::is_convertible_v<F, Two>)
        two_ = f;
      else
        three_ = f;
    }
    X operator()(const std::vector<X>& x) const {
      return one_ != nullptr   ? one_(x.at(0))
             : two_ != nullptr ? two_(x.at(0), x.at(1))
                               : three_(x.at(0), x.at(1), x.at(2));
    }

   private:
    One one_ = nullptr;
    Two two_ = nullptr;
    Three three_ = nullptr;
  };

  std::string name;  // of the Op that it records
  std::vector<tapehead::Tensor<double>> inputs;
  Function<double> f;
  Function<float> in_float;  // the same
  /// Elementwise: takes inputs of any shape, and element i of the result comes from element i of the inputs
  /// alone.
  bool elementwise = false;
  /// How many records one call appends: 1, unless f has to prepare something for the operation to be reached.
  int records = 1;
  /// 2: differentiable again and again. A fused kernel's result is so once, its gradients not at all: asking
  /// for more throws.
  int derivatives = 2;
};

namespace operation_rows {

using namespace tapehead;
using Index = Tensor<std::int64_t>;

inline NumpyRandom& rng() {
  static NumpyRandom one(2023);
  return one;
}
inline Tensor<double> draw(const Shape& shape) { return rng().randn(shape); }
inline Tensor<double> positive(const Shape& shape) { return rng().rand(shape) + 0.3; }
inline Tensor<bool> coins(const Shape& shape) { return rng().rand(shape) < 0.5; }

// From a generic lambda without captures.
template <class F> Operation operation(const char* name, const std::vector<Tensor<double>>& inputs, F f) {
  return {name, inputs, f, f};
}
template <class F> Operation elementwise(const char* name, const std::vector<Tensor<double>>& inputs, F f) {
  return {name, inputs, f, f, true};
}
// One that is reached by several records.
template <class F> Operation in_steps(const char* name, const std::vector<Tensor<double>>& inputs, F f) {
  Operation made = operation(name, inputs, f);
  made.records = 2;
  return made;
}
// One that is reached by a backward pass through another: on the outer tape it is the second of two records.
template <class F> Operation backward_of(const char* name, const std::vector<Tensor<double>>& inputs, F) {
  return in_steps(name, inputs, [](auto x, auto dy) {
    Tape<typename decltype(x)::element> tape;
    tape.watch(x);
    return tape.backward(F()(x), dy)[x];
  });
}

inline std::vector<Operation> arithmetic_rows() {
  return {
      elementwise("add", {draw({2, 3, 1}), draw({3, 5})}, [](auto a, auto b) { return a + b; }),
      elementwise("sub", {draw({2, 3, 1}), draw({3, 5})}, [](auto a, auto b) { return a - b; }),
      elementwise("mul", {draw({2, 3, 1}), draw({3, 5})}, [](auto a, auto b) { return a * b; }),
      elementwise("div", {draw({2, 3, 1}), positive({3, 5})}, [](auto a, auto b) { return a / b; }),
      operation("mul", {draw({3, 5}), draw({})}, [](auto a, auto b) { return a * b; }),
      elementwise("neg", {draw({3, 5})}, [](auto x) { return -x; }),
      elementwise("add_number", {draw({3, 5})}, [](auto x) { return x + 1.5; }),
      elementwise("mul_number", {draw({3, 5})}, [](auto x) { return -2.5 * x; }),
      elementwise("div_number", {draw({3, 5})}, [](auto x) { return x / 3; }),
      elementwise("maximum", {draw({2, 3, 1}), draw({3, 5})}, [](auto a, auto b) { return maximum(a, b); }),
      elementwise("minimum", {draw({2, 3, 1}), draw({3, 5})}, [](auto a, auto b) { return minimum(a, b); }),
      elementwise("pow", {positive({2, 3, 1}), draw({3, 5})}, [](auto a, auto b) { return pow(a, b); }),
      elementwise("pow_number", {positive({3, 5})}, [](auto x) { return pow(x, 2.5); }),
      operation("pow_number", {draw({3, 5})}, [](auto x) { return pow(x, 3); }),
      operation("pow_number", {draw({3, 5})}, [](auto x) { return pow(x, 2); }),
      operation("pow_number", {draw({3, 5})}, [](auto x) { return pow(x, 1); }),
  };
}

inline std::vector<Operation> math_rows() {
  static const Tensor<bool> heads = coins({2, 3, 5}), rows = coins({3, 5});
  return {
      elementwise("exp", {draw({3, 5})}, [](auto x) { return exp(x); }),
      elementwise("expm1", {draw({3, 5})}, [](auto x) { return expm1(x); }),
      elementwise("log", {positive({3, 5})}, [](auto x) { return log(x); }),
      elementwise("log1p", {positive({3, 5})}, [](auto x) { return log1p(x); }),
      elementwise("sin", {draw({3, 5})}, [](auto x) { return sin(x); }),
      elementwise("cos", {draw({3, 5})}, [](auto x) { return cos(x); }),
      elementwise("sqrt", {positive({3, 5})}, [](auto x) { return sqrt(x); }),
      elementwise("abs", {draw({3, 5})}, [](auto x) { return abs(x); }),
      elementwise("tanh", {draw({3, 5})}, [](auto x) { return tanh(x); }),
      elementwise("erf", {draw({3, 5})}, [](auto x) { return erf(x); }),
      elementwise("sigmoid", {draw({3, 5})}, [](auto x) { return sigmoid(x); }),
      elementwise("relu", {draw({3, 5})}, [](auto x) { return relu(x); }),
      elementwise("gelu", {draw({3, 5})}, [](auto x) { return gelu(x); }),
      elementwise("gelu_tanh", {draw({3, 5})}, [](auto x) { return gelu(x, Gelu::tanh); }),
      elementwise("silu", {draw({3, 5})}, [](auto x) { return silu(x); }),
      elementwise("softplus", {draw({3, 5})}, [](auto x) { return softplus(x, 3, 1.5); }),
      backward_of("sigmoid_backward", {draw({3, 5}), draw({3, 5})}, [](auto x) { return sigmoid(x); }),
      backward_of("gaussian", {draw({3, 5}), draw({3, 5})}, [](auto x) { return erf(x); }),
      backward_of("gelu_backward", {draw({3, 5}), draw({3, 5})}, [](auto x) { return gelu(x); }),
      backward_of("gate_backward", {draw({3, 5}), draw({3, 5})}, [](auto x) { return silu(x); }),
      backward_of("gate_backward", {draw({3, 5}), draw({3, 5})}, [](auto x) { return gelu(x, Gelu::tanh); }),
      elementwise("clamp", {draw({3, 5})}, [](auto x) { return clamp(x, -0.5, 0.75); }),
      operation("where", {draw({3, 1}), draw({5})}, [](auto a, auto b) { return where(heads, a, b); }),
      operation("masked_fill", {draw({2, 3, 5})}, [](auto x) { return masked_fill(x, rows, -7); }),
      operation("tril", {draw({2, 3, 5})}, [](auto x) { return tril(x, 1); }),
      operation("triu", {draw({2, 5, 3})}, [](auto x) { return triu(x, -1); }),
  };
}

inline std::vector<Operation> view_rows() {
  std::vector<Operation> rows{
      operation("reshape", {draw({2, 3, 5})},
                [](auto x) {
                  return reshape(x, {5, -1});
                }),
      operation("transpose", {draw({2, 3, 5})}, [](auto x) { return transpose(x, 0, -1); }),
      operation("permute", {draw({2, 3, 5})},
                [](auto x) {
                  return permute(x, {2, 0, 1});
                }),
      operation("slice", {draw({2, 7, 3})}, [](auto x) { return slice(x, 1, 1, 6, 2); }),
      operation("unslice", {draw({2, 3})},
                [](auto x) {
                  return unslice(x, {2, 8}, 1, 1, 3);
                }),
      operation("select", {draw({2, 3, 5})}, [](auto x) { return select(x, 1, -1); }),
      operation("flip", {draw({2, 3, 5})}, [](auto x) { return flip(x, 1); }),
      operation("unsqueeze", {draw({2, 3})}, [](auto x) { return unsqueeze(x, 1); }),
      operation("squeeze", {draw({2, 1, 3})}, [](auto x) { return squeeze(x, 1); }),
      operation("sum_to", {draw({2, 3, 4})},
                [](auto x) {
                  return sum_to(x, {3, 1});
                }),
      operation("broadcast_to", {draw({3, 1})},
                [](auto x) {
                  return broadcast_to(x, {2, 3, 5});
                }),
      operation("cat", {draw({2, 3}), draw({2, 1}), draw({2, 4})},
                [](auto a, auto b, auto c) {
                  return cat(std::vector{a, b, c}, 1);
                }),
      operation("stack", {draw({2, 3}), draw({2, 3}), draw({2, 3})},
                [](auto a, auto b, auto c) {
                  return stack(std::vector{a, b, c}, 1);
                }),
      operation("clone", {draw({3, 5})}, [](auto x) { return clone(x); }),
  };
  return rows;
}

inline std::vector<Operation> reduction_rows() {
  return {
      operation("sum", {draw({2, 3, 5})}, [](auto x) { return sum(x, 1); }),
      operation("sum", {draw({2, 3, 5})},
                [](auto x) {
                  return sum(x, {0, 2}, true);
                }),
      operation("mean", {draw({2, 3, 5})}, [](auto x) { return mean(x, -1); }),
      operation("mean", {draw({2, 3, 5})},
                [](auto x) {
                  return mean(x, {0, 1}, true);
                }),
      operation("max", {draw({2, 3, 5})}, [](auto x) { return max(x, 1); }),
      operation("max", {draw({2, 3, 5})}, [](auto x) { return max(x); }),
      operation("min", {draw({2, 3, 5})},
                [](auto x) {
                  return min(x, {0, 2}, true);
                }),
      operation("var", {draw({2, 3, 5})}, [](auto x) { return var(x, -1); }),
      operation("var", {draw({2, 3, 5})},
                [](auto x) {
                  return var(x, {0, 1}, 0, true);
                }),
      operation("std", {draw({2, 3, 5})}, [](auto x) { return std_dev(x, 1); }),
      operation("norm", {draw({2, 3, 5})},
                [](auto x) {
                  return norm(x, {0, 2});
                }),
      operation("norm", {draw({2, 3, 5})}, [](auto x) { return norm(x, 1, true); }),
      operation("cumsum", {draw({2, 3, 5})}, [](auto x) { return cumsum(x, 1); }),
      operation("softmax", {draw({2, 3, 5})}, [](auto x) { return softmax(x, -1); }),
      operation("softmax", {draw({2, 3, 5})}, [](auto x) { return softmax(x, 0); }),
      operation("softmax_backward", {draw({2, 3, 5}), draw({2, 3, 5})},
                [](auto a, auto da) { return softmax_backward(a, da, 1); }),
      operation("log_softmax", {draw({2, 3, 5})}, [](auto x) { return log_softmax(x, 1); }),
      operation("logsumexp", {draw({2, 3, 5})}, [](auto x) { return logsumexp(x, 1); }),
      operation("logsumexp", {draw({2, 3, 5})}, [](auto x) { return logsumexp(x, -1, true); }),
  };
}

inline std::vector<Operation> product_rows() {
  static const Tensor<bool> kept = coins({3, 5});
  return {
      operation("matmul", {draw({3, 5}), draw({5, 2})}, [](auto a, auto b) { return matmul(a, b); }),
      operation("matmul", {draw({5}), draw({5})}, [](auto a, auto b) { return matmul(a, b); }),
      operation("matmul", {draw({3, 5}), draw({5})}, [](auto a, auto b) { return matmul(a, b); }),
      operation("matmul", {draw({5}), draw({5, 2})}, [](auto a, auto b) { return matmul(a, b); }),
      operation("matmul", {draw({2, 1, 3, 5}), draw({4, 5, 2})}, [](auto a, auto b) { return matmul(a, b); }),
      operation("matmul", {draw({2, 3, 5}), draw({5, 2})}, [](auto a, auto b) { return matmul(a, b); }),
      operation("matmul", {draw({2, 3, 5}), draw({5})}, [](auto a, auto b) { return matmul(a, b); }),
      operation("matmul", {draw({5}), draw({2, 5, 3})}, [](auto a, auto b) { return matmul(a, b); }),
      operation("linear", {draw({2, 3, 5}), draw({4, 5}), draw({4})},
                [](auto x, auto W, auto b) { return linear(x, W, b); }),
      operation("linear", {draw({5}), draw({4, 5})}, [](auto x, auto W) { return linear(x, W); }),
      operation("rope", {draw({2, 3, 6})},
                [](auto x) {
                  return rope(x, Index{0, 5, 2});
                }),
      operation("dropout", {draw({2, 3, 5})}, [](auto x) { return dropout(x, 0.3, kept); }),
      operation("layer_norm", {draw({2, 3, 5}), draw({5}), draw({5})},
                [](auto x, auto w, auto b) { return layer_norm(x, w, b); }),
      operation("layer_norm", {draw({3, 5})}, [](auto x) { return layer_norm(x); }),
      operation("rms_norm", {draw({2, 3, 5}), draw({5})}, [](auto x, auto w) { return rms_norm(x, w); }),
      backward_of("layer_norm_backward", {draw({3, 5}), draw({3, 5})}, [](auto x) { return layer_norm(x); }),
      backward_of("rms_norm_backward", {draw({3, 5}), draw({3, 5})}, [](auto x) { return rms_norm(x); }),
      in_steps("layer_norm_backward", {draw({3, 5}), draw({5}), draw({3, 5})},
               [](auto x, auto w, auto dy) {
                 Tape<typename decltype(x)::element> tape;
                 tape.watch(x);
                 return tape.backward(layer_norm(x, w), dy)[x];
               }),
      in_steps("norm_weight_backward", {draw({3, 5}), draw({3, 5})},
               [](auto x, auto dy) {
                 using T = typename decltype(x)::element;
                 const auto w = ones<T>({5});
                 Tape<T> tape;
                 tape.watch(w);
                 return tape.backward(layer_norm(x, w), dy)[w];
               }),
      in_steps("norm_weight_backward", {draw({3, 5}), draw({3, 5})},
               [](auto x, auto dy) {
                 using T = typename decltype(x)::element;
                 const auto w = ones<T>({5});
                 Tape<T> tape;
                 tape.watch(w);
                 return tape.backward(rms_norm(x, w), dy)[w];
               }),
      in_steps("norm_bias_backward", {draw({3, 5})},
               [](auto dy) {
                 using T = typename decltype(dy)::element;
                 const auto b = ones<T>({5});
                 Tape<T> tape;
                 tape.watch(b);
                 return tape.backward(layer_norm(ones_like(dy), ones<T>({5}), b), dy)[b];
               }),
  };
}

inline std::vector<Operation> indexing_rows() {
  static const Index index{{2, 0, 2, 1, 1}, {0, 0, 1, 2, 2}};
  return {
      operation("gather", {draw({2, 3})}, [](auto x) { return gather(x, 1, index); }),
      operation("gather", {draw({4, 6})}, [](auto x) { return gather(x, 0, index); }),
      operation("scatter_add", {draw({2, 3}), draw({2, 5})},
                [](auto x, auto src) { return scatter_add(x, 1, index, src); }),
      operation("index_select", {draw({2, 3, 4})},
                [](auto x) {
                  return index_select(x, 1, Index{2, 0, 2, 2});
                }),
      operation("index_add", {draw({2, 3, 4}), draw({2, 5, 4})},
                [](auto x, auto src) {
                  return index_add(x, 1, Index{2, 0, 2, 2, 0}, src);
                }),
      operation("embedding", {draw({4, 3})}, [](auto w) { return embedding(index, w); }),
      operation("topk", {draw({3, 7})}, [](auto x) { return topk(x, 3).values; }),
      operation("topk", {draw({5, 2})}, [](auto x) { return topk(x, 2, 0).values; }),
      operation("cross_entropy", {draw({4, 5})},
                [](auto x) {
                  return cross_entropy(x, Index{0, -100, 4, 2});
                }),
      operation("cross_entropy", {draw({2, 3, 5})},
                [](auto x) {
                  return cross_entropy(x, Index{{0, 9, 4}, {2, 1, 9}},
                                       {.ignore_index = 9, .label_smoothing = 0.2, .reduction = Reduction::none});
                }),
      operation("cross_entropy", {draw({4, 5})},
                [](auto x) {
                  return cross_entropy(x, Index{0, 3, 4, 2}, {.label_smoothing = 0.1, .reduction = Reduction::sum});
                }),
      backward_of("cross_entropy_backward", {draw({4, 5}), draw({})},
                  [](auto x) {
                    return cross_entropy(x, Index{0, -100, 4, 2}, {.label_smoothing = 0.1});
                  }),
      backward_of(
          "cross_entropy_backward", {draw({2, 3, 5}), draw({2, 3})},
          [](auto x) {
            return cross_entropy(x, Index{{0, 9, 4}, {2, 1, 9}}, {.ignore_index = 9, .reduction = Reduction::none});
          }),
      operation("mse_loss", {draw({3, 5}), draw({3, 5})}, [](auto x, auto t) { return mse_loss(x, t); }),
      operation("mse_loss", {draw({3, 5}), draw({3, 5})},
                [](auto x, auto t) { return mse_loss(x, t, Reduction::none); }),
  };
}

// The fused kernel: its operations, and their shared gradient.
inline std::vector<Operation> fused_rows() {
  const auto flash = [](auto q, auto k, auto v) { return flash_attention(q, k, v).out; };
  std::vector<Operation> rows{
      operation("flash_attention", {draw({2, 3, 4}), draw({2, 5, 4}), draw({2, 5, 2})}, flash),
      operation("flash_attention", {draw({3, 4}), draw({5, 4}), draw({5, 2})},
                [](auto q, auto k, auto v) { return flash_attention(q, k, v, {.causal = true}).out; }),
      operation("flash_attention_qkvpacked", {draw({2, 4, 3, 2})},
                [](auto qkv) { return flash_attention_qkvpacked(qkv, 2, {.causal = true}).out; }),
      operation("flex_attention", {draw({1, 2, 3, 4}), draw({1, 2, 5, 4}), draw({1, 2, 5, 2})},
                [](auto q, auto k, auto v) {
                  const auto twice = score_mod([](auto s, auto, auto, auto, auto) { return s * 2; });
                  return flex_attention(q, k, v, twice).out;
                }),
      operation("flash_attention_varlen", {draw({4, 2, 3}), draw({5, 2, 3}), draw({5, 2, 3})},
                [](auto q, auto k, auto v) {
                  return flash_attention_varlen(q, k, v, Index{0, 1, 4}, Index{0, 3, 5}).out;
                }),
  };
  for (Operation& row : rows) row.derivatives = 1;
  rows.back().records = 2;  // it turns the layout first
  rows.push_back(backward_of("fused_attention_gradient", {draw({3, 4}), draw({3, 4})},
                             [](auto x) { return flash_attention(x, ones_like(x) * 0.5, ones_like(x)).out; }));
  rows.back().derivatives = 0;
  return rows;
}

}  // namespace operation_rows

inline const std::vector<Operation>& operations() {
  using namespace operation_rows;
  static const std::vector<Operation> all = [] {
    std::vector<Operation> rows;
    for (auto* group : {arithmetic_rows, math_rows, view_rows, reduction_rows, product_rows, indexing_rows, fused_rows})
      for (Operation& row : group()) rows.push_back(std::move(row));
    return rows;
  }();
  return all;
}
