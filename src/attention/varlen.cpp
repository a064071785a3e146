#include "tapehead/attention/varlen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "attention/attention_inputs.hpp"
#include "attention/fused.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/random/random.hpp"

namespace tapehead {

namespace {

std::vector<std::int64_t> starts(const char* name, const Tensor<std::int64_t>& cu_seqlens,
                                 std::int64_t rows) {
  const char* op = "flash_attention_varlen";
  if (cu_seqlens.rank() != 1 || cu_seqlens.numel() == 0)
    throw ShapeError(
        fmt::format("{}: {} of shape {}; it is (documents + 1,): 0, then where each document ends", op, name,
                    cu_seqlens.shape().str()));
  std::vector<std::int64_t> at = cu_seqlens.to_vector();
  if (at.front() != 0)
    throw ValueError(
        fmt::format("{}: {} starts at {}; the first document starts at 0", op, name, at.front()));
  const auto falls = std::is_sorted_until(at.begin(), at.end());
  if (falls != at.end())
    throw ValueError(fmt::format("{}: {} falls from {} to {}; each document ends where it starts, or later",
                                 op, name, *(falls - 1), *falls));
  if (at.back() != rows)
    throw ValueError(fmt::format("{}: {} ends at {}, and the buffer has {} rows; they must be equal", op,
                                 name, at.back(), rows));
  return at;
}

std::int64_t longest(const std::vector<std::int64_t>& at) {
  std::int64_t most = 0;
  for (std::size_t n = 0; n + 1 < at.size(); ++n) most = std::max(most, at[n + 1] - at[n]);
  return most;
}

}  // namespace

const Op varlen_op{"flash_attention_varlen", "flash_attention inside each document of a packed buffer",
                   "as flash_attention"};
template <std::floating_point T>
Flash<T> flash_attention_varlen(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                const Tensor<std::int64_t>& cu_seqlens_q,
                                const Tensor<std::int64_t>& cu_seqlens_k, const VarlenOptions& options) {
  const char* op = varlen_op.name;
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3)
    throw ShapeError(fmt::format("{}: q {}, k {}, v {}; packed buffers are (total, H, d)", op,
                                 q.shape().str(), k.shape().str(), v.shape().str()));
  detail::check_attention(op, q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), true);
  if (!options.enable_gqa && q.size(1) != k.size(1))
    throw ShapeError(
        fmt::format("{}: {} query heads on {} key heads; grouped heads are asked for by .enable_gqa", op,
                    q.size(1), k.size(1)));

  const auto p = std::make_shared<detail::FusedProblem<T>>();
  p->q_starts = starts("cu_seqlens_q", cu_seqlens_q, q.size(0)),
  p->k_starts = starts("cu_seqlens_k", cu_seqlens_k, k.size(0));
  if (p->q_starts.size() != p->k_starts.size())
    throw ShapeError(fmt::format("{}: cu_seqlens_q counts {} documents and cu_seqlens_k {}", op,
                                 p->q_starts.size() - 1, p->k_starts.size() - 1));
  p->Q = q, p->K = k, p->V = v, p->packed = true;
  p->q = q.shape(), p->k = k.shape(), p->v = v.shape(), p->out = {q.size(0), q.size(1), v.size(2)};
  auto& args = p->args;
  args.B = static_cast<std::int64_t>(p->q_starts.size()) - 1, args.Hq = q.size(1), args.Hkv = k.size(1);
  args.Lq = longest(p->q_starts), args.Lk = longest(p->k_starts), args.d = q.size(2), args.dv = v.size(2);
  args.scale = static_cast<T>(options.scale ? *options.scale : 1 / std::sqrt(static_cast<double>(args.d)));
  if (options.causal) args.band = {.right = 0, .bottom_right = options.align == Align::bottom_right};
  p->scores = {args.B, args.Hq, args.Lq, args.Lk};
  detail::check_dropout(op, options.dropout_p, {}, options.generator, p->scores);
  args.dropout.p = options.dropout_p;
  if (options.dropout_p > 0) args.dropout.seed = options.generator->next_uint64();
  return detail::run_fused(varlen_op, p);
}

template Flash<float> flash_attention_varlen(const Tensor<float>&, const Tensor<float>&, const Tensor<float>&,
                                             const Tensor<std::int64_t>&, const Tensor<std::int64_t>&,
                                             const VarlenOptions&);
template Flash<double> flash_attention_varlen(const Tensor<double>&, const Tensor<double>&,
                                              const Tensor<double>&, const Tensor<std::int64_t>&,
                                              const Tensor<std::int64_t>&, const VarlenOptions&);

}  // namespace tapehead
