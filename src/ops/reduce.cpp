#include "tapehead/ops/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "autograd/recorded.hpp"
#include "kernels/fold.hpp"
#include "kernels/require.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/ops/views.hpp"
#include "tensor/elementwise.hpp"

namespace tapehead {

using detail::map;
using detail::recorded;
using kernels::write_to;

namespace {

// Which axes go, the shape with them kept as 1, and the shape that is asked for.
struct Plan {
  Plan(const char* op, const Shape& shape, const Axes& list, const Strides& strides, bool keepdims) : kept(shape) {
    const std::vector<bool> gone = list.mask(op, shape);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const bool goes = gone[static_cast<std::size_t>(axis)];
      if (goes) kept[axis] = 1, count *= shape[axis];
      if (!goes || keepdims) out = out.with(out.rank(), kept[axis]);
      axes.add(shape[axis], strides[axis], goes);
    }
  }
  kernels::FoldAxes axes;
  Shape kept, out;
  std::int64_t count = 1;  // elements in one result
};

// The gradient of a reduction, given the reduced axes back as size 1, so that it broadcasts over x again.
template <class T> Tensor<T> restored(const Tensor<T>& dy, const Shape& kept) {
  return dy.shape() == kept ? dy : reshape(dy, kept);
}

}  // namespace

const Op sum_op{"sum", "y = Σ x", "dx = dy, repeated", "x → without the reduced axes"};
template <class T> Tensor<T> sum(const Tensor<T>& x, const Axes& list, bool keepdims) {
  const Plan plan("sum", x.shape(), list, x.strides(), keepdims);
  Buffer<T> y(plan.out, "sum");
  kernels::fold_sum(plan.axes, x.data(), write_to(y.data(), std::identity()));
  const auto pullback = [kept = plan.kept, shape = x.shape()](const auto& dy) {
    return broadcast_to(restored(dy, kept), shape);
  };
  return recorded(sum_op, Tensor<T>(std::move(y)), wrt(x, pullback));
}

const Op mean_op{"mean", "y = Σ x / n", "dx = dy / n, repeated", "x → without the reduced axes"};
template <class T> Real<detail::MeanOf<T>> mean(const Tensor<T>& x, const Axes& list, bool keepdims) {
  const Plan plan("mean", x.shape(), list, x.strides(), keepdims);
  const auto count = static_cast<double>(plan.count);
  Buffer<T> y(plan.out, "mean");
  kernels::fold_sum(plan.axes, x.data(), write_to(y.data(), [count](double total) { return total / count; }));
  const auto pullback = [kept = plan.kept, shape = x.shape(), count](const auto& dy) {
    return broadcast_to(restored(dy, kept) / count, shape);
  };
  return record(mean_op, Tensor<T>(std::move(y)), wrt(x, pullback));
}

Tensor<std::int64_t> sum(const Tensor<bool>& x, const Axes& axes, bool keepdims) {
  return sum(to<std::int64_t>(x), axes, keepdims);
}
Tensor<double> mean(const Tensor<bool>& x, const Axes& axes, bool keepdims) {
  return mean(to<double>(x), axes, keepdims);
}
Tensor<bool> any(const Tensor<bool>& x, const Axes& axes, bool keepdims) { return sum(x, axes, keepdims) != 0; }
Tensor<bool> all(const Tensor<bool>& x, const Axes& axes, bool keepdims) { return sum(~x, axes, keepdims) == 0; }

namespace {

template <class T> Tensor<T> extreme(const Op& op, bool largest, const Tensor<T>& x, const Axes& list, bool keepdims) {
  const Plan plan(op.name, x.shape(), list, x.strides(), keepdims);
  require<ShapeError>(plan.count > 0 || plan.out.numel() == 0,
                      "{}: shape {} has nothing along the reduced axes, and an empty {} has no value", op.name,
                      x.shape(), op.name);
  Buffer<T> filled(plan.out, op.name);
  kernels::fold_extreme(plan.axes, x.data(), largest, write_to(filled.data(), std::identity()));
  const Tensor<T> y(std::move(filled));
  // Which elements won does not change with x, except at ties: they are a constant.
  const auto pullback = [kept = plan.kept, list](const auto& dy, const auto& at, const auto& best) {
    const auto won =
        map<T>("max", at, detach(best).reshape(kept), [](T v, T winner) { return T(v == winner || v != v); });
    return restored(dy, kept) * (won / sum(won, list, true));
  };
  return record(op, y, wrt(x, pullback, x, y));
}

}  // namespace

const Op max_op{"max", "y = max x", "dx = dy [x = y] / (number of winners)", "x → without the reduced axes"};
template <class T> Real<T> max(const Tensor<T>& x, const Axes& list, bool keepdims) {
  return extreme(max_op, true, x, list, keepdims);
}

const Op min_op{"min", "y = min x", "dx = dy [x = y] / (number of winners)", "x → without the reduced axes"};
template <class T> Real<T> min(const Tensor<T>& x, const Axes& list, bool keepdims) {
  return extreme(min_op, false, x, list, keepdims);
}

namespace {

// √ of, or the plain Σ (x - mean)² / (n - correction), in two passes with the mean in double: to round it first, or to
// subtract squares, would cost the digits at a large mean.
template <class T>
Tensor<T> deviation(const char* op, const Tensor<T>& x, const Axes& list, int correction, bool keepdims, bool root) {
  require<ValueError>(correction >= 0, "{}: correction {}; it must not be negative", op, correction);
  const Plan plan(op, x.shape(), list, x.strides(), true);
  Buffer<double> means(plan.kept, op);
  const auto count = static_cast<double>(plan.count), divisor = std::max(0.0, count - correction);
  kernels::fold_sum(plan.axes, x.data(), write_to(means.data(), [count](double total) { return total / count; }));
  const auto centred =
      map<double>(op, x, Tensor<double>(std::move(means)), [](T v, double m) { return static_cast<double>(v) - m; });
  const Plan squares(op, centred.shape(), list, centred.strides(), keepdims);
  Buffer<T> y(squares.out, op);
  const auto finished = [=](double total) { return root ? std::sqrt(total / divisor) : total / divisor; };
  kernels::fold_squares(squares.axes, centred.data(), write_to(y.data(), finished));
  return y;
}

// a / b where b is not 0, and 0 there: the subgradient of a norm at the origin.
template <class T> Tensor<T> divided_or_zero(const Tensor<T>& a, const Tensor<T>& b) {
  const auto zero = b == 0;
  return masked_fill(a / masked_fill(b, zero, 1), zero, 0);
}

}  // namespace

const Op var_op{"var", "y = Σ (x - mean x)² / (n - correction)", "dx = 2 dy (x - mean x) / (n - correction)",
                "x → without the reduced axes"};
template <class T> Real<T> var(const Tensor<T>& x, const Axes& list, int correction, bool keepdims) {
  const Plan plan("var", x.shape(), list, x.strides(), keepdims);
  const auto divisor = std::max<std::int64_t>(0, plan.count - correction);
  const auto pullback = [list, kept = plan.kept, divisor](const auto& dy, const auto& at) {
    return restored(dy, kept) * (at - mean(at, list, true)) * 2 / divisor;
  };
  return record(var_op, deviation("var", x, list, correction, keepdims, false), wrt(x, pullback, x));
}

const Op std_op{"std", "y = √var(x)", "dx = dy (x - mean x) / (y (n - correction)), 0 where y = 0",
                "x → without the reduced axes"};
template <class T> Real<T> std_dev(const Tensor<T>& x, const Axes& list, int correction, bool keepdims) {
  const Plan plan("std", x.shape(), list, x.strides(), keepdims);
  const auto divisor = std::max<std::int64_t>(0, plan.count - correction);
  const auto pullback = [list, kept = plan.kept, divisor](const auto& dy, const auto& at, const auto& deviations) {
    return divided_or_zero(restored(dy, kept), restored(deviations, kept)) * (at - mean(at, list, true)) / divisor;
  };
  const auto y = deviation("std", x, list, correction, keepdims, true);
  return record(std_op, y, wrt(x, pullback, x, y));
}

const Op norm_op{"norm", "y = √Σ x²", "dx = dy x / y, 0 where y = 0", "x → without the reduced axes"};
template <class T> Real<T> norm(const Tensor<T>& x, const Axes& list, bool keepdims) {
  const Plan plan("norm", x.shape(), list, x.strides(), keepdims);
  Buffer<T> filled(plan.out, "norm");
  kernels::fold_squares(plan.axes, x.data(), write_to(filled.data(), [](double v) { return std::sqrt(v); }));
  const Tensor<T> y(std::move(filled));
  const auto pullback = [kept = plan.kept](const auto& dy, const auto& at, const auto& length) {
    return divided_or_zero(restored(dy, kept), restored(length, kept)) * at;
  };
  return record(norm_op, y, wrt(x, pullback, x, y));
}

namespace {

// The index of the first element along an axis that `better` puts before all others; NaN comes before every number.
template <class T, class Better>
Tensor<std::int64_t> best_index(const char* op, const Tensor<T>& x, int axis, bool keepdims, Better better) {
  const Plan plan(op, x.shape(), axis, x.strides(), keepdims);
  require<ShapeError>(plan.count > 0 || plan.out.numel() == 0, "{}: shape {} has nothing along axis {}", op, x.shape(),
                      axis);
  Buffer<std::int64_t> y(plan.out, op);
  std::int64_t k = 0;
  kernels::for_each_element(
      plan.axes.kept_rank, plan.axes.kept_sizes, plan.axes.kept_strides, [&](std::int64_t offset) {
        const T* row = x.data() + offset;
        std::int64_t best = 0;
        for (std::int64_t i = 1; i < plan.count; ++i) {
          const T v = row[i * plan.axes.gone_strides[0]], winner = row[best * plan.axes.gone_strides[0]];
          if (better(v, winner) || (v != v && winner == winner)) best = i;
        }
        y[k++] = best;
      });
  return y;
}

}  // namespace

template <class T> Numeric<T, Tensor<std::int64_t>> argmax(const Tensor<T>& x, int axis, bool keepdims) {
  return best_index("argmax", x, axis, keepdims, [](T v, T best) { return v > best; });
}
template <class T> Numeric<T, Tensor<std::int64_t>> argmin(const Tensor<T>& x, int axis, bool keepdims) {
  return best_index("argmin", x, axis, keepdims, [](T v, T best) { return v < best; });
}

#define TAPEHEAD_REDUCE(T)                                              \
  template Tensor<T> mean(const Tensor<T>&, const Axes&, bool);         \
  template Tensor<T> max(const Tensor<T>&, const Axes&, bool);          \
  template Tensor<T> min(const Tensor<T>&, const Axes&, bool);          \
  template Tensor<T> var(const Tensor<T>&, const Axes&, int, bool);     \
  template Tensor<T> std_dev(const Tensor<T>&, const Axes&, int, bool); \
  template Tensor<T> norm(const Tensor<T>&, const Axes&, bool);
#define TAPEHEAD_SUM(T)                                              \
  template Tensor<T> sum(const Tensor<T>&, const Axes&, bool);       \
  template Tensor<std::int64_t> argmax(const Tensor<T>&, int, bool); \
  template Tensor<std::int64_t> argmin(const Tensor<T>&, int, bool);
TAPEHEAD_REALS(TAPEHEAD_REDUCE)
TAPEHEAD_REALS(TAPEHEAD_SUM)
TAPEHEAD_SUM(std::int64_t)

}  // namespace tapehead
