#include "tapehead/attention/varlen.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "attention/fused.hpp"
#include "kernels/require.hpp"

namespace tapehead {

const Op varlen_op{"flash_attention_varlen", "flash_attention inside each document of a packed buffer",
                   "as flash_attention", "(total_q, Hq, d) (total_k, Hkv, d) (total_k, Hkv, d_v) → (total_q, Hq, d_v)"};

namespace {

std::vector<std::int64_t> starts(const char* name, const Tensor<std::int64_t>& cu_seqlens, std::int64_t rows) {
  const char* op = varlen_op.name;
  require<ShapeError>(cu_seqlens.rank() == 1 && cu_seqlens.numel() > 0,
                      "{}: {} of shape {}; it is (documents + 1,): 0, then where each document ends", op, name,
                      cu_seqlens.shape());
  std::vector<std::int64_t> at = cu_seqlens.to_vector();
  require<ValueError>(at.front() == 0, "{}: {} starts at {}; the first document starts at 0", op, name, at.front());
  const auto falls = std::is_sorted_until(at.begin(), at.end());
  if (falls != at.end())
    raise<ValueError>("{}: {} falls from {} to {}; each document ends where it starts, or later", op, name,
                      *(falls - 1), *falls);
  require<ValueError>(at.back() == rows, "{}: {} ends at {}, and the buffer has {} rows; they must be equal", op, name,
                      at.back(), rows);
  return at;
}

}  // namespace

template <Floating T> Flash<T> flash_attention_varlen(const Tensor<T>& q, const Like<T>& k, const Like<T>& v,
                                                      const Tensor<std::int64_t>& cu_seqlens_q,
                                                      const Tensor<std::int64_t>& cu_seqlens_k,
                                                      const AttentionOptions<std::type_identity_t<T>>& options) {
  require<ShapeError>(q.rank() == 3 && k.rank() == 3 && v.rank() == 3,
                      "{}: q {}, k {}, v {}; packed buffers are (total, H, d)", varlen_op.name, q.shape(), k.shape(),
                      v.shape());
  detail::Documents documents{starts("cu_seqlens_q", cu_seqlens_q, q.size(0)),
                              starts("cu_seqlens_k", cu_seqlens_k, k.size(0))};
  require<ShapeError>(documents.q_starts.size() == documents.k_starts.size(),
                      "{}: cu_seqlens_q counts {} documents and cu_seqlens_k {}", varlen_op.name,
                      documents.q_starts.size() - 1, documents.k_starts.size() - 1);
  return detail::run_fused<T>(varlen_op, {q, k, v}, options, {}, std::move(documents));
}

#define TAPEHEAD_VARLEN(T)                                                                           \
  template Flash<T> flash_attention_varlen(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&,     \
                                           const Tensor<std::int64_t>&, const Tensor<std::int64_t>&, \
                                           const AttentionOptions<T>&);
TAPEHEAD_REALS(TAPEHEAD_VARLEN)

}  // namespace tapehead
