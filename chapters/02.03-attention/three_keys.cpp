#include "three_keys.hpp"

#include <cmath>

namespace chapter {

std::vector<tapehead::Series> weights_of_three_keys(
    double from, double to, const std::function<tapehead::Attention<double>(double)>& attend) {
  tapehead::Series one{"key 1"}, others{"key 0, and key 2"};
  for (double x = from; x < to; x *= std::exp2(0.25)) {
    const auto w = attend(x).weights;
    one.x.push_back(x), one.y.push_back(w.at({0, 1}));
    others.x.push_back(x), others.y.push_back(w.at({0, 0}));
  }
  return {one, others};
}

}  // namespace chapter
