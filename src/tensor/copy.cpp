#include "tensor/copy.hpp"

#include <type_traits>

#include "kernels/require.hpp"
#include "kernels/walk.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead::detail {

template <class E> Tensor<E> copied(const Tensor<E>& x) {
  Buffer<E> out(x.shape(), "copy");
  copy_to(out.data(), row_major(x.shape()), x);
  return out;
}

template <class To, class From> Tensor<To> cast(const Tensor<From>& x) {
  if constexpr (std::is_same_v<To, std::int64_t> && std::is_floating_point_v<From>)
    kernels::for_each_element(x.rank(), x.shape().begin(), x.strides().begin(), [&](std::int64_t offset) {
      const From v = x.data()[offset];
      require<ValueError>(v >= From(-0x1p63) && v < From(0x1p63), "to<int64>: {} does not fit a 64-bit integer", v);
    });
  return map<To>("to", x, [](From v) { return static_cast<To>(v); });
}

#define TAPEHEAD_COPY(E)                                  \
  template Tensor<E> copied(const Tensor<E>&);            \
  template Tensor<float> cast<float>(const Tensor<E>&);   \
  template Tensor<double> cast<double>(const Tensor<E>&); \
  template Tensor<bool> cast<bool>(const Tensor<E>&);     \
  template Tensor<std::int64_t> cast<std::int64_t>(const Tensor<E>&);
TAPEHEAD_ELEMENTS(TAPEHEAD_COPY)

}  // namespace tapehead::detail
