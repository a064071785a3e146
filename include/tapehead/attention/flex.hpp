#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapehead/attention/flash.hpp"
#include "tapehead/kernels/dual.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/kernels/score_edit.hpp"
#include "tapehead/tensor/tensor.hpp"

// flex_attention: a reader's own function of each score, inlined into the fused kernel and differentiated by
// dual numbers, after torch.nn.attention.flex_attention (Dong et al., "Flex Attention", 2024).
//
//   score_mod(score, b, h, q_idx, kv_idx)    gives the new score; a generic lambda with exp, tanh, … of dual.hpp
//   mask_mod(b, h, q_idx, kv_idx)            true = may attend
//
// The score is already scaled, and h counts query heads. A tensor that a score function reads and should train
// is bound to it instead of captured. The function gets a reader for it, which is called with indices:
//
//   auto alibi = score_mod(
//       [](auto s, auto, auto h, auto q, auto kv, auto slope) { return s + slope(h) * (kv - q); }, slopes);

namespace tapehead {

namespace detail {

inline constexpr int most_reads = 4;

// The elements that one call of a score function has read, counted over all bound tensors, one after the other.
struct Reads {
  int count = 0;
  std::array<std::int64_t, most_reads> element{};
};

[[noreturn]] void throw_reads();
[[noreturn]] void throw_read(const Shape& shape, const std::int64_t* index, int count);

// A bound tensor as the score function sees it: reader(i, j, …) is one element.
template <class T, int N, class E> class Reader {
 public:
  Reader(const Tensor<E>& x, std::int64_t first, Reads* reads) : x_(&x), first_(first), reads_(reads) {}
  template <class... I> auto operator()(I... i) const {
    const std::int64_t index[] = {static_cast<std::int64_t>(i)..., 0};
    const Shape& shape = x_->shape();
    bool inside = sizeof...(I) == static_cast<std::size_t>(shape.rank());
    for (int axis = 0; inside && axis < shape.rank(); ++axis) inside = index[axis] >= 0 && index[axis] < shape[axis];
    if (!inside) throw_read(shape, index, static_cast<int>(sizeof...(I)));
    std::int64_t offset = 0, element = 0;
    for (int axis = 0; axis < shape.rank(); ++axis)
      offset += index[axis] * x_->strides()[axis], element = element * shape[axis] + index[axis];
    const E value = x_->data()[offset];
    if constexpr (!std::is_floating_point_v<E>) {
      return value;
    } else {
      kernels::Dual<T, N> y(value);
      if constexpr (N > 0) {
        if (reads_->count == most_reads) throw_reads();
        reads_->element[static_cast<std::size_t>(reads_->count)] = first_ + element;
        y.d[1 + reads_->count++] = 1;
      }
      return y;
    }
  }

 private:
  const Tensor<E>* x_;
  std::int64_t first_;
  Reads* reads_;
};

// The functions of one call, ready for the kernel; null where there is none.
template <class T> struct FlexFunctions {
  std::shared_ptr<const kernels::ScoreEdit<T>> score, visible;
  std::vector<Tensor<T>> bound;    // the tensors that `score` reads and trains
  std::optional<Shape> built_for;  // (B, H, Lq, Lk) of a block mask
  // For scores of these sizes. Throws ShapeError where the block mask has others, and GradientError where the
  // score function captured a tensor that a tape knows: one score is asked for ahead, if there is any.
  void check(std::int64_t B, std::int64_t H, std::int64_t Lq, std::int64_t Lk) const;
};
template <class T> Flash<T> flex_run(const Tensor<T>& q, const Like<T>& k, const Like<T>& v, FlexFunctions<T> functions,
                                     const AttentionOptions<T>& options);

}  // namespace detail

/// A score function with the tensors it reads: score_mod(f, tensors…). f is called as f(score, b, h, q_idx,
/// kv_idx, readers…), and may read four elements of bound float (double) tensors, which get gradients; int64
/// and bool tensors are read as they are.
template <class F, class... B> struct ScoreMod {
  F f;
  std::tuple<Tensor<B>...> bound;
};
template <class F, class... B> ScoreMod<F, B...> score_mod(F f, const Tensor<B>&... bound) {
  return {std::move(f), {bound...}};
}

/// No change of the score; every key visible.
struct NoScoreMod {};
struct NoMaskMod {};

namespace detail {

template <class T, class F, class... B> class FlexScore final : public kernels::ScoreEdit<T> {
 public:
  explicit FlexScore(ScoreMod<F, B...> mod) : mod_(std::move(mod)) {
    std::size_t n = 0;
    std::apply([&](const auto&... x) { (place(x, first_[n++]), ...); }, mod_.bound);
    this->reads_scores = true;
  }
  std::vector<Tensor<T>> bound;
  void edit(const kernels::Tile& t, T* S) const override {
    Reads reads;
    with_readers<0>(reads, [&](const auto&... reader) {
      for (std::int64_t r = 0; r < t.rows; ++r)
        for (std::int64_t c = 0; c < t.cols; ++c)
          S[r * t.ld + c] =
              kernels::Dual<T, 0>(mod_.f(kernels::Dual<T, 0>(S[r * t.ld + c]), t.b, t.h, t.i0 + r, t.j0 + c, reader...))
                  .v;
    });
  }
  // dS becomes dS ∂f/∂s; each element that was read collects dS ∂f/∂(element). Where dS is 0 (masked scores
  // are) nothing is added: a derivative there may be anything.
  void edit_gradient(const kernels::Tile& t, const T* S, T* dS, double* sums) const override {
    Reads reads;
    with_readers<1 + most_reads>(reads, [&](const auto&... reader) {
      for (std::int64_t r = 0; r < t.rows; ++r)
        for (std::int64_t c = 0; c < t.cols; ++c) {
          T& ds = dS[r * t.ld + c];
          if (ds == 0) continue;
          reads.count = 0;
          kernels::Dual<T, 1 + most_reads> s(S[r * t.ld + c]);
          s.d[0] = 1;
          const kernels::Dual<T, 1 + most_reads> y(mod_.f(s, t.b, t.h, t.i0 + r, t.j0 + c, reader...));
          for (int n = 0; n < reads.count; ++n)
            sums[reads.element[static_cast<std::size_t>(n)]] +=
                static_cast<double>(ds) * static_cast<double>(y.d[1 + n]);
          ds *= y.d[0];
        }
    });
  }

 private:
  template <class E> void place(const Tensor<E>& x, std::int64_t& first) {
    static_assert(std::is_same_v<E, T> || !std::is_floating_point_v<E>,
                  "a bound tensor has the element type of q, k and v: convert it with to<>()");
    first = this->sum_count;
    if constexpr (std::is_same_v<E, T>) bound.push_back(x), this->sum_count += x.numel();
  }
  template <int N, class Body> void with_readers(Reads& reads, const Body& body) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      body(Reader<T, N, B>(std::get<I>(mod_.bound), first_[I], &reads)...);
    }
    (std::index_sequence_for<B...>{});
  }
  ScoreMod<F, B...> mod_;
  std::array<std::int64_t, sizeof...(B) + 1> first_{};  // of each bound tensor's elements
};

template <class M> kernels::TileKind mask_kind(const M& mask, const kernels::Tile& t) {
  std::int64_t seen = 0;
  for (std::int64_t r = 0; r < t.rows; ++r)
    for (std::int64_t c = 0; c < t.cols; ++c) seen += mask(t.b, t.h, t.i0 + r, t.j0 + c) ? 1 : 0;
  return seen == 0                 ? kernels::TileKind::skip
         : seen == t.rows * t.cols ? kernels::TileKind::full
                                   : kernels::TileKind::partial;
}

}  // namespace detail

/// A mask function evaluated once for given lengths, so that the kernel need not call it for every tile: which
/// blocks of 32 x 32 are hidden, and which wholly visible. B or H of 1 stands for a mask that does not depend on
/// it. Throws ShapeError for negative sizes.
template <class M> class BlockMask {
 public:
  static constexpr std::int64_t side = 32;
  BlockMask(M function, std::int64_t B, std::int64_t H, std::int64_t Lq, std::int64_t Lk)
      : mask(std::move(function)), shape{B, H, Lq, Lk} {
    static_cast<void>(shape.numel("block_mask"));  // throws for negative sizes
    Buffer<std::int64_t> kinds({B, H, blocks(Lq), blocks(Lk)}, "block_mask");
    for (std::int64_t n = 0; n < kinds.numel(); ++n) {
      const std::int64_t i = n / blocks(Lk) % blocks(Lq) * side, j = n % blocks(Lk) * side;
      const std::int64_t bh = n / (blocks(Lk) * blocks(Lq)), rows = std::min(side, Lq - i),
                         cols = std::min(side, Lk - j);
      kinds[n] = static_cast<std::int64_t>(detail::mask_kind(mask, {bh / H, bh % H, i, rows, j, cols, 0}));
    }
    kinds_ = std::move(kinds);
  }
  kernels::TileKind kind(const kernels::Tile& t) const {
    bool any = false, all = true;
    for (std::int64_t i = t.i0 / side; i <= (t.i0 + t.rows - 1) / side; ++i)
      for (std::int64_t j = t.j0 / side; j <= (t.j0 + t.cols - 1) / side; ++j) {
        const std::int64_t bh = (shape[0] == 1 ? 0 : t.b) * shape[1] + (shape[1] == 1 ? 0 : t.h);
        const auto kind =
            static_cast<kernels::TileKind>(kinds_.data()[(bh * blocks(shape[2]) + i) * blocks(shape[3]) + j]);
        any |= kind != kernels::TileKind::skip, all &= kind == kernels::TileKind::full;
      }
    return !any ? kernels::TileKind::skip : all ? kernels::TileKind::full : kernels::TileKind::partial;
  }
  /// The fraction of blocks in which nothing may attend.
  double sparsity() const {
    std::int64_t hidden = 0;
    for (std::int64_t n = 0; n < kinds_.numel(); ++n)
      hidden += kinds_.data()[n] == static_cast<std::int64_t>(kernels::TileKind::skip);
    return static_cast<double>(hidden) / static_cast<double>(std::max<std::int64_t>(kinds_.numel(), 1));
  }

  M mask;
  Shape shape;

 private:
  static std::int64_t blocks(std::int64_t length) { return length / side + (length % side != 0); }
  Tensor<std::int64_t> kinds_;  // (B, H, blocks of queries, blocks of keys), TileKind as a number
};
template <class M> BlockMask<M> block_mask(M mask, std::int64_t B, std::int64_t H, std::int64_t Lq, std::int64_t Lk) {
  return BlockMask<M>(std::move(mask), B, H, Lq, Lk);
}

namespace detail {

template <class M> kernels::TileKind mask_kind(const BlockMask<M>& blocks, const kernels::Tile& t) {
  return blocks.kind(t);
}
template <class M> const M& mask_function(const M& mask) { return mask; }
template <class M> const M& mask_function(const BlockMask<M>& blocks) { return blocks.mask; }

template <class T, class M> class FlexMask final : public kernels::ScoreEdit<T> {
 public:
  explicit FlexMask(M mask) : mask_(std::move(mask)) {}
  kernels::TileKind kind(const kernels::Tile& t) const override { return mask_kind(mask_, t); }
  void edit(const kernels::Tile& t, T* S) const override {
    for (std::int64_t r = 0; r < t.rows; ++r)
      for (std::int64_t c = 0; c < t.cols; ++c)
        if (!mask_function(mask_)(t.b, t.h, t.i0 + r, t.j0 + c)) S[r * t.ld + c] = -std::numeric_limits<T>::infinity();
  }

 private:
  M mask_;
};

template <class T, class F, class... B> void add_score(FlexFunctions<T>& functions, const ScoreMod<F, B...>& mod) {
  auto* made = new FlexScore<T, F, B...>(mod);  // std::make_shared would compile a counter for each function
  functions.score = std::shared_ptr<const kernels::ScoreEdit<T>>(made), functions.bound = made->bound;
}
template <class T, class F> void add_score(FlexFunctions<T>& functions, const F& f) {
  add_score<T>(functions, score_mod(f));
}
template <class T> void add_score(FlexFunctions<T>&, const NoScoreMod&) {}

template <class T, class M> void add_mask(FlexFunctions<T>& functions, const M& mask) {
  functions.visible =
      std::shared_ptr<const kernels::ScoreEdit<T>>(static_cast<const kernels::ScoreEdit<T>*>(new FlexMask<T, M>(mask)));
  if constexpr (requires { mask.sparsity(); }) functions.built_for = mask.shape;
}
template <class T> void add_mask(FlexFunctions<T>&, const NoMaskMod&) {}

}  // namespace detail

/// softmax(mask(score_mod(q kᵀ / √d_k))) v in one pass, with O(L d) memory, differentiable by q, k, v and the
/// tensors bound to the score function. Wholly masked tiles are skipped; the result counts them. Shapes and
/// options as flash_attention, but for dropout, which there is none of. Throws GradientError where the score
/// function captured a tensor that a tape knows (bind it instead), ValueError for dropout_p > 0, and as
/// flash_attention does.
template <Floating T, class F = NoScoreMod, class M = NoMaskMod>
Flash<T> flex_attention(const Tensor<T>& q, const Like<T>& k, const Like<T>& v, const F& score = {}, const M& mask = {},
                        const AttentionOptions<std::type_identity_t<T>>& options = {}) {
  detail::FlexFunctions<T> functions;
  detail::add_score<T>(functions, score);
  detail::add_mask<T>(functions, mask);
  return detail::flex_run(q, k, v, std::move(functions), options);
}

}  // namespace tapehead
