#pragma once
// Helpers for comparing one rung of attention with another: inputs of odd and unequal sizes, and output and gradients
// of a call under a tape.
#include <cmath>
#include <cstdint>
#include <vector>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

namespace rungs {

using namespace tapehead;

inline constexpr double rung_tolerance = 1e-13;  // another order of the same few dozen additions
inline bool close(const Tensor<double>& a, const Tensor<double>& b) {
  return a.shape() == b.shape() && allclose(a, b, rung_tolerance, rung_tolerance);
}

struct Inputs {
  Tensor<double> q, k, v, dO;
  Inputs(std::int64_t B, std::int64_t Hq, std::int64_t Hkv, std::int64_t Lq, std::int64_t Lk, std::int64_t d,
         std::int64_t dv) {
    NumpyRandom rng(17);
    q = rng.randn({B, Hq, Lq, d}), k = rng.randn({B, Hkv, Lk, d}), v = rng.randn({B, Hkv, Lk, dv}),
    dO = rng.randn({B, Hq, Lq, dv});
  }
};

// Output and gradients of q, k, v and `more`, under a tape.
template <class F>
std::vector<Tensor<double>> results(const Inputs& in, const std::vector<Tensor<double>>& more, const F& f) {
  Tape<double> tape;
  tape.watch({in.q, in.k, in.v});
  tape.watch(more);
  const Tensor<double> out = f();
  const auto grad = tape.backward(out, in.dO);
  std::vector<Tensor<double>> all{out, grad[in.q], grad[in.k], grad[in.v]};
  for (const auto& x : more) all.push_back(grad[x]);
  return all;
}

inline void hold(const std::vector<Tensor<double>>& a, const std::vector<Tensor<double>>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(close(a[i], b[i]));
  }
}

inline Tensor<double> distances(std::int64_t Lq, std::int64_t Lk) {  // q - kv
  return unsqueeze(arange<double>(static_cast<double>(Lq)), 1) - arange<double>(static_cast<double>(Lk));
}

// The derivative of f (a scalar) along u at x, of any order, by tapes in tapes.
template <class F> Tensor<double> along(const F& f, const Tensor<double>& x, const Tensor<double>& u, int order) {
  if (order == 0) return f(x);
  Tape<double> tape;
  tape.watch(x);
  const Tensor<double> y = along(f, x, u, order - 1);
  return sum(tape.backward(y)[x] * u);
}
// How far the third derivative is from the central difference of the second, relative to it.
template <class F> double third_order_error(const F& f, const Tensor<double>& x, const Tensor<double>& u) {
  const double h = 1e-5, third = along(f, x, u, 3).item();
  const double difference = (along(f, x + u * h, u, 2).item() - along(f, x - u * h, u, 2).item()) / (2 * h);
  return std::abs(third - difference) / std::abs(difference);
}

}  // namespace rungs
