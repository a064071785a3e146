#pragma once
#include <cstdint>

#include "tapehead/models/gpt.hpp"

namespace tapehead::nn {

struct GenerateOptions {
  /// 0: always the likeliest token. Otherwise logits are divided by it and a token is drawn.
  double temperature = 0;
  std::int64_t top_k = 0;            ///< draw from the k likeliest tokens only (0: from all)
  TorchRandom* generator = nullptr;  ///< needed unless temperature is 0
};

/// The prompt, (…, L) with L >= 1, and n more tokens: (…, L + n), decoded with a KV cache. Throws ValueError for
/// an invalid option, a negative n, L + n beyond the model's learned positions and one (the last token is not read
/// again, so it needs no position), or where a step's logits hold NaN or are all -inf, naming the step.
template <Floating T> Tensor<std::int64_t> generate(const GPT<T>& model, const Tensor<std::int64_t>& prompt,
                                                    std::int64_t n, const GenerateOptions& options = {});

}  // namespace tapehead::nn
