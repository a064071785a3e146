#pragma once
#include <concepts>
#include <cstdint>
#include <optional>

#include "tapehead/ops/math.hpp"
#include "tapehead/models/module.hpp"
#include "tapehead/random/random.hpp"

namespace tapehead::nn {

/// y = x Wᵀ + b. x is (…, in), W (out, in), b (out,), y (…, out).
template <std::floating_point T>
struct Linear : Module<Linear<T>, T> {
  Tensor<T> weight;
  std::optional<Tensor<T>> bias;

  /// Weight and bias uniform in ±1/√in: torch.nn.Linear's kaiming_uniform_(a=√5), weight drawn first.
  Linear(std::int64_t in, std::int64_t out, TorchRandom& rng, bool with_bias = true);
  Tensor<T> operator()(const Tensor<T>& x) const;

  template <class F>
  void members(F&& visit) {
    visit("weight", weight);
    if (bias) visit("bias", *bias);
  }
};

/// Each row of n normalised to mean 0 and variance 1, times weight, plus bias: see layer_norm(). Weight
/// starts at 1, bias at 0.
template <std::floating_point T>
struct LayerNorm : Module<LayerNorm<T>, T> {
  Tensor<T> weight;
  std::optional<Tensor<T>> bias;
  double eps;

  explicit LayerNorm(std::int64_t n, bool with_bias = true, double eps = 1e-5);
  Tensor<T> operator()(const Tensor<T>& x) const;

  template <class F>
  void members(F&& visit) {
    visit("weight", weight);
    if (bias) visit("bias", *bias);
  }
};

/// Each row of n divided by its root mean square, times weight: see rms_norm(). Weight starts at 1.
template <std::floating_point T>
struct RMSNorm : Module<RMSNorm<T>, T> {
  Tensor<T> weight;
  double eps;

  explicit RMSNorm(std::int64_t n, double eps = 1e-6);
  Tensor<T> operator()(const Tensor<T>& x) const;

  template <class F>
  void members(F&& visit) {
    visit("weight", weight);
  }
};

/// Row i of the weight for each index i: (…) to (…, width). Starts standard normal, as torch.nn.Embedding.
template <std::floating_point T>
struct Embedding : Module<Embedding<T>, T> {
  Tensor<T> weight;  ///< (vocabulary, width)

  Embedding(std::int64_t vocabulary, std::int64_t width, TorchRandom& rng);
  /// Throws IndexError on an index outside the vocabulary.
  Tensor<T> operator()(const Tensor<std::int64_t>& index) const;

  template <class F>
  void members(F&& visit) {
    visit("weight", weight);
  }
};

/// Each element dropped with probability p while training, the others divided by 1 - p; x itself in
/// evaluation.
template <std::floating_point T>
struct Dropout : Module<Dropout<T>, T> {
  double p;

  /// Throws ValueError unless 0 <= p <= 1. The generator must outlive the module.
  Dropout(double p, TorchRandom& rng);
  Tensor<T> operator()(const Tensor<T>& x) const;

  template <class F>
  void members(F&&) {}

 private:
  TorchRandom* generator_;
};

/// Two layers with a bend between them, position by position: c_proj(gelu(c_fc(x))). x and y are (…, width).
template <std::floating_point T>
struct MLP : Module<MLP<T>, T> {
  Linear<T> c_fc, c_proj;
  Gelu form;

  MLP(std::int64_t width, std::int64_t hidden, TorchRandom& rng, bool with_bias = true,
      Gelu form = Gelu::erf);
  Tensor<T> operator()(const Tensor<T>& x) const;

  template <class F>
  void members(F&& visit) {
    visit("c_fc", c_fc), visit("c_proj", c_proj);
  }
};

/// down_proj(silu(gate_proj(x)) · up_proj(x)), element by element (Shazeer, "GLU Variants Improve
/// Transformer", 2020): three matrices, so `hidden` is usually taken two thirds as large as an MLP's.
template <std::floating_point T>
struct SwiGLU : Module<SwiGLU<T>, T> {
  Linear<T> gate_proj, up_proj, down_proj;

  SwiGLU(std::int64_t width, std::int64_t hidden, TorchRandom& rng, bool with_bias = false);
  Tensor<T> operator()(const Tensor<T>& x) const;

  template <class F>
  void members(F&& visit) {
    visit("gate_proj", gate_proj), visit("up_proj", up_proj), visit("down_proj", down_proj);
  }
};

}  // namespace tapehead::nn
