// What the generators are. That every draw is NumPy's and PyTorch's own, golden_random_test.cpp checks.
#include "tapehead/random/random.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/join.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/views.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

TEST_CASE("random: the Mersenne Twister's ten thousandth word") {
  Mt19937 words(5489);
  for (int i = 1; i < 10'000; ++i) words.next();
  CHECK(words.next() == 4123659995u);  // the C++ standard requires it of std::mt19937
}

TEST_CASE("random: the first draws of the book's seeds") {
  CHECK(equal(NumpyRandom(1).randn({3}), {1.6243453636632417, -0.6117564136500754, -0.5281717522634557}));
  CHECK(equal(TorchRandom(0).randn({2, 8}).slice(0, 0, 1).slice(1, 0, 4),
              Tensor<float>{{-1.12583983f, -1.15236020f, -0.25057858f, -0.43387881f}}));
  CHECK(equal(TorchRandom(42).randn({7}).slice(0, 0, 3), {0.336690366f, 0.128809407f, 0.234462366f}));
}

TEST_CASE("random: a shape only folds the draws, whatever its rank") {
  CHECK(equal(NumpyRandom(3).randn({3, 5}), NumpyRandom(3).randn({15}).reshape({3, 5})));
  CHECK(equal(TorchRandom(3).randn({2, 3, 4}), TorchRandom(3).randn({24}).reshape({2, 3, 4})));
  CHECK(TorchRandom(3).rand({}).item() == TorchRandom(3).rand({1}).item());
  CHECK(NumpyRandom(3).rand({0, 4}).shape() == Shape{0, 4});
}

TEST_CASE("random: a copy draws the same again, and empty shapes draw nothing") {
  NumpyRandom a(7);
  a.randn({3});  // one waits
  NumpyRandom b = a;
  b.randn({0}), b.randint(4, 5, {9}), b.permutation(1);
  CHECK(equal(a.randn({4}), b.randn({4})));
  TorchRandom c(7);
  c.randn({3});
  TorchRandom d = c;
  d.randn({2, 0}), d.randperm(1), d.randperm(0);
  CHECK(equal(c.randn({4}), d.randn({4})));
}

TEST_CASE("random: NumPy's waiting second normal outlives other draws") {
  NumpyRandom whole(1), parts(1);
  const auto all = whole.randn({4});
  const auto first = parts.randn({3});
  parts.rand({5}), parts.permutation(6);
  CHECK(equal(all, cat(std::vector{first, parts.randn({1})})));
}

TEST_CASE("random: PyTorch's waiting second normal is for fewer than 16 only, of either type") {
  TorchRandom whole(1), parts(1);
  const auto pair = whole.randn<double>({2});
  const auto first = parts.randn<double>({1});
  parts.rand({5}), parts.randn({16});
  CHECK(parts.randn({1}).item() == static_cast<float>(pair.at({1})));
  CHECK(first.item() == pair.at({0}));
}

TEST_CASE("random: where 16 does not divide, the last 16 normals are drawn anew") {
  TorchRandom reference(9);
  const auto block = reference.randn({16});
  reference = TorchRandom(9);
  reference.rand({20});
  const auto tail = reference.randn({16}), got = TorchRandom(9).randn({20});
  CHECK(equal(got.slice(0, 0, 4), block.slice(0, 0, 4)));
  CHECK(equal(got.slice(0, 4, 20), tail));
}

// FNV-1a, 64 bits.
template <class E> std::uint64_t digest(const Tensor<E>& x) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto* bytes = reinterpret_cast<const unsigned char*>(x.data());
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.numel()) * sizeof(E); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

// A rounding that is not PyTorch's or NumPy's shows in one draw of a hundred, or of thousands: the digests
// are of PyTorch 2.15's and NumPy 2.4's own draws. Those of doubles rest on the C library's logarithm, and
// were taken with glibc.
TEST_CASE("random: long runs of draws, bit for bit") {
  CHECK(digest(TorchRandom(0).randn({100'000})) == 0x2cb75245f67478d3);
  CHECK(digest(TorchRandom(2026).randn({100'000})) == 0x5c0285454be9fe41);
  CHECK(digest(TorchRandom(0).linear_weight(100, 300)) == 0xfff7fd69ac6d2d95);
  CHECK(digest(TorchRandom(2026).linear_weight(100, 300)) == 0xa152456561018e4c);
#ifdef __GLIBC__
  CHECK(digest(TorchRandom(0).randn<double>({20'000})) == 0x8667e423c5e16393);
  CHECK(digest(TorchRandom(2026).randn<double>({20'000})) == 0xeb99662bd5561f1d);
  CHECK(digest(NumpyRandom(0).randn({20'001})) == 0x2fa3a985e1ad07b8);
  CHECK(digest(NumpyRandom(2026).randn({20'001})) == 0x53572a3cca52bd8e);
#endif
}

TEST_CASE("random: torch seeds count modulo 2^32") {
  CHECK(equal(TorchRandom(-1).rand({3}), TorchRandom(4294967295).rand({3})));
  CHECK(equal(TorchRandom((std::int64_t{1} << 32) + 5).rand({3}), TorchRandom(5).rand({3})));
  CHECK(!equal(TorchRandom(4).rand({3}), TorchRandom(5).rand({3})));
}

TEST_CASE("random: whole numbers stay in their range, at its widest too") {
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min(), highest = std::numeric_limits<std::int64_t>::max();
  NumpyRandom numpy(2);
  TorchRandom torch(2);
  for (const auto& draws : {numpy.randint(-3, 4, {1000}), torch.randint(-3, 4, {1000})}) {
    std::vector<int> seen(7);
    for (std::int64_t v : draws.to_vector()) {
      REQUIRE(v >= -3);
      REQUIRE(v < 4);
      ++seen[static_cast<std::size_t>(v + 3)];
    }
    for (int times : seen) CHECK(times > 90);  // 143 expected; 90 is five standard deviations off
  }
  for (const auto& draws : {numpy.randint(lowest, highest, {100}), torch.randint(lowest, highest, {100})}) {
    int negative = 0;
    for (std::int64_t v : draws.to_vector()) negative += v < 0;
    CHECK(negative > 25);
    CHECK(negative < 75);
  }
  CHECK(numpy.randint(-5, -4, {2}).to_vector() == std::vector<std::int64_t>{-5, -5});
  for (auto order : {numpy.permutation(50).to_vector(), torch.randperm(50).to_vector()}) {
    CHECK(order != arange<std::int64_t>(50).to_vector());
    std::sort(order.begin(), order.end());
    CHECK(order == arange<std::int64_t>(50).to_vector());
  }
}

TEST_CASE("random: nn.Linear's start is its weight, then its bias") {
  TorchRandom a(0), b(0);
  const double bound = 1 / std::sqrt(3.0);
  const auto weight = a.linear_weight(3, 5), bias = a.linear_bias(3, 5);
  CHECK(weight.shape() == Shape{5, 3});
  CHECK(bias.shape() == Shape{5});
  CHECK(allclose(weight, b.uniform(-bound, bound, {5, 3}), 0, 1e-7));
  CHECK(equal(bias, b.uniform(-bound, bound, {5})));
  for (std::int64_t fan_in : {0, -1}) {
    CHECK(message<ValueError>([&] { a.linear_weight(fan_in, 4); }).starts_with("linear_weight: fan_in "));
    CHECK(message<ValueError>([&] { a.linear_bias(fan_in, 4); }).starts_with("linear_bias: fan_in "));
  }
}

TEST_CASE("random: probabilities 0 and 1 are exact") {
  TorchRandom rng(0);
  CHECK(equal(rng.bernoulli(0, {200}), zeros<bool>({200})));
  CHECK(equal(rng.bernoulli(1, {200}), ones<bool>({200})));
  CHECK(equal(rng.normal(2.5, 0, {17}), full<float>({17}, 2.5f)));
}

TEST_CASE_TEMPLATE("random: exponential and multinomial draw as torch 2.15", T, float, double) {
  constexpr bool single = std::is_same_v<T, float>;
  TorchRandom rng(3);
  const Tensor<double> first{0x1.1c4a6b70883d5p-5, 0x1.5a04f87c7f05cp-2, 0x1.7b809300e7ac2p+0, 0x1.89cbe76a6334bp-3,
                             0x1.6873347d39cacp+0};
  CHECK(equal(rng.exponential<T>(1, {5}), to<T>(first)));
  CHECK(equal(rng.exponential<T>(2.5, {1, 3}),
              to<T>(Tensor<double>{{0x1.7fd9845dd733ap-2, 0x1.6afe6124f1911p-4, 0x1.d1694ef797358p-3}})));
  const Tensor<T> p{{T(0.1), T(0.2), T(0.3), T(0.4)}, {0, 5, 1, T(0.5)}, {1, 0, 0, 0}}, two = p.slice(0, 0, 2);
  using Index = Tensor<std::int64_t>;
  rng = TorchRandom(5);
  CHECK(equal(rng.multinomial(p, 1), Index{{3}, {1}, {0}}));
  CHECK(equal(rng.multinomial(two, 2), Index{{2, 3}, {1, 2}}));
  CHECK(equal(rng.multinomial(two.unsqueeze(1), 3), Index{{{2, 3, 1}}, {{1, 2, 3}}}));
  CHECK(equal(rng.multinomial(p, 7, true), Index{{2, 3, 3, 3, 1, 2, 3}, {1, 1, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 0, 0}}));
  CHECK(equal(rng.multinomial(p, 1, true), Index{{2}, {1}, {0}}));
  CHECK(equal(rng.multinomial(p[0], 9, true), Index{3, 3, 0, 1, 3, 2, 3, 3, 2}));
  CHECK(equal(rng.rand({2}), Tensor<float>{0x1.7b1dc0p-4f, 0x1.efd59ep-1f}));
  rng = TorchRandom(11);
  const auto w = rng.rand<T>({100});
  const auto many = rng.multinomial(w, 2000, true), each = rng.multinomial(w, 100);
  CHECK(sum(many * arange<std::int64_t>(2000)).item() == (single ? 99692053 : 98266284));
  CHECK(sum(each * arange<std::int64_t>(100)).item() == (single ? 255001 : 230795));
  CHECK(rng.multinomial(zeros<T>({0, 4}), 2).shape() == Shape{0, 2});
}

TEST_CASE_TEMPLATE("random: probabilities that are none are refused, and draw nothing", T, float, double) {
  TorchRandom rng(1);
  const T inf = std::numeric_limits<T>::infinity();
  CHECK(
      message<ValueError>([&] {
        rng.multinomial(Tensor<T>{1, -1}, 1);
      }) ==
      "multinomial: a row of p has 1 elements above 0 for 1 draws; it needs 1, and all must be finite and 0 or more"sv);
  for (const T bad : {inf, inf - inf}) CHECK_THROWS_AS(rng.multinomial(Tensor<T>{1, bad}, 1, true), ValueError);
  CHECK(
      message<ValueError>([&] {
        rng.multinomial(Tensor<T>{{1, 1, 1}, {0, 1, 0}}, 2);
      }) ==
      "multinomial: a row of p has 1 elements above 0 for 2 draws; it needs 2, and all must be finite and 0 or more"sv);
  CHECK_THROWS_AS(rng.multinomial(zeros<T>({3}), 2, true), ValueError);
  CHECK_THROWS_AS(rng.multinomial(zeros<T>({2, 0}), 1, true), ValueError);
  CHECK(message<ShapeError>([&] { rng.multinomial(scalar(T(1)), 1); }) ==
        "multinomial: 1 draws for p of shape (); it takes 1 or more, and p is (…, n)"sv);
  CHECK_THROWS_AS(rng.multinomial(Tensor<T>{1, 1}, 0), ShapeError);
  CHECK(message<ValueError>([&] { rng.exponential<T>(0, {2}); }) == "exponential: rate 0; it must be above 0"sv);
  CHECK(equal(rng.rand({3}), TorchRandom(1).rand({3})));
}

TEST_CASE("random: bad arguments are named, and draw nothing") {
  CHECK(message<ValueError>([] { NumpyRandom(-1); }) ==
        "NumpyRandom: seed -1; as in np.random.seed it must be 0 to 4294967295"sv);
  CHECK(message<ValueError>([] { NumpyRandom(std::int64_t{1} << 32); }) ==
        "NumpyRandom: seed 4294967296; as in np.random.seed it must be 0 to 4294967295"sv);
  NumpyRandom numpy(0);
  TorchRandom torch(0);
  const NumpyRandom numpy_before = numpy;
  const TorchRandom torch_before = torch;
  const std::string range = "randint: low 3 and high 3; draws are below high, which must be above low";
  CHECK(message<ValueError>([&] { numpy.randint(3, 3, {2}); }) == range);
  CHECK(message<ValueError>([&] { torch.randint(3, 3, {2}); }) == range);
  CHECK(message<ValueError>([&] { numpy.permutation(-1); }) ==
        "permutation: n is -1; it is a number of elements, 0 or more"sv);
  CHECK(message<ValueError>([&] { torch.randperm(-2); }) ==
        "randperm: n is -2; it is a number of elements, 0 or more"sv);
  CHECK(message<ValueError>([&] { torch.uniform(1, 0, {2}); }) ==
        "uniform: low 1 and high 0; low must not be above high"sv);
  CHECK(message<ValueError>([&] { torch.normal(0, -1, {2}); }) == "normal: deviation -1; it must be 0 or more"sv);
  CHECK(message<ValueError>([&] { torch.normal(0, NAN, {2}); }) == "normal: deviation nan; it must be 0 or more"sv);
  CHECK(message<ValueError>([&] { torch.bernoulli(1.5, {2}); }) ==
        "bernoulli: probability 1.5; it must be in [0, 1]"sv);
  CHECK(message<ValueError>([&] { torch.bernoulli(NAN, {2}); }) ==
        "bernoulli: probability nan; it must be in [0, 1]"sv);
  for (const Shape& shape : {Shape{-1}, Shape{2, -3}, Shape{std::int64_t{1} << 40, std::int64_t{1} << 40}}) {
    CHECK_THROWS_AS(numpy.rand(shape), ShapeError);
    CHECK_THROWS_AS(numpy.randn(shape), ShapeError);
    CHECK_THROWS_AS(numpy.randint(0, 9, shape), ShapeError);
    CHECK_THROWS_AS(torch.rand(shape), ShapeError);
    CHECK_THROWS_AS(torch.randn(shape), ShapeError);
    CHECK_THROWS_AS(torch.bernoulli(0.5, shape), ShapeError);
  }
  NumpyRandom numpy_fresh = numpy_before;
  TorchRandom torch_fresh = torch_before;
  CHECK(equal(numpy.randn({3}), numpy_fresh.randn({3})));
  CHECK(equal(torch.randn({3}), torch_fresh.randn({3})));
}

TEST_CASE_TEMPLATE("random: a half-open range never gives its upper end", T, float, double) {
  TorchRandom rng(0), units(0);
  const std::int64_t n = 4'000'000;
  const T low = 1000, high = std::is_same_v<T, float> ? T(1001) : std::nextafter(T(1000), T(2000)) + T(1e-12);
  const auto drawn = rng.uniform<T>(low, high, {n}), unit = units.rand<T>({n});
  std::int64_t rounded = 0, others = 0;
  const T span = high - low;
  for (std::int64_t i = 0; i < n; ++i) {
    const T torch = std::fma(unit.data()[i], span, low), got = drawn.data()[i];
    if (torch < high)
      others += got != torch;
    else
      ++rounded, others += got != std::nextafter(high, low);
  }
  CHECK(rounded > 0);  // PyTorch gives the upper end here
  CHECK(others == 0);  // and the same draw everywhere else
}

TEST_CASE_TEMPLATE("random: every half-open draw stays below its end", T, float, double) {
  TorchRandom rng(1);
  const auto below = [](const Tensor<T>& x, double end) {
    for (T v : x.to_vector())
      if (!(v < static_cast<T>(end))) return false;
    return true;
  };
  CHECK(below(rng.rand<T>({200'000}), 1));
  for (double low : {-1e9, -1000.0, -1.0, 0.0, 1.0, 255.0, 1e9})
    CHECK(
        below(rng.uniform<T>(
                  low, static_cast<double>(std::nextafter(static_cast<T>(low), std::numeric_limits<T>::max())), {1000}),
              static_cast<double>(std::nextafter(static_cast<T>(low), std::numeric_limits<T>::max()))));
  CHECK(equal(rng.uniform<T>(3, 3, {4}), full<T>({4}, 3)));
  if constexpr (std::is_same_v<T, double>) {
    for (double v : NumpyRandom(1).rand({200'000}).to_vector()) REQUIRE(v < 1);
  }
}

TEST_CASE("random: a range that overflows is refused, and draws nothing") {
  TorchRandom rng(3), fresh(3);
  CHECK(message<ValueError>([&] { rng.uniform<double>(-1.7e308, 1.7e308, {2}); }) ==
        "uniform: from -1.7e+308 to 1.7e+308 is a range that overflows double; halve both and multiply the "
        "draws by "
        "2"sv);
  CHECK_THROWS_AS(rng.uniform<float>(-3e38, 3e38, {2}), ValueError);
  CHECK_THROWS_AS(rng.uniform<float>(0, 1e300, {2}), ValueError);
  for (double bad : {double(INFINITY), double(NAN)}) {
    CHECK_THROWS_AS(rng.uniform<double>(0, bad, {2}), ValueError);
    CHECK_THROWS_AS(rng.uniform<double>(-bad, 0, {2}), ValueError);
  }
  CHECK(equal(rng.rand({3}), fresh.rand({3})));
}
