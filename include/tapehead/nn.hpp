#pragma once
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "tapehead/arithmetic.hpp"
#include "tapehead/attention.hpp"
#include "tapehead/matmul.hpp"
#include "tapehead/random.hpp"
#include "tapehead/tape.hpp"
#include "tapehead/views.hpp"

// Layers. A module is a struct whose parameters are plain tensors; it says what it holds once, in members(visit), and
// gets parameters(), names, train() and eval() from that. Weights are drawn as torch.nn draws them, in its order, so
// that a module made from the same seed gives the same outputs.

namespace tapehead::nn {

namespace detail {
template <class M>
inline constexpr bool is_tensor = false;
template <class T>
inline constexpr bool is_tensor<Tensor<T>> = true;
}  // namespace detail

/// What every layer over T shares. `struct Mine : Module<Mine, T>` has `template <class F> void members(F&& visit)` that
/// calls visit("name", member) for each tensor and each module in it.
template <class Self, class T>
struct Module {
  bool training = true;

  /// Calls f(name, tensor) for each parameter, inner modules' names with a dot: "W_q.weight", PyTorch's way.
  template <class F>
  void each_parameter(F&& f, const std::string& prefix = "") {
    self().members([&](const std::string& name, auto& member) {
      if constexpr (detail::is_tensor<std::remove_reference_t<decltype(member)>>)
        f(prefix + name, member);
      else
        member.each_parameter(f, prefix + name + ".");
    });
  }
  /// Calls f(module) for this module and each one inside it.
  template <class F>
  void each_module(F&& f) {
    f(*this);
    self().members([&](const std::string&, auto& member) {
      if constexpr (!detail::is_tensor<std::remove_reference_t<decltype(member)>>) member.each_module(f);
    });
  }
  /// All parameters with their names, as tape.watch() takes them.
  std::vector<Named<T>> parameters() {
    std::vector<Named<T>> all;
    each_parameter([&](const std::string& name, Tensor<T>& parameter) { all.push_back({name, parameter}); });
    return all;
  }
  /// Dropout is on while training and off in evaluation.
  void train(bool on = true) { each_module([on](auto& module) { module.training = on; }); }
  void eval() { train(false); }

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

/// y = x Wᵀ + b. x is (…, in), W (out, in), b (out,), y (…, out).
template <std::floating_point T>
struct Linear : Module<Linear<T>, T> {
  Tensor<T> weight;
  std::optional<Tensor<T>> bias;

  /// Weight and bias uniform in ±1/√in: torch.nn.Linear's kaiming_uniform_(a=√5), weight drawn first.
  Linear(std::int64_t in, std::int64_t out, TorchRandom& rng, bool with_bias = true)
      : weight(rng.linear_weight<T>(in, out)) {
    if (with_bias) bias = rng.linear_bias<T>(in, out);
  }
  Tensor<T> operator()(const Tensor<T>& x) const {
    const Tensor<T> y = matmul(x, weight.T());
    return bias ? y + *bias : y;
  }
  template <class F>
  void members(F&& visit) {
    visit("weight", weight);
    if (bias) visit("bias", *bias);
  }
};

/// Single-head self-attention: x → (Q, K, V) → attention → output projection. x and y are (B, L, d_model).
template <std::floating_point T>
struct SelfAttention : Module<SelfAttention<T>, T> {
  struct Options {
    std::int64_t d_k = 0;  ///< 0: d_model
    bool causal = false;
    double dropout = 0;    ///< of the attention weights, while training; drawn from the generator given at birth
  };
  Linear<T> W_q, W_k, W_v, W_o;
  Options options;
  TorchRandom& generator;

  SelfAttention(std::int64_t d_model, TorchRandom& rng, const Options& o = {})
      : SelfAttention(d_model, o.d_k > 0 ? o.d_k : d_model, rng, o) {}

  Tensor<T> operator()(const Tensor<T>& x, const std::optional<Tensor<bool>>& mask = {}) const {
    const Tensor<T> q = W_q(x);  // (B, L, d_k): what I seek
    const Tensor<T> k = W_k(x);  //              how to address me
    const Tensor<T> v = W_v(x);  //              what I return
    const auto attended = attention(unsqueeze(q, 1), unsqueeze(k, 1), unsqueeze(v, 1),  // one head: (B, 1, L, d_k)
                                    {.mask = mask,
                                     .causal = options.causal,
                                     .dropout_p = this->training ? options.dropout : 0.0,
                                     .generator = &generator});
    return W_o(squeeze(attended.out, 1));
  }
  template <class F>
  void members(F&& visit) {
    visit("W_q", W_q), visit("W_k", W_k), visit("W_v", W_v), visit("W_o", W_o);
  }

 private:
  SelfAttention(std::int64_t d_model, std::int64_t d_k, TorchRandom& rng, const Options& o)
      : W_q(d_model, d_k, rng, false),
        W_k(d_model, d_k, rng, false),
        W_v(d_model, d_k, rng, false),
        W_o(d_k, d_model, rng, false),
        options(o),
        generator(rng) {}
};

}  // namespace tapehead::nn
