#include "tapehead/ops/dropout.hpp"

#include "kernels/require.hpp"
#include "tapehead/autograd/record.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

namespace {
void check_share(double p) {
  require<ValueError>(p >= 0 && p <= 1, "dropout: p {}; it is a probability, so it must be in [0, 1]", p);
}
}  // namespace

const Op dropout_op{"dropout", "y = keep ? x / (1 - p) : 0", "dx = keep ? dy / (1 - p) : 0", "mask broadcasts to x"};
template <class T> Real<T> dropout(const Tensor<T>& x, double p, const Tensor<bool>& keep) {
  check_share(p);
  require<ShapeError>(broadcasts_to(keep.shape(), x.shape()),
                      "dropout: a mask of shape {} does not broadcast to the tensor's shape {}", keep.shape(),
                      x.shape());
  const T scale = p < 1 ? static_cast<T>(1 / (1 - p)) : T{0};
  auto y = detail::map<T>("dropout", x, keep, [scale](T v, bool k) { return k && scale != 0 ? v * scale : T{0}; });
  const auto pullback = [p](const auto& dy, const auto& kept) { return dropout(dy, p, kept); };
  return record(dropout_op, std::move(y), wrt(x, pullback, keep));
}

template <class T> Real<T> dropout(const Tensor<T>& x, double p, TorchRandom& generator) {
  check_share(p);
  return p == 0 ? x : dropout(x, p, generator.bernoulli(1 - p, x.shape()));
}

#define TAPEHEAD_DROPOUT(T)                                                  \
  template Tensor<T> dropout(const Tensor<T>&, double, const Tensor<bool>&); \
  template Tensor<T> dropout(const Tensor<T>&, double, TorchRandom&);
TAPEHEAD_REALS(TAPEHEAD_DROPOUT)

}  // namespace tapehead
