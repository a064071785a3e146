#include "tapehead/ops/select.hpp"

#include <algorithm>

#include "autograd/recorded.hpp"
#include "kernels/require.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

using detail::map;
using detail::recorded;

const Op where_op{"where", "c = m ? a : b", "da = m ? dc : 0, db = m ? 0 : dc", "broadcast"};
template <class E> Tensor<E> where(const Tensor<bool>& mask, const Tensor<E>& a, const Like<E>& b) {
  auto c = map<E>("where", mask, a, b, [](bool m, E x, E y) { return m ? x : y; });
  const auto into_a = [](const auto& dc, const auto& m) { return masked_fill(dc, ~m, 0); };
  const auto into_b = [](const auto& dc, const auto& m) { return masked_fill(dc, m, 0); };
  return recorded(where_op, std::move(c), wrt(a, into_a, mask), wrt(b, into_b, mask));
}

const Op masked_fill_op{"masked_fill", "y = m ? value : x", "dx = m ? 0 : dy", "mask broadcasts to x"};
template <class E> Tensor<E> masked_fill(const Tensor<E>& x, const Tensor<bool>& mask, NumberFor<E> value) {
  require<ShapeError>(broadcasts_to(mask.shape(), x.shape()),
                      "masked_fill: a mask of shape {} does not broadcast to the tensor's shape {}; aligned from the "
                      "right, each of its sizes must be the tensor's or 1",
                      mask.shape(), x.shape());
  auto y = map<E>("masked_fill", x, mask, [fill = E(value)](E v, bool m) { return m ? fill : v; });
  const auto pullback = [](const auto& dy, const auto& m) { return masked_fill(dy, m, 0); };
  return recorded(masked_fill_op, std::move(y), wrt(x, pullback, mask));
}

namespace {

template <class E> Tensor<E> triangle(const char* op, const Tensor<E>& x, std::int64_t diagonal, bool lower) {
  require<ShapeError>(x.rank() >= 2, "{}: shape {}; it works on the last two axes, so give a tensor of rank 2 or more",
                      op, x.shape());
  Buffer<E> out(x.shape(), op);
  const std::int64_t rows = x.size(-2), columns = x.size(-1);
  detail::copy_to(out.data(), row_major(x.shape()), x);
  const std::int64_t d = std::clamp(diagonal, -rows, columns);
  for (std::int64_t r = 0; r * columns < out.numel(); ++r) {
    E* row = out.data() + r * columns;
    const std::int64_t split = std::clamp<std::int64_t>(r % rows + d + (lower ? 1 : 0), 0, columns);
    lower ? std::fill(row + split, row + columns, E{}) : std::fill(row, row + split, E{});
  }
  return out;
}

}  // namespace

const Op tril_op{"tril", "y_ij = x_ij [j <= i + diagonal]", "dx = tril(dy)", "(…, m, n) → the same"};
template <class E> Tensor<E> tril(const Tensor<E>& x, std::int64_t diagonal) {
  return recorded(tril_op, triangle("tril", x, diagonal, true),
                  wrt(x, [diagonal](const auto& dy) { return tril(dy, diagonal); }));
}

const Op triu_op{"triu", "y_ij = x_ij [j >= i + diagonal]", "dx = triu(dy)", "(…, m, n) → the same"};
template <class E> Tensor<E> triu(const Tensor<E>& x, std::int64_t diagonal) {
  return recorded(triu_op, triangle("triu", x, diagonal, false),
                  wrt(x, [diagonal](const auto& dy) { return triu(dy, diagonal); }));
}

#define TAPEHEAD_SELECT(E)                                                                \
  template Tensor<E> where(const Tensor<bool>&, const Tensor<E>&, const Tensor<E>&);      \
  template Tensor<E> masked_fill<E>(const Tensor<E>&, const Tensor<bool>&, NumberFor<E>); \
  template Tensor<E> tril(const Tensor<E>&, std::int64_t);                                \
  template Tensor<E> triu(const Tensor<E>&, std::int64_t);
TAPEHEAD_ELEMENTS(TAPEHEAD_SELECT)

}  // namespace tapehead
