#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

// Numbers that carry their derivatives, so that a score function written once gives both. The forward pass
// calls it with N = 0, numbers without derivatives: a function that is not one of these (std::tanh) fails to
// compile at once.

namespace tapehead::kernels {

/// v + Σ dₙ εₙ with εₙ εₘ = 0. N partial derivatives: of the score, and of what the function reads.
template <class T, int N> struct Dual {
  T v{};
  T d[N > 0 ? N : 1] = {};

  Dual() = default;
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>> Dual(Number value)
      : v(static_cast<T>(value)) {}

  /// f(v), and by the chain rule f'(v) times each partial.
  Dual chain(T value, T slope) const {
    Dual y(value);
    for (int n = 0; n < N; ++n) y.d[n] = slope * d[n];
    return y;
  }
  /// f(a, b), with the two slopes.
  static Dual chain(T value, const Dual& a, T da, const Dual& b, T db) {
    Dual y(value);
    for (int n = 0; n < N; ++n) y.d[n] = da * a.d[n] + db * b.d[n];
    return y;
  }

  friend Dual operator+(const Dual& a, const Dual& b) { return chain(a.v + b.v, a, 1, b, 1); }
  friend Dual operator-(const Dual& a, const Dual& b) { return chain(a.v - b.v, a, 1, b, -1); }
  friend Dual operator*(const Dual& a, const Dual& b) { return chain(a.v * b.v, a, b.v, b, a.v); }
  friend Dual operator/(const Dual& a, const Dual& b) { return chain(a.v / b.v, a, 1 / b.v, b, -a.v / (b.v * b.v)); }
  friend Dual operator-(const Dual& a) { return a.chain(-a.v, -1); }
  friend bool operator<(const Dual& a, const Dual& b) { return a.v < b.v; }
  friend bool operator>(const Dual& a, const Dual& b) { return a.v > b.v; }
  friend bool operator<=(const Dual& a, const Dual& b) { return a.v <= b.v; }
  friend bool operator>=(const Dual& a, const Dual& b) { return a.v >= b.v; }

  friend Dual exp(const Dual& a) {
    const T y = std::exp(a.v);
    return a.chain(y, y);
  }
  friend Dual log(const Dual& a) { return a.chain(std::log(a.v), 1 / a.v); }
  friend Dual sqrt(const Dual& a) {
    const T y = std::sqrt(a.v);
    return a.chain(y, 1 / (2 * y));
  }
  friend Dual tanh(const Dual& a) {
    const T y = std::tanh(a.v);
    return a.chain(y, 1 - y * y);
  }
  friend Dual sin(const Dual& a) { return a.chain(std::sin(a.v), std::cos(a.v)); }
  friend Dual cos(const Dual& a) { return a.chain(std::cos(a.v), -std::sin(a.v)); }
  friend Dual abs(const Dual& a) { return a.chain(std::abs(a.v), a.v > 0 ? T{1} : a.v < 0 ? T{-1} : T{0}); }
  friend Dual sigmoid(const Dual& a) {
    const T y = 1 / (1 + std::exp(-a.v));
    return a.chain(y, y * (1 - y));
  }
  friend Dual pow(const Dual& a, double p) {
    return a.chain(static_cast<T>(std::pow(a.v, p)), static_cast<T>(p * std::pow(static_cast<double>(a.v), p - 1)));
  }
  /// At a tie the slope is shared, as maximum() and minimum() do.
  friend Dual max(const Dual& a, const Dual& b) {
    return a.v > b.v ? a : b.v > a.v ? b : chain(a.v, a, T(0.5), b, T(0.5));
  }
  friend Dual min(const Dual& a, const Dual& b) {
    return a.v < b.v ? a : b.v < a.v ? b : chain(a.v, a, T(0.5), b, T(0.5));
  }
};

}  // namespace tapehead::kernels
