#pragma once
#include <cstdint>
#include <optional>

#include "tapehead/tensor/tensor.hpp"

// The book's seeds: the draws of np.random.seed(s) and of torch.manual_seed(s) on the CPU, bit for bit. Both use the
// same generator of 32-bit words and differ in what they compute from them. A generator is a value: a copy of it draws
// the same numbers again. The logarithms, sines and cosines of double draws are the C library's; another library than
// glibc may differ in the last bit of a normal double, and nowhere else.

namespace tapehead {

/// The Mersenne Twister MT19937 (Matsumoto & Nishimura 1998, initialisation of 2002).
class Mt19937 {
 public:
  explicit Mt19937(std::uint32_t seed);
  /// The next word, uniform on 32 bits.
  std::uint32_t next();
  /// Two words; the first is the high half.
  std::uint64_t next64();

 private:
  static constexpr int size = 624;
  void refill();
  std::uint32_t state_[size];
  int used_ = size;
};

/// np.random.seed(s) and the functions of np.random that draw from it.
class NumpyRandom {
 public:
  /// Throws ValueError unless 0 <= seed < 2^32.
  explicit NumpyRandom(std::int64_t seed);

  /// Uniform in [0, 1), of 53 bits.
  Tensor<double> rand(const Shape& shape);
  /// Standard normal, by Marsaglia's polar method. The second of each pair waits for the next call.
  Tensor<double> randn(const Shape& shape);
  /// Uniform in low … high - 1. Throws ValueError where high <= low.
  Tensor<std::int64_t> randint(std::int64_t low, std::int64_t high, const Shape& shape);
  /// 0 … n - 1 in random order, (n,).
  Tensor<std::int64_t> permutation(std::int64_t n);

 private:
  double unit();
  double gaussian();
  std::uint64_t below_or_equal(std::uint64_t top);
  Mt19937 words_;
  std::optional<double> spare_;
};

/// torch.manual_seed(s) and the functions that draw from PyTorch's CPU generator. Draws are float unless
/// double is asked for: `rng.randn({2, 3})`, `rng.randn<double>({2, 3})`. The arithmetic is that of its x86
/// builds with AVX2 or newer.
class TorchRandom {
 public:
  /// Only the low 32 bits of the seed count, as in PyTorch.
  explicit TorchRandom(std::int64_t seed) : words_(static_cast<std::uint32_t>(seed)) {}

  /// Uniform in [0, 1), of 24 bits (float) or 53 (double).
  template <Floating T = float> Tensor<T> rand(const Shape& shape);
  /// Uniform in [low, high): Tensor.uniform_, but where PyTorch's draw is rounded up to high, the largest number below
  /// it. Where low = high, all draws are low. Throws ValueError where low > high, or high - low overflows T.
  template <Floating T = float> Tensor<T> uniform(double low, double high, const Shape& shape);
  /// Standard normal by Box and Muller: 16 elements or more in blocks of 16 from that many uniforms, the last
  /// 16 drawn anew where 16 does not divide; fewer one after the other in double, the second of each pair
  /// waiting for the next such call. PyTorch 2 computes log1p(-u) where 1.13, and this, compute log(1 - u):
  /// fewer than 16 doubles may differ from it by 5e-16.
  template <Floating T = float> Tensor<T> randn(const Shape& shape) { return normal<T>(0, 1, shape); }
  /// Tensor.normal_. Throws ValueError where the deviation is negative.
  template <Floating T = float> Tensor<T> normal(double mean, double deviation, const Shape& shape);
  /// Uniform in low … high - 1. Throws ValueError where high <= low. For 2^28 numbers or
  /// more PyTorch 2 draws otherwise than 1.13 and this.
  Tensor<std::int64_t> randint(std::int64_t low, std::int64_t high, const Shape& shape);
  /// 0 … n - 1 in random order, (n,).
  Tensor<std::int64_t> randperm(std::int64_t n);
  /// True with probability p. torch.dropout(x, p) keeps the elements where bernoulli(1 - p) is true. Throws
  /// ValueError unless 0 <= p <= 1.
  Tensor<bool> bernoulli(double p, const Shape& shape);
  /// Tensor.exponential_ of PyTorch 2.7 and newer: -log(1 - u) / rate. Throws ValueError unless rate > 0.
  template <Floating T = float> Tensor<T> exponential(double rate, const Shape& shape);
  /// torch.multinomial of those versions: `count` indices for each row of p, (…, n) to (…, count), index i with
  /// probability p_i / Σ p; with replacement, or else each index at most once. Throws ValueError where an element of p is
  /// negative or not finite, or a row has too few elements above 0, and then draws nothing.
  template <Floating T>
  Tensor<std::int64_t> multinomial(const Tensor<T>& p, std::int64_t count, bool replacement = false);

  /// 64 bits, to seed something else with.
  std::uint64_t next_uint64() { return words_.next64(); }

  /// What nn.Linear(fan_in, fan_out) starts from: its weight, (fan_out, fan_in), and drawn after it its bias,
  /// (fan_out,); both uniform within ±1/√fan_in. Throws ValueError where fan_in < 1.
  template <Floating T = float> Tensor<T> linear_weight(std::int64_t fan_in, std::int64_t fan_out);
  template <Floating T = float> Tensor<T> linear_bias(std::int64_t fan_in, std::int64_t fan_out);

 private:
  template <Floating T> T unit();
  double gaussian();
  Mt19937 words_;
  std::optional<double> spare_;
};

}  // namespace tapehead
