#include "tapehead/ops/join.hpp"

#include <algorithm>
#include <limits>

#include "kernels/require.hpp"
#include "tapehead/autograd/record.hpp"
#include "tapehead/ops/views.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

namespace {
// a + b for sizes, the largest number there is where it would be more: sizes of tensors without elements are
// not bounded.
std::int64_t plus(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return b > most - a ? most : a + b;
}
}  // namespace

const Op cat_op{"cat", "y = x₀, x₁, … one after the other", "dxᵢ = its slice of dy",
                "(…, n₀, …) (…, n₁, …) … → (…, Σ n, …)"};
template <class E> Tensor<E> cat(const std::vector<Tensor<E>>& parts, int axis) {
  require<ValueError>(!parts.empty(), "cat: no tensors; give at least one");
  axis = normalize_axis("cat", axis, parts[0].shape());
  std::int64_t total = 0;
  std::vector<std::int64_t> starts;
  for (const Tensor<E>& part : parts) {
    require<ShapeError>(
        part.rank() == parts[0].rank() && part.shape().replaced(axis, 0) == parts[0].shape().replaced(axis, 0),
        "cat: shapes {} and {}; all sizes but those along axis {} must be equal", parts[0].shape(), part.shape(), axis);
    starts.push_back(total);
    total = plus(total, part.shape()[axis]);
  }
  Buffer<E> y(parts[0].shape().replaced(axis, total), "cat");
  const Strides strides = row_major(y.shape());
  for (std::size_t i = 0; i < parts.size() && y.numel() > 0; ++i)
    detail::copy_to(y.data() + starts[i] * strides[axis], strides, parts[i]);
  Tensor<E> out(std::move(y));
  if constexpr (std::is_floating_point_v<E>)
    return record_all(cat_op, std::move(out), parts, [&](std::size_t i) {
      const auto pullback = [axis, start = starts[i], size = parts[i].shape()[axis]](const auto& dy) {
        return slice(dy, axis, start, start + size);
      };
      return wrt(parts[i], pullback);
    });
  else
    return out;
}

const Op stack_op{"stack", "y = x₀, x₁, … along a new axis", "dxᵢ = its position in dy", "(…, …) each → (…, count, …)"};
template <class E> Tensor<E> stack(const std::vector<Tensor<E>>& parts, int axis) {
  require<ValueError>(!parts.empty(), "stack: no tensors; give at least one");
  axis = normalize_axis("stack", axis, parts[0].shape().with(0, 1));
  std::vector<Tensor<E>> slabs;
  for (const Tensor<E>& part : parts) {
    require<ShapeError>(part.shape() == parts[0].shape(), "stack: shapes {} and {}; all must be equal",
                        parts[0].shape(), part.shape());
    slabs.push_back(part.unrecorded().unsqueeze(axis));
  }
  Tensor<E> out = cat(slabs, axis);
  if constexpr (std::is_floating_point_v<E>)
    return record_all(stack_op, std::move(out), parts, [&](std::size_t i) {
      return wrt(parts[i], [axis, i](const auto& dy) { return select(dy, axis, static_cast<std::int64_t>(i)); });
    });
  else
    return out;
}

template <class E> std::vector<Tensor<E>> split(const Tensor<E>& x, const std::vector<std::int64_t>& sizes, int axis) {
  axis = normalize_axis("split", axis, x.shape());
  std::int64_t total = 0;
  for (std::int64_t size : sizes) {
    require<ValueError>(size >= 0, "split: size {}; sizes must not be negative", size);
    total = plus(total, size);
  }
  require<ShapeError>(total == x.shape()[axis],
                      "split: sizes that add up to {} along axis {} of shape {}; they must add up to {}", total, axis,
                      x.shape(), x.shape()[axis]);
  std::vector<Tensor<E>> parts;
  std::int64_t start = 0;
  for (std::int64_t size : sizes) parts.push_back(slice(x, axis, start, start + size)), start += size;
  return parts;
}

template <class E> std::vector<Tensor<E>> split(const Tensor<E>& x, std::int64_t size, int axis) {
  require<ValueError>(size > 0, "split: size {}; it must be positive", size);
  std::vector<std::int64_t> sizes;
  for (std::int64_t rest = x.size(axis); rest > 0; rest -= size) sizes.push_back(std::min(rest, size));
  if (sizes.empty()) sizes.push_back(0);
  return split(x, sizes, axis);
}

#define TAPEHEAD_JOIN(E)                                                      \
  template Tensor<E> cat(const std::vector<Tensor<E>>&, int);                 \
  template Tensor<E> stack(const std::vector<Tensor<E>>&, int);               \
  template std::vector<Tensor<E>> split(const Tensor<E>&, std::int64_t, int); \
  template std::vector<Tensor<E>> split(const Tensor<E>&, const std::vector<std::int64_t>&, int);
TAPEHEAD_ELEMENTS(TAPEHEAD_JOIN)

}  // namespace tapehead
