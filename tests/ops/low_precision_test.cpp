// Emulated 16-bit numbers, and with them the numerical troubles that the chapter warns of.
#include "tapehead/ops/low_precision.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

// The finite numbers >= 0 of a format in order, from their bits, and with them what would come after the
// last.
std::vector<double> numbers_of(const NumberFormat& format) {
  std::vector<double> all;
  const int exponents = 2 * format.max_exponent + 1;
  for (int e = 0; e < exponents; ++e)
    for (int f = 0; f < 1 << format.fraction_bits; ++f)
      all.push_back(std::ldexp((e == 0 ? 0 : 1 << format.fraction_bits) + f,
                               std::max(e, 1) - format.max_exponent - format.fraction_bits));
  all.push_back(std::ldexp(1.0, format.max_exponent + 1));
  return all;
}

double rounded(const NumberFormat& format, double x) { return round_to(format, scalar(x)).item(); }
Tensor<double> half(const Tensor<double>& x) { return round_to(float16, x); }

// Softmax along an axis as a half-precision kernel without wider sums would do it: each step rounded.
Tensor<double> half_softmax(const Tensor<double>& x, int axis) {
  const auto e = half(exp(half(x - max(x, axis, true))));
  return half(e / half(sum(e, axis, true)));
}

}  // namespace

TEST_CASE("round_to: the limits of float16 and bfloat16") {
  CHECK(float16.largest() == 65504);
  CHECK(float16.epsilon() == 0.0009765625);
  CHECK(float16.smallest_normal() == std::ldexp(1.0, -14));
  CHECK(float16.smallest() == std::ldexp(1.0, -24));
  CHECK(bfloat16.largest() == 3.3895313892515355e38);
  CHECK(bfloat16.epsilon() == 0.0078125);
  CHECK(bfloat16.smallest() == std::ldexp(1.0, -133));
}

TEST_CASE(
    "round_to: every number of the format stays, and between two neighbours the nearer wins, a tie the even "
    "one") {
  for (const NumberFormat& format : {float16, bfloat16}) {
    const auto numbers = numbers_of(format);
    std::vector<double> ask, answer;
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
      const double low = numbers[i], middle = (low + numbers[i + 1]) / 2;
      const double high = i + 2 < numbers.size() ? numbers[i + 1] : inf;  // past the largest number: infinity
      for (const auto& [x, y] : {std::pair(low, low),
                                 {std::nextafter(middle, 0), low},
                                 {middle, i % 2 == 0 ? low : high},
                                 {std::nextafter(middle, inf), high}}) {
        ask.push_back(x), answer.push_back(y);
        ask.push_back(-x), answer.push_back(-y);
      }
    }
    const auto n = static_cast<std::int64_t>(ask.size());
    CHECK(round_to(format, from_vector(ask, {n})).to_vector() == answer);
  }
}

TEST_CASE("round_to: bfloat16 is the upper half of a float, rounded; both element types, signs of zero, NaN") {
  TorchRandom rng(1);
  const auto x = rng.randn({1000}) * 1e3f;
  const auto y = round_to(bfloat16, x);
  for (std::int64_t i = 0; i < 1000; ++i) {
    auto bits = std::bit_cast<std::uint32_t>(x.at({i}));
    bits = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
    CHECK(std::bit_cast<std::uint32_t>(y.at({i})) == bits);
  }
  const auto special = round_to(float16, Tensor<float>{-0.0f, std::numeric_limits<float>::quiet_NaN(),
                                                       -std::numeric_limits<float>::infinity(), -1e-9f});
  CHECK((std::signbit(special.at({0})) && special.at({0}) == 0));
  CHECK(std::isnan(special.at({1})));
  CHECK(special.at({2}) == -std::numeric_limits<float>::infinity());
  CHECK((std::signbit(special.at({3})) && special.at({3}) == 0));
  CHECK(equal(round_to(float16, x.reshape({10, 100}).T()), round_to(float16, x).reshape({10, 100}).T()));  // a view
  // From double in one step: by way of float, 1 + 2^-11 + 2^-40 would become a tie and go down.
  CHECK(rounded(float16, 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)) == 1 + std::ldexp(1.0, -10));
}

TEST_CASE("round_to: a tensor of a tape is refused; straight through, the gradient passes") {
  const Tensor<double> x{1.001, -2.34567, 1e5};
  Tape<double> tape;
  tape.watch(x);
  CHECK(message<GradientError>([&] { round_to(bfloat16, x); }) ==
        "round_to: a tape knows this tensor of shape (3,), and rounding to bfloat16 has derivative 0 "
        "wherever it has one; detach(x), or let "
        "the gradient pass straight through: x + detach(round_to(…, detach(x)) - detach(x))"sv);
  const auto y = x + detach(round_to(bfloat16, detach(x)) - detach(x));
  CHECK(equal(y, round_to(bfloat16, detach(x))));
  CHECK(equal(tape.backward(sum(y * y))[x], y * 2));
}

TEST_CASE("numerics: a fill of -1e9 is -inf in float16, and the most negative number overflows when it is added") {
  CHECK(rounded(float16, -1e9) == -inf);
  CHECK(rounded(bfloat16, -1e9) == -998244352);
  CHECK(rounded(float16, -65504) == -65504);
  CHECK(rounded(float16, -65504 + -10.0) == -65504);  // absorbed: the score is gone, the row stays finite
  CHECK(rounded(float16, -65504 + -16.0) == -inf);    // a score of -16 is enough
}

TEST_CASE(
    "numerics: a row with every key masked is NaN under -inf, uniform under a finite fill, nothing in "
    "attention()") {
  const Tensor<double> scores{{0.5, -1, 2}};
  const auto nothing = zeros<bool>({1, 3});
  const auto filled = [&](double fill) { return half_softmax(half(masked_fill(scores, ~nothing, fill)), -1); };
  for (double fill : {-inf, -1e9}) {  // in float16 the same
    const auto A = filled(fill);
    CHECK(std::isnan(A.at({0, 0})));
  }
  const auto A = filled(-1e4);
  CHECK(A.at({0, 0}) == A.at({0, 2}));                          // no trace of the scores:
  CHECK(std::abs(A.at({0, 0}) - 1.0 / 3) < float16.epsilon());  // the padding is read in equal parts
  const auto V = Tensor<double>{{1, 2}, {3, 4}, {5, 6}};
  CHECK(equal(attention(scores, eye<double>(3), V, {.mask = nothing}).out, zeros<double>({1, 2})));
  // NaN of one row spreads to all through a mean over rows, or the next layer's keys.
  CHECK(std::isnan(mean(matmul(filled(-inf), V)).item()));
}

TEST_CASE(
    "numerics: scores that overflow in float16 before they are scaled do not if the queries are scaled "
    "first") {
  const std::int64_t d = 64;
  const auto q = full<double>({1, d}, 40), k = full<double>({2, d}, 40);  // q·k = 102,400
  const auto late = half(half(matmul(q, k.T())) / 8), early = half(matmul(half(q / 8), k.T()));
  CHECK(late.at({0, 0}) == inf);
  CHECK(early.at({0, 0}) == 12'800);
  CHECK(std::isnan(half_softmax(late, -1).at({0, 0})));
  CHECK(half_softmax(early, -1).to_vector() == std::vector<double>{0.5, 0.5});
  CHECK(round_to(bfloat16, matmul(q, k.T())).at({0, 0}) == 102'400);  // bfloat16 has the range
  CHECK(rounded(bfloat16, 257) == 256);                               // and not the digits
}

TEST_CASE("numerics: a sum in float16 stops growing; weights below the smallest number are gone") {
  double total = 0;
  for (int i = 0; i < 5000; ++i) total = rounded(float16, total + 1);
  CHECK(total == 2048);                             // 2049 is not a float16, and the tie goes to 2048
  CHECK(rounded(float16, 1.0 / 100'000'000) == 0);  // a uniform weight over 10^8 keys
  CHECK(rounded(bfloat16, 1.0 / 100'000'000) > 0);
  // Rows of a softmax in half precision sum to 1 within n roundings.
  const auto A = half_softmax(half(NumpyRandom(1).randn({4, 100})), -1);
  CHECK(allclose(sum(A, -1), ones<double>({4}), 0, 100 * float16.epsilon()));
  CHECK_FALSE(allclose(sum(A, -1), ones<double>({4}), 0, 1e-6));
}

TEST_CASE("numerics: softmax along the wrong axis normalises over queries, and lets the future in") {
  NumpyRandom rng(2);
  const auto S = masked_fill(rng.randn({4, 4}), ~causal_mask(4), -inf);
  const auto right = softmax(S, -1), wrong = softmax(S, -2);
  CHECK(allclose(sum(right, -1), ones<double>({4}), 0, 1e-15));
  CHECK(allclose(sum(wrong, -2), ones<double>({4}), 0, 1e-15));
  CHECK_FALSE(allclose(sum(wrong, -1), ones<double>({4}), 0, 0.1));
  // A later query changes an earlier row's weights: causality is lost though the mask is right.
  const auto later = S + unslice(ones<double>({1, 1}), {4, 1}, 0, 3) * Tensor<double>{5, 0, 0, 0};
  CHECK(equal(softmax(later, -1).slice(0, 0, 3), right.slice(0, 0, 3)));
  CHECK_FALSE(equal(softmax(later, -2).slice(0, 0, 3), wrong.slice(0, 0, 3)));
}

TEST_CASE("numerics: a format that double does not contain is refused") {
  for (const NumberFormat& format : {NumberFormat{"odd", -1, 5}, {"odd", 53, 5}, {"odd", 10, 0}, {"odd", 10, 1024}})
    CHECK(message<ValueError>([&] { round_to(format, scalar(1.0)); }).starts_with("round_to: odd has "));
  CHECK(round_to({"double", 52, 1023}, scalar(0.1)).item() == 0.1);
}
