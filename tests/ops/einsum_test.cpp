#include "tapehead/ops/einsum.hpp"

#include <map>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

// Σ over every letter's range, by counting through all of them.
std::vector<double> plain_einsum(const std::string& in_a, const std::string& in_b, const std::string& out,
                                 const Tensor<double>& a, const Tensor<double>& b,
                                 std::map<char, std::int64_t> sizes) {
  const auto va = a.to_vector(), vb = b.to_vector();
  const auto place = [&](const std::string& axes, const std::map<char, std::int64_t>& at) {
    std::int64_t flat = 0;
    for (char c : axes) flat = flat * sizes.at(c) + at.at(c);
    return static_cast<std::size_t>(flat);
  };
  std::int64_t total = 1, count = 1;
  for (const auto& [c, size] : sizes) total *= size;
  for (char c : out) count *= sizes.at(c);
  std::vector<double> y(static_cast<std::size_t>(count));
  for (std::int64_t n = 0; n < total; ++n) {
    std::map<char, std::int64_t> at;
    std::int64_t rest = n;
    for (const auto& [c, size] : sizes) at[c] = rest % size, rest /= size;
    y[place(out, at)] += va[place(in_a, at)] * vb[place(in_b, at)];
  }
  return y;
}

}  // namespace

TEST_CASE(
    "einsum: every equation of up to four letters over two operands, against counting through all indices") {
  // Each letter stands in a, in b or in both, and in the result or not: 6 kinds; all combinations for three
  // letters, with the terms' letters in two orders.
  NumpyRandom rng(1);
  const std::string letters = "abc";
  int checked = 0;
  for (int kinds = 0; kinds < 6 * 6 * 6; ++kinds)
    for (bool turned : {false, true}) {
      std::string in_a, in_b, out;
      std::map<char, std::int64_t> sizes;
      for (int i = 0, rest = kinds; i < 3; ++i, rest /= 6) {
        const int kind = rest % 6;
        const char c = letters[static_cast<std::size_t>(i)];
        sizes[c] = 2 + i;
        if (kind % 3 != 1) in_a += c;
        if (kind % 3 != 0) in_b = turned ? c + in_b : in_b + c;
        if (kind >= 3) out = turned ? out + c : c + out;
      }
      const auto shape = [&](const std::string& axes) {
        Shape s;
        for (char c : axes) s = s.with(s.rank(), sizes.at(c));
        return s;
      };
      const auto a = rng.randn(shape(in_a)), b = rng.randn(shape(in_b));
      const std::string equation = in_a + "," + in_b + "->" + out;
      CAPTURE(equation);
      const auto y = einsum(equation, a, b);
      CHECK(y.shape() == shape(out));
      CHECK(allclose(y, from_vector(plain_einsum(in_a, in_b, out, a, b, sizes), shape(out)), 1e-13, 1e-13));
      ++checked;
    }
  CHECK(checked == 432);
}

TEST_CASE("einsum: first and second derivatives") {
  NumpyRandom rng(2);
  CHECK(gradcheck([](auto a, auto b) { return einsum("bij,kbj->ikb", a, b); },
                  {rng.randn({2, 3, 4}), rng.randn({5, 2, 4})}, {.order = 2}));
  CHECK(gradcheck([](auto a, auto b) { return einsum("ijk, jl -> l", a, b); },
                  {rng.randn({2, 3, 2}), rng.randn({3, 4})}, {.order = 2}));
  CHECK(gradcheck([](auto a) { return einsum("ijk->ki", a); }, {rng.randn({2, 3, 4})}));
}

TEST_CASE("einsum: what matmul can do on views is not copied") {
  const auto q = zeros<double>({1, 2, 3, 4}), k = zeros<double>({1, 2, 5, 4});
  Tape<double> tape;
  tape.watch({q, k});
  einsum("bhqd,bhkd->bhqk", q, k);
  CHECK(tape.size() == 4);  // q, k, a permuted k, the product: no reshape
}

TEST_CASE("einsum: empty axes, numbers, spaces") {
  CHECK(equal(einsum(" i j , j k -> i k ", zeros<double>({2, 0}), zeros<double>({0, 3})),
              zeros<double>({2, 3})));
  CHECK(einsum("ij,jk->ik", zeros<float>({0, 2}), zeros<float>({2, 3})).shape() == Shape{0, 3});
  CHECK(einsum(",->", scalar(2.0), scalar(3.0)).item() == 6);
  CHECK(einsum("i->", Tensor<double>{1, 2}).item() == 3);
  CHECK(equal(einsum("aB,Bc->ac", Tensor<double>{{1, 2}}, Tensor<double>{{1}, {10}}), Tensor<double>{{21}}));
}

TEST_CASE("einsum: what it refuses") {
  const auto a = zeros<double>({2, 3}), b = zeros<double>({3, 4});
  const auto refused = [&](const std::string& equation) {
    return message<ValueError>([&] { einsum(equation, a, b); });
  };
  CHECK(refused("ij,jk") == "einsum: \"ij,jk\" has no \"->\"; write the axes of the result after one"sv);
  CHECK(refused("i...,jk->ik") == "einsum: \"i...,jk->ik\" has \"...\"; write every axis as a letter"sv);
  CHECK(refused("ij->ij") == "einsum: \"ij->ij\" has 1 terms before \"->\" for 2 tensors"sv);
  CHECK(refused("ij,jk,kl->il").find("has 3 terms before") != std::string::npos);
  CHECK(refused("ii,jk->ik") ==
        "einsum: \"ii,jk->ik\" names 'i' twice in \"ii\"; a diagonal is not supported"sv);
  CHECK(refused("ij,jk->iik").find("names 'i' twice in \"iik\"") != std::string::npos);
  CHECK(refused("ij,jk->iz") == "einsum: \"ij,jk->iz\" names 'z' in the result, and in no operand"sv);
  CHECK(refused("i2,jk->ik") == "einsum: \"i2,jk->ik\" has '2', which is no letter"sv);
  CHECK(refused("ij,jk->i->k").find("has '-', which is no letter") != std::string::npos);
  const auto misfit = [&](const std::string& equation) {
    return message<ShapeError>([&] { einsum(equation, a, b); });
  };
  CHECK(misfit("ij,jkl->ik") ==
        "einsum: \"ij,jkl->ik\": \"jkl\" has 3 letters for shape (3, 4); name each axis once"sv);
  CHECK(
      misfit("ij,kj->ik") ==
      "einsum: \"ij,kj->ik\": 'j' is 3 in one operand and 4 in the other (shape (3, 4)); they must be equal"sv);
  const auto big = zeros<double>({1, 1, 1, 1});
  CHECK(message<ShapeError>([&] { einsum("abcd,efgh->abcdefgh", big, big); }) ==
        "einsum: \"abcd,efgh->abcdefgh\": a result of 8 axes; a tensor has at most 6"sv);
}
