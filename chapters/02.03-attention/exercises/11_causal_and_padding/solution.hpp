// Two conditions, both needed, so they are combined with "and". A row's own token counts as seen: j <= i, or
// the first row would be empty. Padding is a matter of keys (columns): a query that is padding produces
// something nobody reads, but a key that is padding would be read by all. The comparison of a column of
// positions, (L, 1), with a row of them, (L,), broadcasts to (L, L); lengths as (B, 1, 1) broadcast with it
// to (B, L, L).
#include "exercise.hpp"

Tensor<bool> visible(std::int64_t L, const std::vector<std::int64_t>& lengths) {
  const auto position = arange<std::int64_t>(L);
  const auto B = static_cast<std::int64_t>(lengths.size());
  const auto causal = position <= unsqueeze(position, 1);
  const auto real = position < from_vector<std::int64_t>(lengths, {B, 1, 1});
  return causal & real;
}
