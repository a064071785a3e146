#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "tapehead/models/module.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/dropout.hpp"
#include "tapehead/ops/indexing.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/matmul.hpp"
#include "tapehead/ops/norm.hpp"
#include "tapehead/random/random.hpp"

namespace tapehead::nn {

/// y = x Wᵀ + b. x is (…, in), W (out, in), b (out,), y (…, out).
template <Floating T> struct Linear : Module<Linear<T>, T> {
  Tensor<T> weight;
  std::optional<Tensor<T>> bias;

  /// Weight and bias uniform in ±1/√in: torch.nn.Linear's kaiming_uniform_(a=√5), weight drawn first.
  Linear(std::int64_t in, std::int64_t out, TorchRandom& rng, bool with_bias = true)
      : weight(rng.linear_weight<T>(in, out)) {
    if (with_bias) bias = rng.linear_bias<T>(in, out);
  }
  Tensor<T> operator()(const Tensor<T>& x) const { return linear(x, weight, bias); }

  template <class F> void members(F&& visit) { visit("weight", weight), visit("bias", bias); }
};

/// Each row of n elements normalised to mean 0 and variance 1, times weight, plus bias: see layer_norm(). Weight
/// starts at 1, bias at 0.
template <Floating T> struct LayerNorm : Module<LayerNorm<T>, T> {
  Tensor<T> weight;
  std::optional<Tensor<T>> bias;
  double eps;

  explicit LayerNorm(std::int64_t n, bool with_bias = true, double epsilon = 1e-5)
      : weight(ones<T>({n})), eps(epsilon) {
    if (with_bias) bias = zeros<T>({n});
  }
  Tensor<T> operator()(const Tensor<T>& x) const { return layer_norm(x, weight, bias, eps); }

  template <class F> void members(F&& visit) { visit("weight", weight), visit("bias", bias); }
};

/// Each row of n elements divided by its root mean square, times weight: see rms_norm(). Weight starts at 1.
template <Floating T> struct RMSNorm : Module<RMSNorm<T>, T> {
  Tensor<T> weight;
  double eps;

  explicit RMSNorm(std::int64_t n, double epsilon = 1e-6) : weight(ones<T>({n})), eps(epsilon) {}
  Tensor<T> operator()(const Tensor<T>& x) const { return rms_norm(x, weight, eps); }

  template <class F> void members(F&& visit) { visit("weight", weight); }
};

/// Row i of the weight for each index i: (…) to (…, width). Starts standard normal, as torch.nn.Embedding.
template <Floating T> struct Embedding : Module<Embedding<T>, T> {
  Tensor<T> weight;  ///< (vocabulary, width)

  Embedding(std::int64_t vocabulary, std::int64_t width, TorchRandom& rng)
      : weight(rng.randn<T>({vocabulary, width})) {}
  /// Throws IndexError on an index outside the vocabulary.
  Tensor<T> operator()(const Tensor<std::int64_t>& index) const { return embedding(index, weight); }

  template <class F> void members(F&& visit) { visit("weight", weight); }
};

/// While training, each element is dropped with probability p and the others are divided by 1 - p; in evaluation
/// the result is x itself.
template <Floating T> struct Dropout : Module<Dropout<T>, T> {
  double p;

  /// Throws ValueError unless 0 <= p <= 1. The generator must outlive the module.
  Dropout(double p, TorchRandom& rng);
  Tensor<T> operator()(const Tensor<T>& x) const { return this->training ? dropout(x, p, *generator_) : x; }

  template <class F> void members(F&&) {}

 private:
  TorchRandom* generator_;
};

/// Two linear layers with a GELU between them, position by position: c_proj(gelu(c_fc(x))). x and y are (…, width).
template <Floating T> struct MLP : Module<MLP<T>, T> {
  Linear<T> c_fc, c_proj;
  Gelu form;

  MLP(std::int64_t width, std::int64_t hidden, TorchRandom& rng, bool with_bias = true, Gelu gelu_form = Gelu::erf)
      : c_fc(width, hidden, rng, with_bias), c_proj(hidden, width, rng, with_bias), form(gelu_form) {}
  Tensor<T> operator()(const Tensor<T>& x) const { return c_proj(gelu(c_fc(x), form)); }

  template <class F> void members(F&& visit) { visit("c_fc", c_fc), visit("c_proj", c_proj); }
};

/// down_proj(silu(gate_proj(x)) · up_proj(x)), element by element (Shazeer, "GLU Variants Improve Transformer",
/// 2020). It has three matrices, so `hidden` is usually two thirds of an MLP's.
template <Floating T> struct SwiGLU : Module<SwiGLU<T>, T> {
  Linear<T> gate_proj, up_proj, down_proj;

  SwiGLU(std::int64_t width, std::int64_t hidden, TorchRandom& rng, bool with_bias = false)
      : gate_proj(width, hidden, rng, with_bias),
        up_proj(width, hidden, rng, with_bias),
        down_proj(hidden, width, rng, with_bias) {}
  Tensor<T> operator()(const Tensor<T>& x) const { return down_proj(silu(gate_proj(x)) * up_proj(x)); }

  template <class F> void members(F&& visit) {
    visit("gate_proj", gate_proj), visit("up_proj", up_proj), visit("down_proj", down_proj);
  }
};

/// A function of a tensor without parameters, as a layer: relu, or a lambda.
template <class T> using Function = Tensor<T> (*)(const Tensor<T>&);

namespace detail {
// The element type of the first module among layers.
template <class L, class... More> struct ElementOf : ElementOf<More...> {};
template <class L, class... More>
requires requires { typename L::element; }
struct ElementOf<L, More...> {
  using type = typename L::element;
};
}  // namespace detail

/// Layers, one after the other: modules and functions of a tensor. Write braces, which C++ evaluates from the left: in
/// parentheses g++ would draw the weights of the last layer first.
///   nn::Sequential net{nn::Linear<float>(2, 64, rng), relu, nn::Linear<float>(64, 1, rng)};
///   net(x), net.parameters(), std::get<0>(net.layers).weight
/// Parameters are called as PyTorch calls them, by the layer's place: "0.weight", "2.bias". The name of a function
/// template (relu, tanh, gelu, …) stands for its version for the first layer's element type, in up to seven layers that
/// begin with a module. A function with more arguments is given as a lambda: [](auto x) { return softmax(x, -1); }.
template <class... L> struct Sequential : Module<Sequential<L...>, typename detail::ElementOf<L...>::type> {
  std::tuple<L...> layers;

  explicit Sequential(L... in_order) : layers(std::move(in_order)...) {}
  template <class X> auto operator()(const X& x) const { return from<0>(x); }

  template <class F> void members(F&& visit) {
    int i = 0;
    const auto next = [&](auto& layer) {
      const std::string name = std::to_string(i++);
      if constexpr (requires { layer.training; }) visit(name, layer);
    };
    std::apply([&](auto&... layer) { (next(layer), ...); }, layers);
  }

 private:
  template <std::size_t i, class X> auto from(const X& x) const {
    if constexpr (i == sizeof...(L))
      return x;
    else
      return from<i + 1>(std::get<i>(layers)(x));
  }
};
// A layer that is given as the name of a function template has no type to deduce, and takes the default.
template <class A> using Fn = Function<typename A::element>;
template <class A, class B = Fn<A>> Sequential(A, B) -> Sequential<A, B>;
template <class A, class B = Fn<A>, class C = Fn<A>> Sequential(A, B, C) -> Sequential<A, B, C>;
template <class A, class B = Fn<A>, class C = Fn<A>, class D = Fn<A>> Sequential(A, B, C, D) -> Sequential<A, B, C, D>;
template <class A, class B = Fn<A>, class C = Fn<A>, class D = Fn<A>, class E = Fn<A>> Sequential(A, B, C, D, E)
    -> Sequential<A, B, C, D, E>;
template <class A, class B = Fn<A>, class C = Fn<A>, class D = Fn<A>, class E = Fn<A>, class F = Fn<A>>
Sequential(A, B, C, D, E, F) -> Sequential<A, B, C, D, E, F>;
template <class A, class B = Fn<A>, class C = Fn<A>, class D = Fn<A>, class E = Fn<A>, class F = Fn<A>, class G = Fn<A>>
Sequential(A, B, C, D, E, F, G) -> Sequential<A, B, C, D, E, F, G>;

}  // namespace tapehead::nn
