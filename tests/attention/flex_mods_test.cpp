// The ready-made score and mask functions: each against its definition, called by itself.
#include "tapehead/attention/flex_mods.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "attention/rungs.hpp"

using namespace tapehead;
using namespace rungs;
using testing::message;

namespace {

template <class M> std::vector<bool> seen(const M& mask, std::int64_t L) {
  std::vector<bool> all;
  for (std::int64_t i = 0; i < L; ++i)
    for (std::int64_t j = 0; j < L; ++j) all.push_back(mask(0, 0, i, j));
  return all;
}
// The scores that a function gives for L x L scores of 1, one head after the other: v is the identity in the softmax's
// log, so lse of single keys would do; the mask leaves one key at a time.
template <class S>
double score(const S& mod, std::int64_t H, std::int64_t h, std::int64_t i, std::int64_t j, std::int64_t L) {
  const Tensor<double> x = ones<double>({1, H, L, 1});
  const auto one = [j](auto, auto, auto, auto kv) { return kv == j; };
  return flex_attention(x, x, x, mod, one, {.scale = 1.0}).lse.at({0, h, i});
}

}  // namespace

TEST_CASE("flex mods: masks are those of masks.hpp") {
  const Tensor<std::int64_t> ids{3, 3, 5, 5, 5};
  CHECK(seen(flex::causal(), 5) == causal_mask(5).to_vector());
  CHECK(seen(flex::sliding_window(2), 5) == sliding_window_mask(5, 2).to_vector());
  CHECK(seen(flex::prefix_lm(2), 5) == prefix_mask(5, 2).to_vector());
  CHECK(seen(flex::document(ids), 5) == document_mask(ids).to_vector());
  CHECK(seen(and_masks(flex::causal(), flex::document(ids)), 5) == (causal_mask(5) & document_mask(ids)).to_vector());
  CHECK(seen(or_masks(flex::sliding_window(1), flex::document(ids)), 5) == document_mask(ids).to_vector());
  CHECK(flex::document(Tensor<std::int64_t>{{0, 0}, {0, 1}})(1, 0, 0, 1) == false);
}

TEST_CASE("flex mods: score functions give what their formulas say") {
  const Tensor<double> slopes{0.5, 2}, cap = scalar(3.0), table{{1, 2, 3}, {4, 5, 6}};
  CHECK(score(flex::alibi(slopes), 2, 1, 3, 1, 5) == doctest::Approx(1 + 2 * (1 - 3)));
  CHECK(score(flex::soft_cap(cap), 1, 0, 3, 1, 5) == doctest::Approx(3 * std::tanh(1 / 3.0)));
  CHECK(score(flex::relative_bias(table), 2, 0, 2, 2, 5) == 1 + 2);
  CHECK(score(flex::relative_bias(table), 2, 1, 0, 4, 5) == 1 + 4);  // far to the right: the first distance
  CHECK(score(flex::relative_bias(table), 2, 1, 4, 0, 5) == 1 + 6);
}

TEST_CASE("flex mods: arguments that cannot be are named") {
  CHECK(message<ValueError>([] { flex::sliding_window(0); }).find("flex::sliding_window: window 0") == 0);
  CHECK(message<ValueError>([] { flex::prefix_lm(-1); }) == "flex::prefix_lm: prefix -1; it must not be negative"sv);
  CHECK(message<ShapeError>([] {
          flex::document(zeros<std::int64_t>({1, 1, 1}));
        }).find("flex::document: ids of shape (1, 1, 1)") == 0);
  CHECK(message<IndexError>([] {
          flex::document(Tensor<std::int64_t>{1, 1})(0, 0, 0, 2);
        }) == "flex::document: position 2 of 2 ids"sv);
  CHECK(message<IndexError>([] {
          flex::document(Tensor<std::int64_t>{{1, 1}, {1, 2}})(2, 0, 0, 1);
        }) == "flex::document: sequence 2 of a batch, beyond the rows of ids"sv);
  CHECK(message<ShapeError>([] {
          flex::relative_bias(zeros<double>({2, 4}));
        }).find("flex::relative_bias: a table of shape (2, 4)") == 0);
}
