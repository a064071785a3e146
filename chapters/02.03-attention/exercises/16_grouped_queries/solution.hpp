// Query head h belongs to group h / (Hq / Hkv), in integers. (h % Hkv would be another model: it assigns
// the heads in turn, and weights trained with one rule are wrong for the other.) Hkv = Hq is ordinary
// multi-head attention, and Hkv = 1 is multi-query attention. The cache is smaller by the size of a group.
// Apart from that nothing changes: each head is attention as before.
#include "exercise.hpp"

Tensor<double> grouped_attention(const Tensor<double>& Q, const Tensor<double>& K, const Tensor<double>& V) {
  const std::int64_t group = Q.size(0) / K.size(0);
  const double root = std::sqrt(static_cast<double>(Q.size(-1)));
  std::vector<Tensor<double>> heads;
  for (std::int64_t h = 0; h < Q.size(0); ++h) {
    const auto A = softmax(matmul(Q[h], K[h / group].T()) / root, -1);
    heads.push_back(matmul(A, V[h / group]));
  }
  return stack<double>(heads);
}
