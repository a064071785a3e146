#include "captions.hpp"

#include <map>

#include "tapehead/kernels/error.hpp"

namespace chapter {

using tapehead::HeatmapOptions;
using tapehead::PlotOptions;
using tapehead::Scale;

namespace {

template <class Options>
const Options& find(const std::map<std::string, Options>& captions, const std::string& figure) {
  const auto at = captions.find(figure);
  if (at == captions.end())
    throw tapehead::ValueError("captions.cpp has no caption for the figure " + figure);
  return at->second;
}

// A matrix with a row for each query and a column for each key.
HeatmapOptions queries_by_keys(const char* title, const char* description) {
  return {.title = title, .description = description, .row_axis = "query", .column_axis = "key"};
}
// The same for weights, which lie between 0 and 1.
HeatmapOptions weights(const char* title, const char* description, int precision = 2) {
  HeatmapOptions options = queries_by_keys(title, description);
  options.precision = precision, options.low = 0, options.high = 1;
  return options;
}

// The program adds the title and the description, which depend on the weights.
HeatmapOptions jacobian() {
  return {.row_axis = "weight m", .column_axis = "score l", .precision = 3, .low = -0.25, .high = 0.25};
}

// A quantity against the head size.
PlotOptions by_head_size(const char* title, const char* description, const char* y_axis) {
  return {.title = title,
          .description = description,
          .x_axis = "d_k",
          .y_axis = y_axis,
          .x_scale = Scale::log2,
          .height = 320};
}

// Cost against the number of tokens.
PlotOptions cost(const std::string& title, const char* description, const char* unit) {
  return {.title = title,
          .description = description,
          .x_axis = "tokens, n",
          .y_axis = unit,
          .x_scale = Scale::log2,
          .y_scale = Scale::log10,
          .height = 300};
}

}  // namespace

const PlotOptions& plot_caption(const std::string& figure) {
  static const std::map<std::string, PlotOptions> captions{
      {"soft_lookup",
       {.title = "Looking up tokyo at three temperatures",
        .description =
            "Bars: the weight of paris, tokyo and lima at three temperatures. At temperature 10 all "
            "three are near 1/3; at 1 tokyo has more than half; at 0.1 tokyo has all.",
        .y_axis = "weight",
        .height = 280}},
      {"convex_hull",
       {.title = "Every output lies inside the convex hull of the values",
        .description = "Five values in the plane, v₀ to v₄. Four of them are corners of their convex hull, a "
                       "quadrilateral; v₃ and all five outputs lie inside it.",
        .x_axis = "first component",
        .y_axis = "second component"}},
      {"variance",
       {.title = "The variance of 1024 scores for every head size",
        .description =
            "Variance against d_k from 1 to 1024, both axes logarithmic. Without a scale it rises in "
            "proportion to d_k; divided by √d_k it stays at 1; divided by d_k it falls like 1/d_k.",
        .x_axis = "d_k",
        .y_axis = "variance of the score",
        .x_scale = Scale::log2,
        .y_scale = Scale::log10}},
      {"largest_weight",
       by_head_size(
           "Without a scale one of 16 keys takes all the weight",
           "The largest of 16 weights against d_k. Without a scale it rises from 0.29 towards 1; divided by "
           "√d_k it stays at about 0.26; divided by d_k it falls to 1/16, the uniform weight.",
           "largest weight (mean of 64 rows)")},
      {"jacobian_norm",
       by_head_size(
           "Without a scale the softmax Jacobian shrinks as d_k grows",
           "Frobenius norm of the softmax Jacobian against d_k. Without a scale it falls from 0.29 to about "
           "0.06; divided by √d_k it stays at 0.31; divided by d_k it falls slightly, to 0.24.",
           "norm of J (mean of 64 rows)")},
      {"hard_limit",
       {.title = "A larger query component turns soft retrieval into hard retrieval",
        .description =
            "Weights against the query's second component, from 0.1 to 40. At 0.1 all three keys have a "
            "weight near 1/3; from about 10 on key 1 has nearly all of it, and keys 0 and 2 nearly none.",
        .x_axis = "q[1]",
        .y_axis = "weight",
        .x_scale = Scale::log10,
        .height = 300}},
      {"decode_work", cost("Scores computed to generate n tokens",
                           "Scores computed against the number of generated tokens, both axes logarithmic. "
                           "Without a cache the line "
                           "is steeper, with slope 3; with a cache its slope is 2.",
                           "scores")},
      {"training",
       {.title = "A self-attention layer learns to repeat the token before",
        .description =
            "Mean squared error against steps of gradient descent: it falls quickly from 1.1, then ever "
            "more slowly.",
        .x_axis = "step",
        .y_axis = "mean squared error",
        .height = 280}},
      {"online_scores",
       {.title = "The largest score so far changes late and often",
        .description =
            "The scores of 40 keys as points, which spread out from left to right, and the largest score "
            "so far as a line: a staircase that still rises near the right end.",
        .x_axis = "keys seen, m",
        .y_axis = "score",
        .height = 300}},
      {"online_factor",
       {.title = "Each new maximum scales the old sums down",
        .description =
            "The factor by which the running sums are multiplied at each of 40 keys. It is 1 except where "
            "the "
            "largest score changes: there it drops, at some keys to about 0.1. At the first key it is 0, "
            "because there is no sum yet.",
        .x_axis = "keys seen, m",
        .y_axis = "factor",
        .height = 240}},
      {"online",
       {.title = "One query's output as the keys arrive",
        .description =
            "The output after the first m of 40 keys, against m. It jumps whenever a key with a large score "
            "arrives, and ends on the dashed line, the output over all 40 keys.",
        .x_axis = "keys seen, m",
        .y_axis = "output",
        .height = 300}},
      {"sample_time", cost("Time of one head",
                           "Milliseconds against n, both axes logarithmic: a sample from one machine. Both "
                           "kernels follow straight lines "
                           "of slope about 2; flash is the lower one.",
                           "milliseconds")},
      {"sample_memory", cost("Peak memory of one head",
                             "KiB against n, both axes logarithmic: a sample from one machine. The line of "
                             "eager has slope about 2, the line "
                             "of flash about 1.",
                             "KiB")},
      {"gradient_norms",
       {.title = "A smaller scale reduces dQ and dK more than dV",
        .description = "Bars: the norms of dQ, dK and dV with no scale, with 1/√d_k and with 1/d_k. dQ and "
                       "dK shrink from "
                       "one to the next, and with 1/d_k they nearly vanish; dV shrinks much less.",
        .y_axis = "norm of the gradient",
        .height = 300}},
      {"wrong_axis",
       {.title = "The same lookups, learned with softmax along either axis",
        .description =
            "Loss against steps, with a logarithmic loss axis. With softmax along the keys the loss keeps "
            "falling; along the queries it stops at about a quarter of where it began.",
        .x_axis = "step",
        .y_axis = "mean squared error",
        .y_scale = Scale::log10}},
      {"temperature",
       {.title = "Temperature leads from one-hot weights to even ones",
        .description =
            "Weights against temperature, from 0.05 to 100. At low temperature key 1 has all the weight; at "
            "high temperature each of the three keys has 1/3.",
        .x_axis = "temperature τ",
        .y_axis = "weight",
        .x_scale = Scale::log10,
        .height = 300}}};
  return find(captions, figure);
}

const HeatmapOptions& heatmap_caption(const std::string& figure) {
  static const std::map<std::string, HeatmapOptions> captions{
      {"sanity_weights", weights("Weights of the worked example: one query, three keys",
                                 "One row of weights: 0.160 on key 0, 0.681 on key 1, 0.160 on key 2.", 3)},
      {"causal_weights", weights("Causal attention: no weight on later keys",
                                 "A 4 by 4 matrix of attention weights. Query i has weight on keys 0 to i "
                                 "only; above the diagonal all "
                                 "weights are 0.",
                                 3)},
      {"mask_causal",
       queries_by_keys("Causal mask of 5 tokens",
                       "5 by 5 grid, filled on and below the diagonal: query i may attend to keys "
                       "0 to i.")},
      {"mask_padding",
       queries_by_keys(
           "Padding mask of a sequence with 3 tokens",
           "5 by 5 grid with the first three columns filled: every query may attend to keys 0, 1 and 2.")},
      {"mask_both",
       queries_by_keys(
           "The mask for that sequence",
           "5 by 5 grid. Only cells in the first three columns that are on or below the diagonal are filled; "
           "every row has at least one.")},
      {"mask_left_padding",
       queries_by_keys(
           "Two tokens of padding on the left",
           "5 by 5 grid. Only cells in the last three columns that are on or below the diagonal are filled; "
           "rows 0 and 1 have none.")},
      {"paged_blocks",
       {.title = "Which block of the paged cache holds each token",
        .row_axis = "sequence",
        .column_axis = "token",
        .row_labels = {"A", "B"}}},
      {"order_dog", weights("Weights for \"dog bites man\"",
                            "3 by 3 weights with the words dog, bites, man as rows and columns.", 3)},
      {"order_man", weights("Weights for \"man bites dog\"",
                            "The same nine weights with rows and columns in the order man, bites, dog.", 3)},
      {"previous_token_head", weights("Layer 1: the previous-token head",
                                      "6 by 6 weights for the tokens <s>, the, cat, sat, the, cat. Each "
                                      "token has all its weight on the token "
                                      "before it; the first one attends to itself.")},
      {"induction_head",
       weights("Layer 2: the induction head",
               "6 by 6 weights for the same tokens. The second \"the\" has all its weight on the first "
               "\"cat\", the second "
               "\"cat\" on \"sat\"; tokens that have not occurred before spread their weight evenly.")},
      {"scores_one_input",
       {.title = "Scores when one vector is query and key",
        .description =
            "3 by 3 scores for dog, bites, man: a symmetric matrix that is 0 off its diagonal, so each word "
            "scores highest with itself.",
        .row_axis = "query",
        .column_axis = "key",
        .low = -1,
        .high = 1}},
      {"scores_projected",
       queries_by_keys(
           "Scores after W_Q and W_K",
           "3 by 3 scores for dog, bites, man. Only the row of bites is not 0: it is positive for dog and "
           "negative for man, so bites looks for dog while dog does not look for bites.")},
      {"residual_stream",
       {.title = "The tokens after W_O has added what they read",
        .description = "3 rows for dog, bites, man, 6 columns. The first three columns are the identity "
                       "matrix, as in x. In the last three, the row of bites has 1 at \"subject dog\", and "
                       "the other two rows have 1/3 in each.",
        .row_axis = "token",
        .column_axis = "feature",
        .low = 0,
        .high = 1}},
      {"flex_plain", weights("Causal, no score function",
                             "8 by 8 causal weights: 0 above the diagonal; several rows have one large "
                             "weight on or below it.")},
      {"flex_soft_cap",
       weights("With a soft cap on the scores",
               "8 by 8 causal weights. Compared with those without a score function they are more even.")},
      {"flex_alibi",
       weights("ALiBi: distance lowers the score",
               "8 by 8 causal weights. Compared with those without a score function, weight has moved "
               "towards the diagonal; rows 3, 4 and 7 still have much of it on key 1.")},
      {"flex_window", weights("Sliding window of 3",
                              "8 by 8 weights in a band: query i has weight on keys i - 2 to i only.")},
      {"flex_document",
       weights("Two documents, of 3 and 5 tokens",
               "8 by 8 causal weights in two blocks, 3 by 3 and 5 by 5: no weight between documents.")},
      {"packed_documents",
       queries_by_keys(
           "Three documents packed into one buffer of 10 tokens",
           "10 by 10 grid, filled in three lower triangles along the diagonal, of 2, 5 and 3 tokens.")},
      {"jacobian_uniform", jacobian()},
      {"jacobian_one_hot", jacobian()},
      {"dS",
       {.title = "dS: the gradient of each score",
        .description =
            "6 by 6 matrix in which orange is positive and blue negative. Every row has both, because each "
            "row sums to 0.",
        .row_axis = "query",
        .column_axis = "key",
        .precision = 3}}};
  return find(captions, figure);
}

}  // namespace chapter
