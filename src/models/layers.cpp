#include "tapehead/models/layers.hpp"

#include "kernels/require.hpp"

namespace tapehead::nn {

template <Floating T> Dropout<T>::Dropout(double probability, TorchRandom& rng) : p(probability), generator_(&rng) {
  require<ValueError>(p >= 0 && p <= 1, "Dropout: p {}; it is a probability, so it must be in [0, 1]", p);
}
template struct Dropout<float>;
template struct Dropout<double>;

}  // namespace tapehead::nn
