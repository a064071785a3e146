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
  if (at == captions.end()) throw tapehead::ValueError("captions.cpp has no words for a figure " + figure);
  return at->second;
}

// A matrix with a row a query and a column a key; of weights, which lie between 0 and 1.
HeatmapOptions queries_by_keys(const char* title, const char* description) {
  return {.title = title, .description = description, .row_axis = "query", .column_axis = "key"};
}
HeatmapOptions weights(const char* title, const char* description) {
  HeatmapOptions options = queries_by_keys(title, description);
  options.precision = 3, options.low = 0, options.high = 1;
  return options;
}

// The description says how large the entries are: the program adds it.
HeatmapOptions jacobian(const char* title) {
  return {.title = title,
          .row_axis = "weight",
          .column_axis = "score",
          .precision = 4,
          .low = -0.25,
          .high = 0.25};
}

// Cost against the number of tokens.
PlotOptions cost(const std::string& title, const char* unit) {
  return {.title = title,
          .description =
              title + " against n, both logarithmic, with the fitted exponents: a sample from one machine.",
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
       {.title = "Looking up tokyo, softer and harder",
        .description =
            "Bars: the share of each key at three temperatures. At 10 all are nearly equal; at 0.1 "
            "tokyo has everything.",
        .y_axis = "weight",
        .height = 280}},
      {"convex_hull",
       {.title = "Outputs are blends: none leaves the hull of the values",
        .description = "Five values in the plane, their convex hull, and the five outputs, all inside it.",
        .x_axis = "first component",
        .y_axis = "second component"}},
      {"variance",
       {.title = "The variance of 1024 scores",
        .description = "Variance against d_k from 1 to 1024, both logarithmic. Without a scale it rises like "
                       "d_k; over the root of d_k it stays at 1; over d_k it falls like 1 / d_k.",
        .x_axis = "d_k",
        .y_axis = "variance of the score",
        .x_scale = Scale::log2,
        .y_scale = Scale::log10}},
      {"saturation",
       {.title = "Saturation, and the gradient that dies with it",
        .description = "Largest of 16 weights and size of the softmax Jacobian against d_k. Without a scale "
                       "the weight rises to 1 and the Jacobian falls to 0; with it both stay where they are.",
        .x_axis = "d_k",
        .y_axis = "mean over 64 rows of 16 keys",
        .x_scale = Scale::log2}},
      {"hard_limit",
       {.title = "Hard retrieval is the limit",
        .description = "Weights against the query's second component. At 0.1 all three keys have a third; by "
                       "30 key 1 has everything.",
        .x_axis = "q[1]",
        .y_axis = "weight",
        .x_scale = Scale::log10,
        .height = 300}},
      {"training",
       {.title = "One self-attention layer learns to say the token before",
        .description = "Mean squared error against steps of gradient descent: it falls at once, then more "
                       "slowly.",
        .x_axis = "step",
        .y_axis = "mean squared error",
        .height = 280}},
      {"online",
       {.title = "One query's output while the keys come in",
        .description = "The output after the first m of 40 keys, against m: it jumps at first, and ends on "
                       "the line of all 40.",
        .x_axis = "keys seen, m",
        .y_axis = "output",
        .height = 300}},
      {"sample_time", cost("Time of one head", "milliseconds")},
      {"sample_memory", cost("Memory of one head", "KiB at most")},
      {"wrong_axis",
       {.title = "The same lookups, softmax along either axis",
        .description = "Loss against steps, the loss logarithmic. Over the keys it falls on and on; over the "
                       "queries it stops early.",
        .x_axis = "step",
        .y_axis = "mean squared error",
        .y_scale = Scale::log10}},
      {"temperature",
       {.title = "From one-hot to even",
        .description = "Weights against temperature: cold, key 1 has all; hot, each key has a third.",
        .x_axis = "temperature τ",
        .y_axis = "weight",
        .x_scale = Scale::log10,
        .height = 300}}};
  return find(captions, figure);
}

const HeatmapOptions& heatmap_caption(const std::string& figure) {
  static const std::map<std::string, HeatmapOptions> captions{
      {"sanity_weights",
       weights("The sanity example: what the query takes from each key",
               "One query and three keys: most of the weight is on key 1, the others have equal parts.")},
      {"causal_weights",
       weights("Causal attention: no weight on what comes later",
               "A 4 by 4 matrix of attention weights. Query i has weight on keys 0 to i only; above the "
               "diagonal all is zero.")},
      {"mask_causal", queries_by_keys("Causal", "5 by 5 grid, filled on and below the diagonal.")},
      {"mask_padding", queries_by_keys("3 of 5 keys", "5 by 5 grid, the first three columns filled.")},
      {"mask_both",
       queries_by_keys("Both", "5 by 5 grid, filled on and below the diagonal in the first three columns.")},
      {"jacobian_uniform", jacobian("Weights nearly uniform")},
      {"jacobian_one_hot", jacobian("Weights one-hot")},
      {"dS",
       queries_by_keys("dS, the gradient of each score",
                       "6 by 6 matrix of the scores' gradients. In every row some are positive and some "
                       "negative, and they sum to 0.")}};
  return find(captions, figure);
}

}  // namespace chapter
