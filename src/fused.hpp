#pragma once
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/flash.hpp"
#include "kernels/flash_masks.hpp"
#include "tapehead/attention.hpp"
#include "tapehead/tensor.hpp"

// From tensors to a call of the fused kernel (kernels/flash.hpp): sizes and strides, what is asked of the scores as hooks,
// and one pullback that all inputs share.

namespace tapehead::detail {

/// x as the kernel reads it, broadcast to `whole`: (L, d), (H, L, d) or (B, H, L, d).
template <class E>
kernels::Heads<const E> heads_of(const Tensor<E>& x, const Shape& whole);
/// The same for a buffer that is written: stride 0 where it is broadcast, and sums are asked for.
template <class E>
kernels::Heads<E> heads_of(Buffer<E>& x, const Shape& whole);

/// The sizes and strides of softmax(Q Kᵀ) V, checked.
template <class T>
struct FusedCall {
  /// Throws as attention() does, and ShapeError for more than two axes in front of (L, d).
  FusedCall(const char* op, const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V, bool enable_gqa,
            const std::optional<double>& scale);

  kernels::FlashArgs<T> args;
  Shape lead, kv_lead;  // the axes in front of (L, d), broadcast: of queries and output, of keys and values
  Shape scores, out;    // lead + (Lq, Lk), lead + (Lq, d_v)
};

/// Several gradients from one backward pass: `compute` runs once for each dy that arrives, and each input fetches its part.
template <class T>
class Joint {
 public:
  template <class F>
  explicit Joint(F compute) : compute_(std::move(compute)) {}
  Tensor<T> part(std::size_t i, const Tensor<T>& dy) {
    if (parts_.empty() || dy.id() != computed_for_ || parts_[i].shape() == Shape{0}) {
      parts_ = compute_(dy);
      computed_for_ = dy.id();
    }
    return std::exchange(parts_[i], Tensor<T>());
  }

 private:
  std::function<std::vector<Tensor<T>>(const Tensor<T>&)> compute_;
  std::vector<Tensor<T>> parts_;
  std::int64_t computed_for_ = 0;
};

}  // namespace tapehead::detail
