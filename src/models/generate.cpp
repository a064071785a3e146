#include "tapehead/models/generate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/require.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/indexing.hpp"
#include "tapehead/ops/join.hpp"
#include "tapehead/ops/softmax.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead::nn {

using Ids = Tensor<std::int64_t>;

namespace {

// One token by its logits: the likeliest, or one drawn from the k likeliest.
template <class T>
std::int64_t chosen(const Tensor<T>& logits, const GenerateOptions& o, std::int64_t step, std::int64_t row) {
  const std::int64_t size = logits.size(-1);
  const std::int64_t k = o.temperature == 0 ? 1 : o.top_k > 0 ? std::min(o.top_k, size) : size;
  const TopK<T> top = topk(logits, k);  // NaN would come first
  const Tensor<double> scores = to<double>(top.values);
  const double largest = scores.at({0});
  require<ValueError>(
      std::isfinite(largest),
      "generate: step {}, sequence {}: {}, which leaves no token to choose; look for NaN or infinity in "
      "the model's parameters",
      step, row,
      std::isnan(largest) ? "logits are NaN"
      : largest > 0       ? "a logit is inf"
                          : "all logits are -inf");
  if (o.temperature == 0) return top.indices.at({0});
  const std::vector<double> p = softmax((scores - largest) / o.temperature, -1).to_vector();
  double left = o.generator->rand<double>({}).item();
  std::size_t i = 0;
  while (i + 1 < p.size() && left >= p[i]) left -= p[i++];
  return top.indices.at({static_cast<std::int64_t>(i)});
}

}  // namespace

template <Floating T> Ids generate(const GPT<T>& model, const Ids& prompt, std::int64_t n, const GenerateOptions& o) {
  require<ShapeError>(prompt.rank() >= 1 && prompt.size(-1) >= 1,
                      "generate: a prompt of shape {}; it is (…, L), with one token or more", prompt.shape());
  const std::int64_t L = prompt.size(-1);
  const std::int64_t most = (model.wpe ? model.options.block + 1 : std::numeric_limits<std::int64_t>::max()) - L;
  require<ValueError>(n >= 0 && n <= std::max<std::int64_t>(most, 0),
                      "generate: {} more tokens behind {}; it must be 0 to {}, for which there are positions", n, L,
                      std::max<std::int64_t>(most, 0));
  require<ValueError>(o.temperature >= 0 && std::isfinite(o.temperature),
                      "generate: temperature {}; it must be finite and 0 or more", o.temperature);
  require<ValueError>(o.temperature == 0 || o.generator != nullptr,
                      "generate: temperature {} without a generator; give one to draw from, or temperature 0",
                      o.temperature);
  require<ValueError>(o.top_k >= 0, "generate: top_k {}; it must be 0 (all tokens) or more", o.top_k);
  const Shape lead(prompt.shape().begin(), prompt.shape().end() - 1);
  auto cache = model.make_cache(lead, n > 0 ? L + n - 1 : 0);  // the last token is not read again
  Ids ids = prompt, next = prompt;
  for (std::int64_t step = 1; step <= n; ++step) {
    const Tensor<T> logits = model.decode(next, cache);
    const Tensor<T> rows = reshape(select(logits, -2, -1), {-1, logits.size(-1)});
    Buffer<std::int64_t> tokens(lead.with(lead.rank(), 1));
    for (std::int64_t row = 0; row < tokens.numel(); ++row) tokens[row] = chosen(rows[row], o, step, row);
    next = std::move(tokens);
    ids = cat<std::int64_t>({ids, next}, -1);
  }
  return ids;
}

template Ids generate(const GPT<float>&, const Ids&, std::int64_t, const GenerateOptions&);
template Ids generate(const GPT<double>&, const Ids&, std::int64_t, const GenerateOptions&);

}  // namespace tapehead::nn
