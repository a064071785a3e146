// Both conditions have to hold, so they are combined with "and". A token sees itself, so the condition is
// j <= i; with j < i the first row would be empty. Padding concerns keys (columns): the output of a query
// that is padding is never used, but all queries would read a key that is padding. Comparing a column of
// positions, (L, 1), with a row of them, (L,), broadcasts to (L, L); lengths as (B, 1, 1) broadcast with
// it to (B, L, L).
#include "exercise.hpp"

Tensor<bool> visible(std::int64_t L, const std::vector<std::int64_t>& lengths) {
  const auto position = arange<std::int64_t>(L);
  const auto B = static_cast<std::int64_t>(lengths.size());
  const auto causal = position <= unsqueeze(position, 1);
  const auto real = position < from_vector<std::int64_t>(lengths, {B, 1, 1});
  return causal & real;
}
