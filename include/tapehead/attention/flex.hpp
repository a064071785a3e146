#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapehead/kernels/error.hpp"
#include "tapehead/attention/flash.hpp"
#include "tapehead/kernels/dual.hpp"
#include "tapehead/kernels/tile.hpp"
#include "tapehead/tensor/tensor.hpp"

// flex_attention: a reader's own function of each score, inlined into the fused kernel and differentiated by
// dual numbers, after torch.nn.attention.flex_attention (Dong et al., "Flex Attention", 2024).
//
//   score_mod(score, b, h, q_idx, kv_idx)   gives the new score; generic lambdas, with exp, tanh, … of
//   dual.hpp mask_mod(b, h, q_idx, kv_idx)           true = may attend
//
// What a score function reads and should train is bound to it, not captured; it comes as a reader, called
// with indices:
//
//   auto alibi = score_mod([](auto s, auto, auto h, auto q, auto kv, auto slope) { return s + slope(h) * (kv
//   - q); }, slopes);
//
// h counts query heads. The score is already scaled.

namespace tapehead {

struct FlexOptions {
  std::optional<double> scale = {};  ///< default 1/√d_k
  bool enable_gqa = false;
};

namespace detail {

inline constexpr int most_reads = 4;

// What one call of a score function has read: which bound tensor, which element.
struct Reads {
  int count = 0;
  std::array<std::int64_t, most_reads> element{};  // counted over all bound tensors, one after the other
};

[[noreturn]] void throw_reads();
[[noreturn]] void throw_read(const Shape& shape, const std::int64_t* index, int count);

// A bound tensor as the score function sees it: reader(i, j, …) is one element.
template <class T, int N, class E>
class Reader {
 public:
  Reader(const Tensor<E>& x, std::int64_t first, Reads* reads) : x_(&x), first_(first), reads_(reads) {}
  template <class... I>
  auto operator()(I... i) const {
    const std::int64_t index[] = {static_cast<std::int64_t>(i)..., 0};
    const Shape& shape = x_->shape();
    bool inside = sizeof...(I) == static_cast<std::size_t>(shape.rank());
    for (int axis = 0; inside && axis < shape.rank(); ++axis)
      inside = index[axis] >= 0 && index[axis] < shape[axis];
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

// What the fused kernel asks of a score function and of a mask function. One call covers a tile.
template <class T>
struct FlexScore {
  virtual ~FlexScore() = default;
  virtual void edit(const kernels::Tile& tile, T* S) const = 0;
  virtual void edit_gradient(const kernels::Tile& tile, const T* S, T* dS, double* sums) const = 0;
  std::vector<Tensor<T>> bound;  // what it reads and trains
};
struct FlexMask {
  virtual ~FlexMask() = default;
  virtual kernels::TileKind kind(const kernels::Tile& tile) const = 0;
  virtual void keep(const kernels::Tile& tile, bool* keep) const = 0;  // row after row, cols apart
  virtual void check(std::int64_t, std::int64_t, std::int64_t, std::int64_t) const {}
};

template <class T>
Flash<T> flex_run(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                  std::shared_ptr<const FlexScore<T>> score, std::shared_ptr<const FlexMask> mask,
                  const FlexOptions& options);
// Plain attention options through the flex path: how the dispatcher's flex backend serves a call.
template <class T>
Tensor<T> flex_sdpa(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                    const AttentionOptions<T>& options);

// While one lives, at() and item() of a tensor that a tape knows throw: a score function that captured it
// would lose its gradient.
template <class T>
class NoCapturedReads {
 public:
  NoCapturedReads();
  ~NoCapturedReads();
};

}  // namespace detail

/// A score function with what it reads: score_mod(f, tensors…). f is called as f(score, b, h, q_idx, kv_idx,
/// readers…). Bound float (double) tensors get gradients; bound int64 and bool tensors are read as they are.
/// At most four reads a call.
template <class F, class... B>
struct ScoreMod {
  F f;
  std::tuple<Tensor<B>...> bound;
};
template <class F, class... B>
ScoreMod<F, B...> score_mod(F f, const Tensor<B>&... bound) {
  return {std::move(f), {bound...}};
}

/// No change of the score; every key visible.
struct NoScoreMod {};
struct NoMaskMod {};

namespace detail {

template <class T, class F, class... B>
class FlexScoreOf final : public FlexScore<T> {
 public:
  explicit FlexScoreOf(ScoreMod<F, B...> mod) : mod_(std::move(mod)) {
    std::int64_t first = 0;
    std::size_t n = 0;
    std::apply([&](const auto&... x) { (place(x, first, first_[n++]), ...); }, mod_.bound);
  }
  void edit(const kernels::Tile& t, T* S) const override {
    Reads reads;
    with_readers<0>(reads, [&](const auto&... reader) {
      for (std::int64_t r = 0; r < t.rows; ++r)
        for (std::int64_t c = 0; c < t.cols; ++c)
          S[r * t.ld + c] = kernels::Dual<T, 0>(mod_.f(kernels::Dual<T, 0>(S[r * t.ld + c]), t.b, t.h,
                                                       t.i0 + r, t.j0 + c, reader...))
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
  template <class E>
  void place(const Tensor<E>& x, std::int64_t& first, std::int64_t& own) {
    static_assert(std::is_same_v<E, T> || !std::is_floating_point_v<E>,
                  "a bound tensor has the element type of q, k and v: convert it with to<>()");
    own = first;
    if constexpr (std::is_same_v<E, T>) this->bound.push_back(x), first += x.numel();
  }
  template <int N, class Body>
  void with_readers(Reads& reads, const Body& body) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      body(Reader<T, N, B>(std::get<I>(mod_.bound), first_[I], &reads)...);
    }
    (std::index_sequence_for<B...>{});
  }
  ScoreMod<F, B...> mod_;
  std::array<std::int64_t, sizeof...(B) + 1> first_{};
};

template <class M>
class FlexMaskOf : public FlexMask {
 public:
  explicit FlexMaskOf(M mask) : mask_(std::move(mask)) {}
  kernels::TileKind kind(const kernels::Tile& t) const override {
    std::int64_t seen = 0;
    for (std::int64_t r = 0; r < t.rows; ++r)
      for (std::int64_t c = 0; c < t.cols; ++c) seen += mask_(t.b, t.h, t.i0 + r, t.j0 + c) ? 1 : 0;
    return seen == 0                 ? kernels::TileKind::skip
           : seen == t.rows * t.cols ? kernels::TileKind::full
                                     : kernels::TileKind::partial;
  }
  void keep(const kernels::Tile& t, bool* keep) const override {
    for (std::int64_t r = 0; r < t.rows; ++r)
      for (std::int64_t c = 0; c < t.cols; ++c) *keep++ = mask_(t.b, t.h, t.i0 + r, t.j0 + c);
  }

 protected:
  M mask_;
};

}  // namespace detail

/// A mask function worked out for one length, so that tiles need not ask it again: which blocks of 32 x 32
/// are hidden, which are wholly visible. B or H of 1 stands for a mask that does not depend on it.
template <class M>
class BlockMask : public detail::FlexMaskOf<M> {
 public:
  static constexpr std::int64_t block = 32;
  BlockMask(M mask, std::int64_t B, std::int64_t H, std::int64_t Lq, std::int64_t Lk)
      : detail::FlexMaskOf<M>(std::move(mask)),
        B_(B),
        H_(H),
        Lq_(Lq),
        Lk_(Lk),
        rows_((Lq + block - 1) / block),
        cols_((Lk + block - 1) / block) {
    kinds_.reserve(static_cast<std::size_t>(B * H * rows_ * cols_));
    for (std::int64_t n = 0; n < B * H * rows_ * cols_; ++n) {
      const std::int64_t i = n / cols_ % rows_ * block, j = n % cols_ * block;
      kinds_.push_back(detail::FlexMaskOf<M>::kind({n / (cols_ * rows_) / H, n / (cols_ * rows_) % H, i,
                                                    std::min(block, Lq - i), j, std::min(block, Lk - j), 0}));
    }
  }
  kernels::TileKind kind(const kernels::Tile& t) const override {
    bool any = false, all = true;
    for (std::int64_t i = t.i0 / block; i <= (t.i0 + t.rows - 1) / block; ++i)
      for (std::int64_t j = t.j0 / block; j <= (t.j0 + t.cols - 1) / block; ++j) {
        const auto at = ((t.b % B_ * H_ + t.h % H_) * rows_ + i) * cols_ + j;
        const kernels::TileKind kind = kinds_[static_cast<std::size_t>(at)];
        any |= kind != kernels::TileKind::skip, all &= kind == kernels::TileKind::full;
      }
    return !any ? kernels::TileKind::skip : all ? kernels::TileKind::full : kernels::TileKind::partial;
  }
  void check(std::int64_t B, std::int64_t H, std::int64_t Lq, std::int64_t Lk) const override {
    if (Lq == Lq_ && Lk == Lk_ && (B_ == 1 || B == B_) && (H_ == 1 || H == H_)) return;
    throw ShapeError("flex_attention: a block mask built for " + Shape{B_, H_, Lq_, Lk_}.str() +
                     " met scores of " + Shape{B, H, Lq, Lk}.str() +
                     "; build one for this length (B and H may be 1)");
  }
  /// The share of blocks in which nothing may attend.
  double sparsity() const {
    std::int64_t hidden = 0;
    for (kernels::TileKind kind : kinds_) hidden += kind == kernels::TileKind::skip;
    return kinds_.empty() ? 0 : static_cast<double>(hidden) / static_cast<double>(kinds_.size());
  }

 private:
  std::int64_t B_, H_, Lq_, Lk_, rows_, cols_;
  std::vector<kernels::TileKind> kinds_;
};
template <class M>
BlockMask<M> block_mask(M mask, std::int64_t B, std::int64_t H, std::int64_t Lq, std::int64_t Lk) {
  return BlockMask<M>(std::move(mask), B, H, Lq, Lk);
}

namespace detail {

// Not std::make_shared, which would compile a counter of its own for each function.
template <class Base>
std::shared_ptr<const Base> shared_base(const Base* made) {
  return std::shared_ptr<const Base>(made);
}
template <class T, class F, class... B>
std::shared_ptr<const FlexScore<T>> flex_score(const ScoreMod<F, B...>& mod) {
  return shared_base<FlexScore<T>>(new FlexScoreOf<T, F, B...>(mod));
}
template <class T, class F>
std::shared_ptr<const FlexScore<T>> flex_score(const F& f) {
  return flex_score<T>(score_mod(f));
}
template <class T>
std::shared_ptr<const FlexScore<T>> flex_score(const NoScoreMod&) {
  return nullptr;
}
template <class M>
std::shared_ptr<const FlexMask> flex_mask(const BlockMask<M>& mask) {
  return shared_base<FlexMask>(new BlockMask<M>(mask));
}
template <class M>
std::shared_ptr<const FlexMask> flex_mask(const M& mask) {
  return shared_base<FlexMask>(new FlexMaskOf<M>(mask));
}
inline std::shared_ptr<const FlexMask> flex_mask(const NoMaskMod&) { return nullptr; }

}  // namespace detail

/// softmax(mask(score_mod(q kᵀ / √d_k))) v in one pass, O(L d) memory, differentiable by q, k, v and what the
/// score function is bound to. Wholly masked tiles are skipped: their number is in the result. Shapes as
/// flash_attention. Throws GradientError where the score function captured a tensor that a tape knows (bind
/// it instead), and as flash_attention does.
template <std::floating_point T, class F = NoScoreMod, class M = NoMaskMod>
Flash<T> flex_attention(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, const F& score = {},
                        const M& mask = {}, const FlexOptions& options = {}) {
  auto editing = detail::flex_score<T>(score);
  if (editing != nullptr && q.rank() >= 2 && k.rank() >= 2 && q.size(-2) > 0 && k.size(-2) > 0) {
    const detail::NoCapturedReads<T> watch;  // one score asked ahead, on this thread, which knows the tapes
    T probe = 0;
    editing->edit({0, 0, 0, 1, 0, 1, 1}, &probe);
  }
  return detail::flex_run(q, k, v, std::move(editing), detail::flex_mask(mask), options);
}

}  // namespace tapehead
