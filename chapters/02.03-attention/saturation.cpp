#include "saturation.hpp"

#include "tapehead/tapehead.hpp"

namespace chapter {

using tapehead::Tensor;

Tensor<double> softmax_jacobian(const Tensor<double>& a) {
  return a * tapehead::eye<double>(a.size(0)) - unsqueeze(a, 1) * a;
}

double largest_weight(const Tensor<double>& A) { return mean(max(A, -1)).item(); }

double jacobian_norm(const Tensor<double>& A) {
  double total = 0;
  for (std::int64_t i = 0; i < A.size(0); ++i) total += norm(softmax_jacobian(A[i])).item();
  return total / static_cast<double>(A.size(0));
}

}  // namespace chapter
