#pragma once
// The fused attention kernel: softmax(scale Q Kᵀ) V and its gradient without ever storing the Lq x Lk
// weights.
//
// A query block meets one key block at a time. For each row it keeps the largest score so far m, the sum
// l = Σ exp(s - m) and the sum O = Σ exp(s - m) v; when a new block raises m, l and O are scaled down by
// exp(m_old - m_new). At the end O / l is the answer and m + log l the log-sum-exp, which is all that the
// backward pass needs to find the weights again: A = exp(S - lse). (Online softmax: Milakov and Gimelshein
// 2018; tiles and the recomputing backward pass: Dao et al., FlashAttention, 2022.)
//
// Whatever else changes a score (a mask, a bias, a reader's own function) is a ScoreEdit, called once for each
// tile of about 96 x 64 scores. So there is one kernel, compiled once, for every kind of attention.
//
// Forward and backward keep these rules:
// - Weights are exp(s - m), and the difference is taken before anything else: scores may be as large as T can
//   hold. The backward pass computes the same scores bit for bit and divides exp(s - m) by l; it cannot use
//   m + log l instead, which loses l where m is large.
// - A score of -inf means "may not attend". It is selected away, so a NaN or infinity in the score of a masked
//   key does no harm. A masked *value* meets weight 0, and 0 * NaN is NaN: keep padding finite. (Tiles that
//   are skipped whole are not read at all, so such a NaN may or may not arrive.)
// - A row with nothing to attend to has output 0, m = -inf, l = 0 and zero gradients: see move_maxima() and write() in
//   flash_forward.cpp. Lk = 0 is such a case.
// - A row with a score of +inf has weights inf/inf: its output and gradients are NaN, m is +inf. A NaN score
//   that is not masked makes its row NaN, and m too if the row also holds +inf.
// - Every result is the same, bit for bit, for any number of threads. Another tile size sums in another order.

#include <cstdint>
#include <span>

#include "tapehead/kernels/score_edit.hpp"

namespace tapehead::kernels {

/// A (batch, head, row, element) array seen through four strides, counted in elements. What is only read may
/// repeat itself (stride 0). In a packed batch (see FlashArgs::q_starts) `batch` is not used.
template <class T> struct HeadsView {
  T* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0, element = 1;

  T* at(std::int64_t b, std::int64_t h, std::int64_t i) const { return data + b * batch + h * head + i * row; }
  HeadsView<const T> read() const { return {data, batch, head, row, element}; }
};

/// Which keys a query sees by position alone: key j where i + shift - left <= j <= i + shift + right; -1 is
/// no limit. shift is 0 (aligned top left), or Lk - Lq when bottom_right. Causal is right = 0; a window that
/// counts the current token among its W is left = W - 1. Tiles outside are never visited, strips of rows
/// outside never computed.
struct Band {
  std::int64_t left = -1, right = -1;
  bool bottom_right = false;
};

/// Weights are dropped after the softmax, and those that remain are divided by 1 - p. The given mask (true = kept)
/// decides which are dropped if there is one, else the rule in kernels/dropout.hpp. The sums l are taken before dropout.
struct Dropout {
  double p = 0;
  std::uint64_t seed = 0;
  HeadsView<const bool> keep{};
};

/// One call. Shapes: q (B, Hq, Lq, d), k (B, Hkv, Lk, d), v (B, Hkv, Lk, dv); query head h reads kv head
/// h / (Hq / Hkv). Any size may be 0 except that Hkv must divide Hq.
template <class T> struct FlashArgs {
  std::int64_t B = 1, Hq = 1, Hkv = 1, Lq = 0, Lk = 0, d = 0, dv = 0;
  HeadsView<const T> q, k, v;
  T scale = 1;
  Band band{};
  std::span<const ScoreEdit<T>* const> edits{};  // at most 32; each works on what the one before left
  /// One more logit in the softmax of every row, (B, Hq), with a value of zero; null data means none. `row`
  /// and `element` are not used.
  HeadsView<const T> sinks{};
  Dropout dropout{};

  /// Packed batches: B + 1 row numbers each, ascending; problem b has the query rows q_starts[b] …
  /// q_starts[b+1]-1 and the like of keys, and positions, edits and dropout count from 0 in each. Lq and Lk
  /// are then not used.
  const std::int64_t* q_starts = nullptr;
  const std::int64_t* k_starts = nullptr;

  /// The sides of a tile of scores; of these, a tile of floats takes 24 KiB.
  std::int64_t block_q = 96, block_k = 64;
};

/// How many tiles there were, and how many of them were skipped because nothing in them may attend.
struct TileCount {
  std::int64_t total = 0, skipped = 0;
};

/// The softmax of each row: its largest score m and l = Σ exp(s - m), sink included. (B, Hq, Lq); `element`
/// is not used. The log-sum-exp is m + log l.
template <class T> struct RowSums {
  HeadsView<T> max, sum;
  RowSums<const T> read() const { return {max.read(), sum.read()}; }
};

/// Writes out (B, Hq, Lq, dv) and, unless their data is null, the row sums.
template <class T> TileCount flash_forward(const FlashArgs<T>& args, HeadsView<T> out, const RowSums<T>& rows);

/// What the backward pass starts from: the forward results, and the gradient arriving at the output.
template <class T> struct FlashSaved {
  HeadsView<const T> out;
  RowSums<const T> rows;
  HeadsView<const T> dout;
};

/// Where the gradients go, in the shapes of q, k, v and sinks. One whose data is null is not computed. The
/// edits add theirs to totals[n], one array for each edit (null or missing: not computed); everything else is
/// written, not added.
template <class T> struct FlashGradients {
  HeadsView<T> q, k, v, sinks{};
  std::span<double* const> totals{};
};

template <class T>
TileCount flash_backward(const FlashArgs<T>& args, const FlashSaved<T>& saved, const FlashGradients<T>& gradients);

}  // namespace tapehead::kernels
