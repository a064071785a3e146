#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/flash.hpp"
#include "tapehead/attention/flash.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/tensor/tensor.hpp"

// From tensors to the fused kernel (kernels/flash.hpp) and back onto the tape. flash_attention,
// flex_attention and flash_attention_varlen differ in their layout and in what they do to the scores; the
// rest is here, once.

namespace tapehead::detail {

/// x as the kernel reads it, broadcast to `whole`: (L, d), (H, L, d) or (B, H, L, d).
template <class E>
kernels::Heads<const E> heads_of(const Tensor<E>& x, const Shape& whole);
/// The same for a buffer that is written: stride 0 where it is broadcast, and sums are asked for.
template <class E>
kernels::Heads<E> heads_of(Buffer<E>& x, const Shape& whole);

/// The kernel's hooks of one run, with what they need to live. In a backward run `finish` gives the gradients
/// of the problem's `extra` inputs.
template <class T>
struct FusedHooks {
  virtual ~FusedHooks() = default;
  virtual std::vector<Tensor<T>> finish() { return {}; }
  std::vector<kernels::ScoreHook<T>> list;
};

/// softmax(edited(Q Kᵀ)) V, checked: sizes, strides, and what else goes in.
template <class T>
struct FusedProblem {
  Tensor<T> Q, K, V;
  std::optional<Tensor<T>> qkv;  // what Q, K and V are parts of, in this order along the axis of heads
  kernels::FlashArgs<T> args;
  Shape q, k, v, scores, out;  // whole shapes, broadcast; scores: (…, Lq, Lk)
  // (total, H, d) instead of (…, H, L, d): sequence n has the rows starts[n] … starts[n + 1] - 1
  bool packed = false;
  std::vector<std::int64_t> q_starts, k_starts;
  std::optional<Tensor<bool>> keep_mask;
  // further inputs that have gradients: a bias, what a score function is bound to
  std::vector<Tensor<T>> extra;
  std::function<std::unique_ptr<FusedHooks<T>>(bool backward)> hooks;

  Tensor<T> output, lse;  // after the forward run; lse with a last axis of size 1

  FusedProblem() = default;
  /// Throws as attention() does, and ShapeError for more than two axes in front of (L, d).
  FusedProblem(const char* op, const Tensor<T>& Q, const Tensor<T>& K, const Tensor<T>& V, bool enable_gqa,
               const std::optional<double>& scale);
  /// Q the first `heads` of qkv (…, Hq + 2 Hkv, L, d), K and V half of the others each; they have one
  /// gradient. Throws ShapeError.
  FusedProblem(const char* op, const Tensor<T>& qkv, std::int64_t heads, const std::optional<double>& scale);

  /// All that a gradient goes to: Q, K and V, or qkv, and `extra`.
  std::vector<Tensor<T>> inputs() const;
};

/// Runs the problem and records it: one backward run serves all its inputs. What the gradients do on an outer
/// tape: they are values, and throw, naming the operation, when differentiated again.
template <class T>
Flash<T> run_fused(const Op& op, std::shared_ptr<FusedProblem<T>> problem);

}  // namespace tapehead::detail
