#include "tapehead/models/layers.hpp"

#include <fmt/format.h>

#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/dropout.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/indexing.hpp"
#include "tapehead/ops/matmul.hpp"
#include "tapehead/ops/norm.hpp"

namespace tapehead::nn {

template <std::floating_point T>
Linear<T>::Linear(std::int64_t in, std::int64_t out, TorchRandom& rng, bool with_bias)
    : weight(rng.linear_weight<T>(in, out)) {
  if (with_bias) bias = rng.linear_bias<T>(in, out);
}
template <std::floating_point T>
Tensor<T> Linear<T>::operator()(const Tensor<T>& x) const {
  if (x.rank() == 0 || x.size(-1) != weight.size(1))
    throw ShapeError(fmt::format("Linear: input {} on a weight of {}; the input is (…, {})", x.shape().str(),
                                 weight.shape().str(), weight.size(1)));
  return linear(x, weight, bias);
}

template <std::floating_point T>
LayerNorm<T>::LayerNorm(std::int64_t n, bool with_bias, double epsilon) : weight(ones<T>({n})), eps(epsilon) {
  if (with_bias) bias = zeros<T>({n});
}
template <std::floating_point T>
Tensor<T> LayerNorm<T>::operator()(const Tensor<T>& x) const {
  return layer_norm(x, weight, bias, eps);
}

template <std::floating_point T>
RMSNorm<T>::RMSNorm(std::int64_t n, double epsilon) : weight(ones<T>({n})), eps(epsilon) {}
template <std::floating_point T>
Tensor<T> RMSNorm<T>::operator()(const Tensor<T>& x) const {
  return rms_norm(x, weight, eps);
}

template <std::floating_point T>
Embedding<T>::Embedding(std::int64_t vocabulary, std::int64_t width, TorchRandom& rng)
    : weight(rng.randn<T>({vocabulary, width})) {}
template <std::floating_point T>
Tensor<T> Embedding<T>::operator()(const Tensor<std::int64_t>& index) const {
  return embedding(index, weight);
}

template <std::floating_point T>
Dropout<T>::Dropout(double share, TorchRandom& rng) : p(share), generator_(&rng) {
  if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("Dropout: p {}; it is a share, 0 to 1", p));
}
template <std::floating_point T>
Tensor<T> Dropout<T>::operator()(const Tensor<T>& x) const {
  return this->training ? dropout(x, p, *generator_) : x;
}

template <std::floating_point T>
MLP<T>::MLP(std::int64_t width, std::int64_t hidden, TorchRandom& rng, bool with_bias, Gelu gelu_form)
    : c_fc(width, hidden, rng, with_bias), c_proj(hidden, width, rng, with_bias), form(gelu_form) {}
template <std::floating_point T>
Tensor<T> MLP<T>::operator()(const Tensor<T>& x) const {
  return c_proj(gelu(c_fc(x), form));
}

template <std::floating_point T>
SwiGLU<T>::SwiGLU(std::int64_t width, std::int64_t hidden, TorchRandom& rng, bool with_bias)
    : gate_proj(width, hidden, rng, with_bias),
      up_proj(width, hidden, rng, with_bias),
      down_proj(hidden, width, rng, with_bias) {}
template <std::floating_point T>
Tensor<T> SwiGLU<T>::operator()(const Tensor<T>& x) const {
  return down_proj(silu(gate_proj(x)) * up_proj(x));
}

#define TAPEHEAD_LAYERS(T)      \
  template struct Linear<T>;    \
  template struct LayerNorm<T>; \
  template struct RMSNorm<T>;   \
  template struct Embedding<T>; \
  template struct Dropout<T>;   \
  template struct MLP<T>;       \
  template struct SwiGLU<T>;
TAPEHEAD_LAYERS(float)
TAPEHEAD_LAYERS(double)

}  // namespace tapehead::nn
