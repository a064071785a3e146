#include "tapehead/attention/flex.hpp"

#include <algorithm>
#include <utility>

#include "attention/fused.hpp"
#include "kernels/require.hpp"

namespace tapehead {

namespace detail {

void throw_reads() {
  raise<ValueError>("score_mod: more than {} reads of bound tensors in one call; combine them into fewer", most_reads);
}
void throw_read(const Shape& shape, const std::int64_t* index, int count) {
  raise<IndexError>("score_mod: a bound tensor of shape {} was read at {}", shape,
                    Shape(index, index + std::min(count, max_rank)));
}

namespace {

// While one lives, at() and item() of a tensor that a tape knows throw.
template <class T> struct NoCapturedReads {
  NoCapturedReads() {
    read_watch<T> = [](const Tensor<T>& x) {
      if (is_recorded(x))
        raise<GradientError>(
            "score_mod: the function captured a tensor of shape {} that a tape knows, and its gradient would be lost; "
            "bind it: score_mod(f, tensor), and read it by the reader that f then gets",
            x.shape());
    };
  }
  ~NoCapturedReads() { read_watch<T> = nullptr; }
};

}  // namespace

template <class T>
void FlexFunctions<T>::check(std::int64_t B, std::int64_t H, std::int64_t Lq, std::int64_t Lk) const {
  if (built_for) {
    const Shape &s = *built_for, scores{B, H, Lq, Lk};
    require<ShapeError>(Lq == s[2] && Lk == s[3] && (s[0] == 1 || B == s[0]) && (s[1] == 1 || H == s[1]),
                        "flex_attention: a block mask built for {} met scores of {}; build one for this length "
                        "(B and H may be 1)",
                        s, scores);
  }
  if (score == nullptr || B == 0 || H == 0 || Lq == 0 || Lk == 0) return;
  const NoCapturedReads<T> watch;  // on this thread, which knows the tapes
  T probe = 0;
  score->edit({0, 0, 0, 1, 0, 1, 1}, &probe);
}

const Op flex_attention_op{
    "flex_attention", "O = softmax(mask(score_mod(Q Kᵀ / √d_k))) V, by tiles",
    "as flash_attention, dS ∂score_mod/∂s in between; what score_mod reads gets Σ dS ∂score_mod/∂x",
    "(…, Lq, d) (…, Lk, d) (…, Lk, d_v) → (…, Lq, d_v)"};
template <class T> Flash<T> flex_run(const Tensor<T>& q, const Like<T>& k, const Like<T>& v, FlexFunctions<T> functions,
                                     const AttentionOptions<T>& options) {
  require<ValueError>(options.dropout_p == 0,
                      "flex_attention: dropout_p {}; there is no dropout here, flash_attention has it",
                      options.dropout_p);
  return run_fused<T>(flex_attention_op, {q, k, v}, options, std::move(functions));
}

#define TAPEHEAD_FLEX(T)                                                                             \
  template struct FlexFunctions<T>;                                                                  \
  template Flash<T> flex_run(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, FlexFunctions<T>, \
                             const AttentionOptions<T>&);
TAPEHEAD_REALS(TAPEHEAD_FLEX)

}  // namespace detail

}  // namespace tapehead
