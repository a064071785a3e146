// e^12 is 403 times e^6, so the raw weights are almost one-hot. Divided by √36 = 6 the scores are 2, 1 and
// 0, and the weights are spread out. The Jacobian diag(a) - a aᵀ has a_m (1 - a_m) on its diagonal, which
// is at most 1/4 and goes to 0 as a weight goes to 0 or to 1. For the raw weights the largest entry is
// about 0.0025, for the scaled weights it is 0.2227. The whole gradient of queries and keys passes through
// this matrix, so without the scale 90 times less of it arrives.
#include "exercise.hpp"

Tensor<double> raw_weights() { return softmax(Tensor<double>{12, 6, 0}, -1); }  // {0.9975, 0.0025, 0.0000}

Tensor<double> scaled_weights() {
  return softmax(Tensor<double>{12, 6, 0} / std::sqrt(36.0), -1);  // {0.6652, 0.2447, 0.0900}
}

Tensor<double> softmax_jacobian(const Tensor<double>& a) {
  return eye<double>(a.size(0)) * a - unsqueeze(a, 1) * a;  // diag(a) - a aᵀ
}

double times_larger() {
  return max(softmax_jacobian(scaled_weights())).item() / max(softmax_jacobian(raw_weights())).item();  // 90
}
