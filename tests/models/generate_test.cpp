// Generating: the likeliest token, tokens drawn as often as softmax says, and errors before any work is done.
#include "tapehead/models/generate.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

template <class T> nn::GPT<T> tiny(TorchRandom& rng, std::int64_t block = 0) {
  return {{.vocabulary = 6,
           .block = block,
           .layers = 1,
           .width = 8,
           .blocks = {.attention = {.heads = 2, .rope = block == 0}}},
          rng};
}
constexpr double inf = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("generate: greedy, drawn, and from the k likeliest") {
  TorchRandom rng(2);
  const auto model = tiny<double>(rng);
  const Tensor<std::int64_t> prompt{{1, 2}, {3, 3}};
  const auto greedy = nn::generate(model, prompt, 4);
  CHECK(greedy.shape() == Shape{2, 6});
  auto by_hand = prompt;  // the whole sequence again for each token
  for (int i = 0; i < 4; ++i)
    by_hand = cat<std::int64_t>({by_hand, unsqueeze(argmax(select(model(by_hand), 1, -1)), -1)}, 1);
  CHECK(equal(greedy, by_hand));
  TorchRandom a(5), b(5), c(6);
  const auto drawn = nn::generate(model, prompt, 30, {.temperature = 2, .generator = &a});
  CHECK(equal(drawn, nn::generate(model, prompt, 30, {.temperature = 2, .generator = &b})));
  CHECK_FALSE(equal(drawn, nn::generate(model, prompt, 30, {.temperature = 2, .generator = &c})));
  CHECK(equal(nn::generate(model, prompt, 4, {.temperature = 3, .top_k = 1, .generator = &a}), greedy));
  CHECK(equal(nn::generate(model, prompt, 0), prompt));

  // Drawn as often as softmax says: 4,000 draws, four standard deviations.
  const auto p = softmax(select(model(prompt[0]), 0, -1) / 1.5, -1);
  std::vector<double> count(6, 0);
  const auto many = nn::generate(model, broadcast_to(prompt[0], {4000, 2}), 1, {.temperature = 1.5, .generator = &a});
  for (std::int64_t token : select(many, 1, 2).to_vector()) ++count[static_cast<std::size_t>(token)];
  for (std::int64_t t = 0; t < 6; ++t) {
    const double q = p.at({t});
    CHECK(std::abs(count[static_cast<std::size_t>(t)] / 4000 - q) < 4 * std::sqrt(q * (1 - q) / 4000));
  }
}

TEST_CASE_TEMPLATE("generate: logits that choose no token are refused, with the step and the sequence", T, float,
                   double) {
  TorchRandom rng(2);
  const Tensor<std::int64_t> prompt{{1, 2}, {3, 3}};
  for (double temperature : {0.0, 1.5})
    for (double bad : {not_a_number, inf, -inf}) {
      auto model = tiny<T>(rng);
      model.lm_head->weight = full<T>({6, 8}, static_cast<T>(bad));
      const auto text =
          message<ValueError>([&] { nn::generate(model, prompt, 3, {.temperature = temperature, .generator = &rng}); });
      CAPTURE(text);
      CHECK(text.starts_with("generate: step 1, sequence 0: "));
    }
  auto model = tiny<T>(rng);
  model.lm_head->weight = full<T>({6, 8}, static_cast<T>(not_a_number));
  CHECK(message<ValueError>([&] { nn::generate(model, prompt, 3); }) ==
        "generate: step 1, sequence 0: logits are NaN, which leaves no token to choose; look for NaN or "
        "infinity in "
        "the model's parameters"sv);
  // A token whose embedding is NaN is chosen first, and met in the second step.
  model = tiny<T>(rng);
  std::int64_t from = 0, chosen = 0;
  for (; from < 6; ++from) {
    chosen = nn::generate(model, Tensor<std::int64_t>{from}, 1).at({1});
    if (chosen != from) break;
  }
  REQUIRE(from < 6);
  const auto is_chosen = eq(reshape(arange<std::int64_t>(6), {6, 1}), scalar(chosen));
  model.wte.weight = where(is_chosen, full<T>({6, 8}, static_cast<T>(not_a_number)), model.wte.weight);
  const auto text = message<ValueError>([&] { nn::generate(model, Tensor<std::int64_t>{from}, 3); });
  CAPTURE(text);
  CHECK(text.starts_with("generate: step 2, sequence 0: logits are NaN, which"));
}

TEST_CASE("generate: every option and length is checked before any work is done") {
  TorchRandom rng(2);
  const auto model = tiny<float>(rng), learned = tiny<float>(rng, 4);
  const Tensor<std::int64_t> prompt{{1, 2}, {3, 3}};
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max(), least = -huge - 1;
  const auto refusal = [&](const nn::GPT<float>& m, std::int64_t n, const nn::GenerateOptions& o = {}) {
    return message<ValueError>([&] { nn::generate(m, prompt, n, o); });
  };
  for (std::int64_t n : {std::int64_t{-1}, huge, huge - 1, least}) CHECK(refusal(model, n).starts_with("generate: "));
  CHECK(refusal(learned, 4) == "generate: 4 more tokens behind 2; it must be 0 to 3, for which there are positions"sv);
  CHECK(nn::generate(learned, prompt, 3).shape() == Shape{2, 5});
  for (double temperature : {-1.0, inf, -inf, not_a_number})
    CHECK(refusal(model, 1, {.temperature = temperature, .generator = &rng}).starts_with("generate: temperature "));
  CHECK(refusal(model, 1, {.temperature = 1}) ==
        "generate: temperature 1 without a generator; give one to draw from, or temperature 0"sv);
  for (std::int64_t k : {std::int64_t{-1}, least})
    CHECK(refusal(model, 1, {.temperature = 1, .top_k = k, .generator = &rng}).starts_with("generate: top_k "));
  CHECK(refusal(model, 1, {.top_k = -1}) == "generate: top_k -1; it must be 0 (all tokens) or more"sv);
  CHECK(equal(nn::generate(model, prompt, 2, {.temperature = 1e-320, .top_k = huge, .generator = &rng}),
              nn::generate(model, prompt, 2)));  // nearly 0: the likeliest
  CHECK(message<ShapeError>([&] {
          nn::generate(model, zeros<std::int64_t>({2, 0}), 1);
        }) == "generate: a prompt of shape (2, 0); it is (…, L), with one token or more"sv);
  Tape<float> tape;
  tape.watch(model.parameters());
  CHECK(message<GradientError>([&] { nn::generate(model, prompt, 1); }).starts_with("KVCache.append: a tape knows k"));
}
