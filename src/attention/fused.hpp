#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "tapehead/attention/flex.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/tensor/tensor.hpp"

namespace tapehead::detail {

/// Q, K and V. Where they are the heads of one tensor, side by side, that tensor as well: it then has the gradient.
template <class T> struct FusedInputs {
  Tensor<T> Q, K, V;
  std::optional<Tensor<T>> qkv = {};
};

/// Where the documents of packed inputs (total, H, d) begin: document n has the rows starts[n] … starts[n + 1] - 1.
/// Empty for inputs (…, H, L, d).
struct Documents {
  std::vector<std::int64_t> q_starts = {}, k_starts = {};
};

/// From tensors to the fused kernel (kernels/flash.hpp) and back onto the tape: the one entry for flash_attention,
/// flex_attention and flash_attention_varlen. What the pullbacks need is copied, so the options may be temporaries. On
/// an outer tape the gradients are values: they throw, naming the operation, when differentiated again. Throws as
/// attention() does, ShapeError for more than two axes in front of (L, d), and ValueError for EmptyRows::nan.
template <class T> Flash<T> run_fused(const Op& op, FusedInputs<T> inputs, const AttentionOptions<T>& options,
                                      FlexFunctions<T> functions = {}, Documents documents = {});

}  // namespace tapehead::detail
