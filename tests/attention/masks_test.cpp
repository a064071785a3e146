// Masks: each against its definition, alone and combined.
#include "tapehead/attention/masks.hpp"

#include <string>
#include <vector>

#include "attention/rungs.hpp"

using namespace tapehead;
using namespace rungs;
using testing::message;

TEST_CASE("masks: causal, padding, documents, windows, prefix, and their combinations") {
  CHECK(equal(causal_mask(3), tril(full<bool>({3, 3}, true))));
  CHECK(
      equal(causal_mask(2, 4, Align::bottom_right), Tensor<bool>{{true, true, true, false}, {true, true, true, true}}));
  CHECK(padding_mask({2, 0}, 3).to_vector() == std::vector<bool>{true, true, false, false, false, false});
  CHECK(equal(document_mask(Tensor<std::int64_t>{0, 0, 1}),
              Tensor<bool>{{true, true, false}, {true, true, false}, {false, false, true}}));
  CHECK(document_mask(Tensor<std::int64_t>{{0, 1}}).shape() == Shape{1, 1, 2, 2});
  CHECK(equal(sliding_window_mask(3, 2), Tensor<bool>{{true, false, false}, {true, true, false}, {false, true, true}}));
  CHECK(equal(prefix_mask(3, 2), Tensor<bool>{{true, true, false}, {true, true, false}, {true, true, true}}));
  CHECK(equal(prefix_mask(3, 4), full<bool>({3, 3}, true)));  // as flex::prefix_lm(4) over 3 tokens
  CHECK(equal(causal_mask(4) & ~sliding_window_mask(4, 1), tril(full<bool>({4, 4}, true), -1)));
  CHECK(message<ValueError>([] { padding_mask({4}, 3); }) ==
        "padding_mask: length 4 of sequence 0; it must be in 0 to 3"sv);
  CHECK(message<ValueError>([] { sliding_window_mask(3, 0); }).find("window 0") != std::string::npos);
  CHECK(message<ShapeError>([] {
          document_mask(zeros<std::int64_t>({1, 2, 3}));
        }).find("ids of shape (1, 2, 3)") != std::string::npos);
}

TEST_CASE("attention: a window of W counts the query's own key; packed documents do not see each other") {
  const Tensor<double> zero = zeros<double>({4, 1});
  CHECK(
      attention(zero, zero, Tensor<double>{{1}, {2}, {3}, {4}}, {.mask = sliding_window_mask(4, 2)}).out.to_vector() ==
      std::vector<double>{1, 1.5, 2.5, 3.5});
  const Tensor<double> five = zeros<double>({5, 1});
  CHECK(attention(five, five, Tensor<double>{{1}, {2}, {3}, {10}, {20}},
                  {.mask = document_mask(Tensor<std::int64_t>{0, 0, 0, 1, 1}), .causal = true})
            .out.to_vector() == std::vector<double>{1, 1.5, 2, 10, 15});
}

TEST_CASE("masks: sizes, lengths and windows that cannot be are refused") {
  CHECK_THROWS_AS(causal_mask(-1), ShapeError);
  CHECK_THROWS_AS(causal_mask(2, -3, Align::top_left), ShapeError);
  for (Align align : {Align::top_left, Align::bottom_right}) {  // nothing to fill, however long the other side is
    CHECK(causal_mask(std::int64_t{1} << 62, 0, align).numel() == 0);
    CHECK(sliding_window_mask(0, std::int64_t{1} << 62, 3, align).numel() == 0);
  }
  CHECK_THROWS_AS(padding_mask({1}, -1), Error);
  CHECK_THROWS_AS(padding_mask({-1}, 3), ValueError);
  CHECK_THROWS_AS(padding_mask({4}, 3), ValueError);
  CHECK_THROWS_AS(sliding_window_mask(3, 0), ValueError);
  CHECK_THROWS_AS(sliding_window_mask(3, -2), ValueError);
  CHECK_THROWS_AS(sliding_window_mask(-3, 2), ShapeError);
  CHECK_THROWS_AS(prefix_mask(3, -1), ValueError);
  CHECK_THROWS_AS(document_mask(zeros<std::int64_t>({1, 1, 2})), ShapeError);
  CHECK(sliding_window_mask(3, INT64_MAX).to_vector() == causal_mask(3).to_vector());
  CHECK(padding_mask({}, 3).shape() == Shape{0, 1, 1, 3});
}
