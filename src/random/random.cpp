#include "tapehead/random/random.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/require.hpp"

// This file is compiled with -ffp-contract=off: a product and a sum are fused where std::fma says so and
// nowhere else. The draws are an interface: each rounding here is one that NumPy or PyTorch does.

namespace tapehead {

Mt19937::Mt19937(std::uint32_t seed) {
  state_[0] = seed;
  for (std::uint32_t i = 1; i < size; ++i) state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
}

void Mt19937::refill() {
  for (int i = 0; i < size; ++i) {
    const std::uint32_t y = (state_[i] & 0x80000000u) | (state_[(i + 1) % size] & 0x7fffffffu);
    state_[i] = state_[(i + 397) % size] ^ (y >> 1) ^ (0x9908b0dfu & (0u - (y & 1u)));
  }
  used_ = 0;
}

std::uint32_t Mt19937::next() {
  if (used_ == size) refill();
  std::uint32_t y = state_[used_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

std::uint64_t Mt19937::next64() {
  const std::uint64_t high = next();
  return high << 32 | next();
}

namespace {

// high - low, which an unsigned number holds even where a signed one does not.
std::uint64_t width(std::int64_t low, std::int64_t high) {
  require<ValueError>(low < high, "randint: low {} and high {}; draws are below high, which must be above low", low,
                      high);
  return static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
}
std::int64_t plus(std::int64_t low, std::uint64_t step) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + step);
}

// Drawn one after the other, in row-major order.
template <class E, class F> Tensor<E> filled(const char* op, const Shape& shape, const F& draw) {
  Buffer<E> out(shape, op);
  std::generate_n(out.data(), out.numel(), draw);
  return out;
}

Buffer<std::int64_t> counting(const char* op, std::int64_t n) {
  require<ValueError>(n >= 0, "{}: n is {}; it is a number of elements, 0 or more", op, n);
  Buffer<std::int64_t> out({n}, op);
  std::iota(out.data(), out.data() + n, std::int64_t{0});
  return out;
}

}  // namespace

// ---- NumPy --------------------------------------------------------------------------------------------------

NumpyRandom::NumpyRandom(std::int64_t seed) : words_(static_cast<std::uint32_t>(seed)) {
  require<ValueError>(seed >= 0 && seed <= 0xffffffff,
                      "NumpyRandom: seed {}; as in np.random.seed it must be 0 to 4294967295", seed);
}

double NumpyRandom::unit() {
  const std::uint32_t a = words_.next() >> 5, b = words_.next() >> 6;
  return (a * 67108864.0 + b) / 9007199254740992.0;
}

double NumpyRandom::gaussian() {
  if (spare_) return *std::exchange(spare_, std::nullopt);
  double x1, x2, r2;
  do {
    x1 = 2.0 * unit() - 1.0;
    x2 = 2.0 * unit() - 1.0;
    r2 = x1 * x1 + x2 * x2;
  } while (r2 >= 1.0 || r2 == 0.0);
  const double f = std::sqrt(-2.0 * std::log(r2) / r2);
  spare_ = f * x1;
  return f * x2;
}

// Uniform in 0 … top: words cut to top's number of bits, until one is not above it.
std::uint64_t NumpyRandom::below_or_equal(std::uint64_t top) {
  if (top == 0) return 0;
  const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(top);
  std::uint64_t drawn;
  do {
    drawn = mask & (top > 0xffffffff ? words_.next64() : words_.next());
  } while (drawn > top);
  return drawn;
}

Tensor<double> NumpyRandom::rand(const Shape& shape) {
  return filled<double>("rand", shape, [this] { return unit(); });
}

Tensor<double> NumpyRandom::randn(const Shape& shape) {
  return filled<double>("randn", shape, [this] { return gaussian(); });
}

Tensor<std::int64_t> NumpyRandom::randint(std::int64_t low, std::int64_t high, const Shape& shape) {
  const std::uint64_t top = width(low, high) - 1;
  return filled<std::int64_t>("randint", shape, [=, this] { return plus(low, below_or_equal(top)); });
}

Tensor<std::int64_t> NumpyRandom::permutation(std::int64_t n) {
  auto out = counting("permutation", n);
  for (std::int64_t i = n - 1; i > 0; --i)
    std::swap(out[i], out[static_cast<std::int64_t>(below_or_equal(static_cast<std::uint64_t>(i)))]);
  return out;
}

// ---- PyTorch ------------------------------------------------------------------------------------------------

namespace {

// The logarithm of 0 < x <= 1, and sine and cosine of 0 <= t <= 2π, after the single-precision Cephes library
// (S. Moshier), in the order of operations of PyTorch's vector code.
float log_of(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  const float m = std::bit_cast<float>((bits & 0x007fffff) | 0x3f000000);  // x = m 2^e, ½ <= m < 1
  const bool low = m < 0.707106781186547524f;
  const float e = static_cast<float>((bits >> 23) - 126) - (low ? 1.0f : 0.0f);
  const float f = (m - 1.0f) + (low ? m : 0.0f), z = f * f;
  float y = 7.0376836292e-2f;
  for (float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                  2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f})
    y = std::fma(y, f, c);
  y = std::fma(f * y, z, e * -2.12194440e-4f);
  y = std::fma(-z, 0.5f, y);
  return std::fma(e, 0.693359375f, f + y);
}

void sincos_of(float t, float& sine, float& cosine) {
  const std::int32_t octant = (static_cast<std::int32_t>(t * 1.27323954473516f) + 1) & ~1;
  const auto turns = static_cast<float>(octant);
  float x = std::fma(turns, -0.78515625f, t);  // t - octant π/4, π/4 in three pieces
  x = std::fma(turns, -2.4187564849853515625e-4f, x);
  x = std::fma(turns, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = std::fma(std::fma(2.443315711809948e-5f, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f);
  c = std::fma(z * c, z, -(z * 0.5f)) + 1.0f;
  float s = std::fma(std::fma(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f);
  s = std::fma(z * s, x, x);
  const bool swap = (octant & 2) != 0;
  sine = swap ? c : s;
  cosine = swap ? s : c;
  sine = (octant & 4) != 0 ? -sine : sine;
  cosine = ((octant - 2) & 4) == 0 ? -cosine : cosine;
}
double log_of(double x) { return std::log(x); }
void sincos_of(double t, double& sine, double& cosine) { sine = std::sin(t), cosine = std::cos(t); }

// Box and Muller: 16 uniforms become 16 normals, x[j] and x[j + 8] by radius and angle.
template <class T> void normals_of_16(T* x, T mean, T deviation) {
  for (int j = 0; j < 8; ++j) {
    const T radius = std::sqrt(T{-2} * log_of(T{1} - x[j]));
    T sine, cosine;
    sincos_of(T{2} * std::numbers::pi_v<T> * x[j + 8], sine, cosine);
    x[j] = std::fma(radius * cosine, deviation, mean);
    x[j + 8] = std::fma(radius * sine, deviation, mean);
  }
}

}  // namespace

template <Floating T> T TorchRandom::unit() {
  if constexpr (std::is_same_v<T, float>)
    return static_cast<float>(words_.next() & 0xffffff) * 0x1p-24f;
  else
    return static_cast<double>(words_.next64() & 0x1fffffffffffff) * 0x1p-53;
}

double TorchRandom::gaussian() {
  if (spare_) return *std::exchange(spare_, std::nullopt);
  const double u1 = unit<double>(), u2 = unit<double>();
  const double radius = std::sqrt(-2.0 * std::log(1.0 - u2)), angle = 2.0 * std::numbers::pi * u1;
  spare_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

template <Floating T> Tensor<T> TorchRandom::rand(const Shape& shape) {
  return filled<T>("rand", shape, [this] { return unit<T>(); });
}

template <Floating T> Tensor<T> TorchRandom::uniform(double low, double high, const Shape& shape) {
  require<ValueError>(low <= high, "uniform: low {} and high {}; low must not be above high", low, high);
  const T start = static_cast<T>(low), end = static_cast<T>(high), span = end - start;
  require<ValueError>(std::isfinite(span),
                      "uniform: from {} to {} is a range that overflows {}; halve both and multiply the draws by 2",
                      low, high, dtype_name<T>());
  const T last = start < end ? std::nextafter(end, start) : start;  // a draw that rounds to the upper end is this
  return filled<T>("uniform", shape, [=, this] { return std::min(std::fma(unit<T>(), span, start), last); });
}

template <Floating T> Tensor<T> TorchRandom::normal(double mean, double deviation, const Shape& shape) {
  require<ValueError>(deviation >= 0, "normal: deviation {}; it must be 0 or more", deviation);
  Buffer<T> out(shape, "normal");
  const std::int64_t n = out.numel();
  if (n < 16) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(std::fma(gaussian(), deviation, mean));
    return out;
  }
  const T mean_t = static_cast<T>(mean), deviation_t = static_cast<T>(deviation);
  for (std::int64_t i = 0; i < n; ++i) out[i] = unit<T>();
  for (std::int64_t i = 0; i + 16 <= n; i += 16) normals_of_16(out.data() + i, mean_t, deviation_t);
  if (n % 16 != 0) {
    T* last = out.data() + n - 16;
    for (int i = 0; i < 16; ++i) last[i] = unit<T>();
    normals_of_16(last, mean_t, deviation_t);
  }
  return out;
}

Tensor<std::int64_t> TorchRandom::randint(std::int64_t low, std::int64_t high, const Shape& shape) {
  const std::uint64_t count = width(low, high);
  return filled<std::int64_t>("randint", shape, [=, this] {
    return plus(low, (count > 0xffffffff ? words_.next64() : words_.next()) % count);
  });
}

Tensor<std::int64_t> TorchRandom::randperm(std::int64_t n) {
  auto out = counting("randperm", n);
  const bool wide = n >= 0xffffffff / 20;  // where one word modulo n would be visibly uneven
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    const auto left = static_cast<std::uint64_t>(n - i);
    std::swap(out[i], out[plus(i, (wide ? words_.next64() : words_.next()) % left)]);
  }
  return out;
}

Tensor<bool> TorchRandom::bernoulli(double p, const Shape& shape) {
  require<ValueError>(p >= 0 && p <= 1, "bernoulli: probability {}; it must be in [0, 1]", p);
  return filled<bool>("bernoulli", shape, [=, this] { return unit<double>() < p; });
}

template <Floating T> Tensor<T> TorchRandom::exponential(double rate, const Shape& shape) {
  require<ValueError>(rate > 0, "exponential: rate {}; it must be above 0", rate);
  return filled<T>("exponential", shape,
                   [=, this] { return static_cast<T>(-1.0 / rate * std::log1p(-unit<double>())); });
}

// Without replacement the indices of the largest p / q, q exponential, from the largest down; with replacement each draw
// looks for one uniform double among the sums of the row, which are taken in T.
template <Floating T>
Tensor<std::int64_t> TorchRandom::multinomial(const Tensor<T>& p, std::int64_t count, bool replacement) {
  require<ShapeError>(p.rank() >= 1 && count >= 1,
                      "multinomial: {} draws for p of shape {}; it takes 1 or more, and p is (…, n)", count, p.shape());
  const std::int64_t n = p.size(-1), needed = replacement ? 1 : count;
  Buffer<std::int64_t> out(p.shape().replaced(p.rank() - 1, count), "multinomial");
  std::vector<T> weights = p.to_vector();
  std::vector<std::int64_t> order = arange<std::int64_t>(n).to_vector();
  const auto each_row = [&](const auto& f) {
    for (std::int64_t row = 0; row < out.numel() / count; ++row) f(weights.data() + row * n, out.data() + row * count);
  };
  each_row([&](const T* w, std::int64_t*) {
    const auto likely = std::count_if(w, w + n, [](T v) { return v > 0; });
    require<ValueError>(likely >= needed && std::all_of(w, w + n, [](T v) { return v >= 0 && std::isfinite(v); }),
                        "multinomial: a row of p has {} elements above 0 for {} draws; it needs {}, and all must be "
                        "finite and 0 or more",
                        likely, count, needed);
  });
  each_row([&](T* w, std::int64_t* drawn) {
    if (replacement && count > 1) {
      std::partial_sum(w, w + n, w);
      const auto below = [total = w[n - 1]](T sum, double u) { return static_cast<double>(sum / total) < u; };
      std::generate_n(drawn, count, [&] { return std::lower_bound(w, w + n, unit<double>(), below) - w; });
    } else {
      std::for_each(w, w + n, [this](T& v) { v /= static_cast<T>(-std::log1p(-unit<double>())); });
      std::partial_sort_copy(order.begin(), order.end(), drawn, drawn + count,
                             [w](auto a, auto b) { return w[a] > w[b] || (w[a] == w[b] && a < b); });
    }
  });
  return out;
}

namespace {
double checked_fan_in(const char* op, std::int64_t fan_in) {
  require<ValueError>(fan_in >= 1, "{}: fan_in {}; it must be 1 or more, because the bound is 1/√fan_in", op, fan_in);
  return std::sqrt(static_cast<double>(fan_in));
}
}  // namespace

// 1/√fan_in with the roundings of kaiming_uniform_(a = √5): the gain √(2 / (1 + a²)) and √3, both in double.
template <Floating T> Tensor<T> TorchRandom::linear_weight(std::int64_t fan_in, std::int64_t fan_out) {
  const double a = std::sqrt(5.0), gain = std::sqrt(2.0 / (1.0 + a * a));
  const double bound = std::sqrt(3.0) * (gain / checked_fan_in("linear_weight", fan_in));
  return uniform<T>(-bound, bound, {fan_out, fan_in});
}

template <Floating T> Tensor<T> TorchRandom::linear_bias(std::int64_t fan_in, std::int64_t fan_out) {
  const double bound = 1.0 / checked_fan_in("linear_bias", fan_in);
  return uniform<T>(-bound, bound, {fan_out});
}

#define TAPEHEAD_TORCH(T)                                                                          \
  template Tensor<T> TorchRandom::rand<T>(const Shape&);                                           \
  template Tensor<T> TorchRandom::uniform<T>(double, double, const Shape&);                        \
  template Tensor<T> TorchRandom::normal<T>(double, double, const Shape&);                         \
  template Tensor<T> TorchRandom::exponential<T>(double, const Shape&);                            \
  template Tensor<std::int64_t> TorchRandom::multinomial<T>(const Tensor<T>&, std::int64_t, bool); \
  template Tensor<T> TorchRandom::linear_weight<T>(std::int64_t, std::int64_t);                    \
  template Tensor<T> TorchRandom::linear_bias<T>(std::int64_t, std::int64_t);
TAPEHEAD_REALS(TAPEHEAD_TORCH)

}  // namespace tapehead
