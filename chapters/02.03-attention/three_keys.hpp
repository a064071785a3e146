#pragma once
#include <functional>
#include <vector>

#include "tapehead/attention/attention.hpp"
#include "tapehead/figures/plot.hpp"

namespace chapter {

/// The book's example of three keys, of which the first and the last have the same weight, while one quantity x
/// grows: attend(x) for x from `from` to `to`, in steps of 2^(1/4). Two curves: the weight of key 1, and the weight
/// of each of the other two.
std::vector<tapehead::Series> weights_of_three_keys(
    double from, double to, const std::function<tapehead::Attention<double>(double)>& attend);

}  // namespace chapter
