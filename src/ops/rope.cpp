#include "tapehead/ops/rope.hpp"

#include <cmath>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/require.hpp"
#include "kernels/walk.hpp"
#include "tapehead/autograd/record.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace {

// Cosines and sines of each position's D/2 angles.
template <class T> struct Turns {
  Turns(const std::vector<std::int64_t>& positions, std::int64_t half, double theta) {
    std::vector<double> rate;
    for (std::int64_t i = 0; i < half; ++i)
      rate.push_back(std::pow(theta, -static_cast<double>(i) / static_cast<double>(half)));
    for (std::int64_t p : positions)
      for (double r : rate) {
        cos.push_back(static_cast<T>(std::cos(static_cast<double>(p) * r)));
        sin.push_back(static_cast<T>(std::sin(static_cast<double>(p) * r)));
      }
  }
  std::vector<T> cos, sin;
};

template <class T> Tensor<T> turned(const Tensor<T>& x, const Tensor<std::int64_t>& positions, double theta) {
  Buffer<T> out(x.shape(), "rope");
  if (x.numel() == 0) return out;
  const std::int64_t D = x.size(-1), half = D / 2;
  const Shape rows = x.shape().without(x.rank() - 1);
  const Turns<T> turns(positions.to_vector(), half, theta);
  std::vector<std::int64_t> which;  // of the positions, for each row
  const Strides strides = broadcast_strides(positions.shape(), row_major(positions.shape()), rows);
  kernels::for_each_element(rows.rank(), rows.begin(), strides.begin(), [&](std::int64_t at) { which.push_back(at); });
  const Tensor<T> from = contiguous(detach(x));
  kernels::parallel_for(rows.numel(), 2 * x.numel(), [&](std::int64_t r) {
    const T *v = from.data() + r * D, *c = turns.cos.data() + which[static_cast<std::size_t>(r)] * half,
            *s = turns.sin.data() + which[static_cast<std::size_t>(r)] * half;
    T* y = out.data() + r * D;
    for (std::int64_t i = 0; i < half; ++i) {
      y[i] = v[i] * c[i] - v[i + half] * s[i];
      y[i + half] = v[i + half] * c[i] + v[i] * s[i];
    }
  });
  return out;
}

}  // namespace

const Op rope_op{"rope", "(y_i, y_i+D/2) = (x_i, x_i+D/2) turned by p θ^(-2i/D)", "dx = dy turned back",
                 "x (…, L, D), positions (L) → x"};
template <class T> Real<T> rope(const Tensor<T>& x, const Tensor<std::int64_t>& positions, double theta) {
  require<ShapeError>(x.rank() > 0 && x.size(-1) % 2 == 0,
                      "rope: shape {}; the last axis is turned in pairs, so its size must be even", x.shape());
  const Shape rows = x.shape().without(x.rank() - 1);
  require<ShapeError>(
      (positions.rank() <= 1 || positions.rank() == rows.rank()) && broadcasts_to(positions.shape(), rows),
      "rope: positions {} for shape {}; they must have one axis, or {} axes, and broadcast to {}: a batch with heads "
      "takes (batch, 1, L)",
      positions.shape(), x.shape(), rows.rank(), rows);
  require<ValueError>(theta > 0, "rope: theta {}; it must be positive", theta);
  const auto pullback = [theta](const auto& dy, const auto& at) { return rope(dy, -at, theta); };
  return record(rope_op, turned(x, positions, theta), wrt(x, pullback, positions));
}

template Tensor<float> rope(const Tensor<float>&, const Tensor<std::int64_t>&, double);
template Tensor<double> rope(const Tensor<double>&, const Tensor<std::int64_t>&, double);

}  // namespace tapehead
