#include "tapehead/ops/indexing.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <type_traits>
#include <utility>

#include "autograd/recorded.hpp"
#include "kernels/parallel.hpp"
#include "kernels/require.hpp"
#include "kernels/walk.hpp"
#include "tapehead/ops/views.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

using detail::recorded;
using Index = Tensor<std::int64_t>;

namespace {

// Calls f(at) for every line along an axis that has elements: at[i] is where the line begins in array i.
template <std::size_t n, class F>
void for_each_line(const Shape& shape, int axis, const std::array<Strides, n>& strides, const F& f) {
  if (shape.numel() == 0) return;
  const Shape lines = shape.replaced(axis, 1);
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const std::int64_t* const steps[] = {strides[i].begin()...};
    kernels::for_each_position(lines.rank(), lines.begin(), steps, 0, lines.numel(), f);
  }
  (std::make_index_sequence<n>());
}

std::int64_t checked(const char* op, std::int64_t i, std::int64_t size) {
  if (i >= 0 && i < size) [[likely]]
    return i;
  require<IndexError>(size > 0, "{}: index {} into nothing: the axis has size 0", op, i);
  raise<IndexError>("{}: index {}; it must be in 0 to {}", op, i, size - 1);
}

// An index for gather and scatter_add has the rank of what it points into, and no more lines.
void check_lines(const char* op, const Shape& x, int axis, const Shape& index) {
  bool fits = index.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis || index[i] <= x[i];
  require<ShapeError>(fits,
                      "{}: an index of shape {} for shape {} along axis {}; it needs the same rank, and on the other "
                      "axes at most the tensor's sizes",
                      op, index, x, axis);
}

void check_row(const char* op, const Index& index) {
  require<ShapeError>(index.rank() == 1,
                      "{}: an index of shape {}; it takes a one-dimensional one (gather takes any rank)", op,
                      index.shape());
}

// Zeros that take no memory: to be added to.
template <class T> Tensor<T> nothing(const Shape& shape) { return broadcast_to(scalar(T{}), shape); }

template <class E> Buffer<E> copy_of(const char* op, const Tensor<E>& x) {
  Buffer<E> out(x.shape(), op);
  detail::copy_to(out.data(), row_major(x.shape()), x);
  return out;
}

// Seen along an axis: `outer` blocks of `size` positions of `inner` elements each.
struct Rows {
  Rows(const Shape& shape, int axis)
      : outer(Shape(shape.begin(), shape.begin() + axis).numel()),
        inner(Shape(shape.begin() + axis + 1, shape.end()).numel()),
        size(shape[axis]) {}
  std::int64_t outer, inner, size;
};

template <class E>
Tensor<E> rows_of(const char* op, const Tensor<E>& x, int axis, const Index& index, const Shape& shape) {
  const std::vector<std::int64_t> at = index.to_vector();
  for (std::int64_t i : at) checked(op, i, x.shape()[axis]);
  Buffer<E> y(shape, op);
  if (y.numel() == 0) return y;
  const Tensor<E> from = contiguous(detach(x));
  const Rows rows(x.shape(), axis);
  E* out = y.data();
  for (std::int64_t o = 0; o < rows.outer; ++o)
    for (std::int64_t i : at) out = std::copy_n(from.data() + (o * rows.size + i) * rows.inner, rows.inner, out);
  return y;
}

// Where the k largest are, the largest first: NaN before all others, equals in their order.
std::vector<std::size_t> largest(const std::vector<double>& line, std::int64_t k) {
  std::vector<std::size_t> order(line.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](std::size_t i, std::size_t j) {
    const double a = line[i], b = line[j];
    if (a != a || b != b) return a != a && (b == b || i < j);
    return a > b || (a == b && i < j);
  });
  order.resize(static_cast<std::size_t>(k));
  return order;
}

// y[at[i]] += src[i], rows of an axis. What goes to one position is added up in double and rounded once, in
// the order of src, whatever the threads.
template <class T> void add_rows(T* y, const Rows& rows, const std::vector<std::int64_t>& at, const T* src) {
  // start[k] … start[k + 1] - 1 are where `order` lists the positions of src that go to k.
  std::vector<std::size_t> start(static_cast<std::size_t>(rows.size) + 1), order(at.size());
  for (std::int64_t k : at) ++start[static_cast<std::size_t>(k) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<std::size_t> next(start.begin(), start.end() - 1);
  for (std::size_t i = 0; i < at.size(); ++i) order[next[static_cast<std::size_t>(at[i])]++] = i;

  constexpr std::int64_t group = 64;
  const auto n = static_cast<std::int64_t>(at.size());
  kernels::parallel_for((rows.size + group - 1) / group, rows.outer * n * rows.inner, [&](std::int64_t g) {
    std::vector<double> total(static_cast<std::size_t>(rows.inner));
    for (std::int64_t k = g * group; k < std::min(rows.size, (g + 1) * group); ++k) {
      const std::size_t first = start[static_cast<std::size_t>(k)], last = start[static_cast<std::size_t>(k) + 1];
      for (std::int64_t o = 0; first != last && o < rows.outer; ++o) {
        T* row = y + (o * rows.size + k) * rows.inner;
        std::copy_n(row, rows.inner, total.data());
        for (std::size_t i = first; i < last; ++i) {
          const T* part = src + (o * n + static_cast<std::int64_t>(order[i])) * rows.inner;
          for (std::size_t c = 0; c < total.size(); ++c) total[c] += static_cast<double>(part[c]);
        }
        std::transform(total.begin(), total.end(), row, [](double v) { return static_cast<T>(v); });
      }
    }
  });
}

}  // namespace

const Op gather_op{"gather", "y_ij = x_i,index_ij", "dx = scatter_add(0, index, dy)",
                   "x (m, n), index (m, k) → (m, k)"};
template <class E> Tensor<E> gather(const Tensor<E>& x, int axis, const Index& index) {
  axis = normalize_axis("gather", axis, x.shape());
  check_lines("gather", x.shape(), axis, index.shape());
  Buffer<E> y(index.shape(), "gather");
  const std::array<Strides, 3> strides{row_major(index.shape()), x.strides(), index.strides()};
  for_each_line(index.shape(), axis, strides, [&](const auto& at) {
    for (std::int64_t j = 0; j < index.shape()[axis]; ++j)
      y[at[0] + j * strides[0][axis]] =
          x.data()[at[1] +
                   strides[1][axis] * checked("gather", index.data()[at[2] + j * strides[2][axis]], x.shape()[axis])];
  });
  const auto pullback = [shape = x.shape(), axis](const auto& dy, const auto& places) {
    return scatter_add(nothing<E>(shape), axis, places, dy);
  };
  return recorded(gather_op, Tensor<E>(std::move(y)), wrt(x, pullback, index));
}

const Op scatter_add_op{"scatter_add", "y = x, y_i,index_ij += src_ij", "dx = dy, dsrc = gather(dy, index)",
                        "x (m, n), index and src (m, k) → (m, n)"};
template <class T> Real<T> scatter_add(const Tensor<T>& x, int axis, const Index& index, const Like<T>& src) {
  axis = normalize_axis("scatter_add", axis, x.shape());
  check_lines("scatter_add", x.shape(), axis, index.shape());
  require<ShapeError>(src.shape() == index.shape(),
                      "scatter_add: a source of shape {} and an index of shape {}; they must be equal", src.shape(),
                      index.shape());
  Buffer<T> y = copy_of("scatter_add", x);
  const std::int64_t size = x.shape()[axis], n = index.shape()[axis];
  const std::array<Strides, 3> strides{row_major(x.shape()), index.strides(), src.strides()};
  std::vector<double> total(static_cast<std::size_t>(index.numel() > 0 ? size : 0));
  for_each_line(index.shape(), axis, strides, [&](const auto& at) {
    const auto place = [&](std::int64_t j) {
      return checked("scatter_add", index.data()[at[1] + j * strides[1][axis]], size);
    };
    T* line = y.data() + at[0];
    for (std::int64_t j = 0; j < n; ++j)
      total[static_cast<std::size_t>(place(j))] = static_cast<double>(line[place(j) * strides[0][axis]]);
    for (std::int64_t j = 0; j < n; ++j)
      total[static_cast<std::size_t>(place(j))] += static_cast<double>(src.data()[at[2] + j * strides[2][axis]]);
    for (std::int64_t j = 0; j < n; ++j)
      line[place(j) * strides[0][axis]] = static_cast<T>(total[static_cast<std::size_t>(place(j))]);
  });
  const auto into_src = [axis](const auto& dy, const auto& places) { return gather(dy, axis, places); };
  return record(scatter_add_op, Tensor<T>(std::move(y)), wrt(x, [](const auto& dy) { return dy; }),
                wrt(src, into_src, index));
}

const Op index_select_op{"index_select", "y_i = x_index_i along an axis", "dx = index_add(0, index, dy)",
                         "(…, n, …), index (k) → (…, k, …)"};
template <class E> Tensor<E> index_select(const Tensor<E>& x, int axis, const Index& index) {
  axis = normalize_axis("index_select", axis, x.shape());
  check_row("index_select", index);
  auto y = rows_of("index_select", x, axis, index, x.shape().replaced(axis, index.numel()));
  const auto pullback = [shape = x.shape(), axis](const auto& dy, const auto& places) {
    return index_add(nothing<E>(shape), axis, places, dy);
  };
  return recorded(index_select_op, std::move(y), wrt(x, pullback, index));
}

const Op index_add_op{"index_add", "y = x, y_index_i += src_i along an axis", "dx = dy, dsrc = index_select(dy, index)",
                      "x (…, n, …), index (k), src (…, k, …) → x"};
template <class T> Real<T> index_add(const Tensor<T>& x, int axis, const Index& index, const Like<T>& src) {
  axis = normalize_axis("index_add", axis, x.shape());
  check_row("index_add", index);
  const Shape fitting = x.shape().replaced(axis, index.numel());
  require<ShapeError>(src.shape() == fitting,
                      "index_add: a source of shape {} for shape {} and {} indices along axis {}; it must be {}",
                      src.shape(), x.shape(), index.numel(), axis, fitting);
  const std::vector<std::int64_t> at = index.to_vector();
  for (std::int64_t k : at) checked("index_add", k, x.shape()[axis]);
  Buffer<T> y = copy_of("index_add", x);
  if (src.numel() > 0) add_rows(y.data(), Rows(x.shape(), axis), at, contiguous(detach(src)).data());
  const auto into_src = [axis](const auto& dy, const auto& places) { return index_select(dy, axis, places); };
  return record(index_add_op, Tensor<T>(std::move(y)), wrt(x, [](const auto& dy) { return dy; }),
                wrt(src, into_src, index));
}

const Op embedding_op{"embedding", "y_i = W_index_i", "dW_k = Σ dy_i over index_i = k",
                      "index (…), W (vocabulary, d) → (…, d)"};
template <class T> Real<T> embedding(const Index& index, const Tensor<T>& weight) {
  require<ShapeError>(weight.rank() > 0,
                      "embedding: a zero-dimensional weight has no rows; give one of shape (vocabulary, …)");
  Shape shape = index.shape();
  for (int axis = 1; axis < weight.rank(); ++axis) shape = shape.with(shape.rank(), weight.shape()[axis]);
  auto y = rows_of("embedding", weight, 0, index, shape);
  const auto pullback = [shape = weight.shape()](const auto& dy, const auto& rows) {
    return index_add(nothing<T>(shape), 0, reshape(rows, {rows.numel()}), reshape(dy, shape.replaced(0, rows.numel())));
  };
  return record(embedding_op, std::move(y), wrt(weight, pullback, index));
}

const Op cumsum_op{"cumsum", "y_i = Σ x_j over j <= i", "dx_i = Σ dy_j over j >= i", "(…, n, …) → the same"};
template <class T> Numeric<T> cumsum(const Tensor<T>& x, int axis) {
  axis = normalize_axis("cumsum", axis, x.shape());
  Buffer<T> y(x.shape(), "cumsum");
  const std::array<Strides, 2> strides{row_major(x.shape()), x.strides()};
  for_each_line(x.shape(), axis, strides, [&](const auto& at) {
    std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t> total = 0;  // int64 wraps, defined
    const std::int64_t n = x.shape()[axis], to_step = strides[0][axis], from_step = strides[1][axis];
    T* to = y.data() + at[0];
    const T* from = x.data() + at[1];
    for (std::int64_t i = 0; i < n; ++i, to += to_step, from += from_step) {
      total += static_cast<decltype(total)>(*from);
      *to = static_cast<T>(total);
    }
  });
  return recorded(cumsum_op, Tensor<T>(std::move(y)),
                  wrt(x, [axis](const auto& dy) { return flip(cumsum(flip(dy, axis), axis), axis); }));
}

const Op topk_op{"topk", "y = the k largest of x", "dx = scatter_add(0, indices, dy)", "(…, n, …) → (…, k, …)"};
template <class T> Real<T, TopK<T>> topk(const Tensor<T>& x, std::int64_t k, int axis) {
  axis = normalize_axis("topk", axis, x.shape());
  const std::int64_t n = x.shape()[axis];
  require<ValueError>(k >= 0 && k <= n, "topk: k {} along axis {} of shape {}; it must be in 0 to {}", k, axis,
                      x.shape(), n);
  Buffer<T> values(x.shape().replaced(axis, k), "topk");
  Buffer<std::int64_t> indices(values.shape(), "topk");
  const std::array<Strides, 2> strides{row_major(values.shape()), x.strides()};
  std::vector<double> line(static_cast<std::size_t>(x.numel() > 0 ? n : 0));
  for_each_line(x.shape(), axis, strides, [&](const auto& at) {
    for (std::size_t i = 0; i < line.size(); ++i)
      line[i] = static_cast<double>(x.data()[at[1] + static_cast<std::int64_t>(i) * strides[1][axis]]);
    std::int64_t to = at[0];
    for (const std::size_t from : largest(line, k)) {
      values[to] = static_cast<T>(line[from]), indices[to] = static_cast<std::int64_t>(from);
      to += strides[0][axis];
    }
  });
  const Index chosen(std::move(indices));
  const auto pullback = [shape = x.shape(), axis](const auto& dy, const auto& places) {
    return scatter_add(nothing<T>(shape), axis, places, dy);
  };
  return {record(topk_op, Tensor<T>(std::move(values)), wrt(x, pullback, chosen)), chosen};
}

template <class E> Tensor<E> one_hot(const Index& index, std::int64_t classes) {
  require<ValueError>(classes >= 0, "one_hot: {} classes; their number must not be negative", classes);
  Buffer<E> y(index.shape().with(index.rank(), classes), "one_hot");
  std::fill_n(y.data(), y.numel(), E{});
  std::int64_t row = 0;
  for (std::int64_t i : index.to_vector()) y[classes * row++ + checked("one_hot", i, classes)] = E{1};
  return y;
}

#define TAPEHEAD_INDEXING(T)                                                             \
  template Tensor<T> scatter_add(const Tensor<T>&, int, const Index&, const Tensor<T>&); \
  template Tensor<T> index_add(const Tensor<T>&, int, const Index&, const Tensor<T>&);   \
  template Tensor<T> cumsum(const Tensor<T>&, int);                                      \
  template Tensor<T> embedding(const Index&, const Tensor<T>&);                          \
  template TopK<T> topk(const Tensor<T>&, std::int64_t, int);
#define TAPEHEAD_PICKING(E)                                             \
  template Tensor<E> gather(const Tensor<E>&, int, const Index&);       \
  template Tensor<E> index_select(const Tensor<E>&, int, const Index&); \
  template Tensor<E> one_hot<E>(const Index&, std::int64_t);
TAPEHEAD_REALS(TAPEHEAD_INDEXING)
TAPEHEAD_ELEMENTS(TAPEHEAD_PICKING)
template Tensor<std::int64_t> cumsum(const Tensor<std::int64_t>&, int);

}  // namespace tapehead
