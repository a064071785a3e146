#pragma once
#include <functional>
#include <vector>

#include "tapehead/attention/attention.hpp"
#include "tapehead/figures/plot.hpp"

namespace chapter {

/// The book's example of three keys, of which the first and the last weigh the same, while something about it
/// grows: attend(x) for x from `from` up to `to`, in steps of 2^(1/4). Two curves: the weight on key 1, and
/// the one on each of the others.
std::vector<tapehead::Series> weights_of_three_keys(
    double from, double to, const std::function<tapehead::Attention<double>(double)>& attend);

}  // namespace chapter
