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
// Whatever else changes a score (a mask, a bias, a reader's own function) is a ScoreHook, called once for
// each tile of about 96 x 64 scores. So there is one kernel, compiled once, for every kind of attention.
//
// What holds, in forward and backward:
// - A score of -inf means "may not attend": it is selected away, so a NaN or infinity in the score of a
// masked key
//   does no harm. A masked *value* meets weight 0, and 0 * NaN is NaN: keep padding finite. (Tiles that are
//   skipped whole are not read at all, so such a NaN may or may not arrive.)
// - A row with nothing to attend to: output 0, log-sum-exp -inf, zero gradients. Lk = 0 is such a case.
// - A score of +inf behaves as softmax says: the row's weights are inf/inf, its output and gradients NaN; the
//   log-sum-exp is +inf. A NaN score that is not masked makes its row NaN.
// - Every result is the same, bit for bit, for any number of threads. Another tile size sums in another
// order.

#include <cstdint>
#include <span>

#include "tapehead/kernels/tile.hpp"

namespace tapehead::kernels {

/// A (batch, head, row, element) array seen through four strides, counted in elements. What is only read may
/// repeat itself (stride 0). In a packed batch (see FlashArgs::q_starts) `batch` is not used.
template <class T>
struct Heads {
  T* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0, element = 1;

  T* at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return data + b * batch + h * head + i * row;
  }
  Heads<const T> read() const { return {data, batch, head, row, element}; }
};

/// Anything that changes scores. Hooks run in the order given, each on what the one before left. All
/// functions may run on several threads at once, except `reduce`.
template <class T>
struct ScoreHook {
  void* context = nullptr;

  /// Optional: absent means that every tile is partial.
  TileKind (*kind)(const void* context, const Tile& tile) = nullptr;

  /// Changes the scaled scores in place; -inf: may not attend. Entries that FlashArgs::band hides hold
  /// anything (the band is applied last); they may be changed or left alone.
  void (*edit)(const void* context, const Tile& tile, T* S) = nullptr;

  /// Optional; absent means that dS passes through unchanged, which is right for masks and sums. Turns the
  /// gradient of the score that `edit` left into that of the score it found, in place, and adds what the
  /// hook's own tensors receive to `sums` (or, for an element that only one score reads, straight to its
  /// place). S is the tile as `edit` found it if `reads_scores`, else null. Where dS is 0 it must stay 0 and
  /// nothing may be added: hidden and masked entries are among them, and a derivative there may be anything.
  void (*edit_gradient)(const void* context, const Tile& tile, const T* S, T* dS, double* sums) = nullptr;
  bool reads_scores = false;

  /// How many doubles `sums` has: private to one (batch, kv head), zero at its start. Afterwards `reduce`
  /// adds them to the whole; it is called by one thread at a time, in the order of (batch, kv head).
  std::int64_t sum_count = 0;
  void (*reduce)(void* context, std::int64_t b, std::int64_t kv_head, const double* sums) = nullptr;
};

/// Which keys a query sees by position alone: key j where i + shift - left <= j <= i + shift + right; -1 is
/// no limit. shift is 0 (aligned top left), or Lk - Lq when bottom_right. Causal is right = 0; a window that
/// counts the current token among its W is left = W - 1. Tiles outside are never visited, strips of rows
/// outside never computed.
struct Band {
  std::int64_t left = -1, right = -1;
  bool bottom_right = false;
};

/// How many hooks one call may have.
inline constexpr std::int64_t max_hooks = 16;

/// Weights dropped after the softmax, the others divided by 1 - p: by the given mask (true = kept) if there
/// is one, else by dropout_keep(seed, b, h, i, j) of dropout.hpp. The log-sum-exp is that of the undropped
/// softmax.
struct Dropout {
  double p = 0;
  std::uint64_t seed = 0;
  Heads<const bool> keep{};
};

/// One call. Shapes: q (B, Hq, Lq, d), k (B, Hkv, Lk, d), v (B, Hkv, Lk, dv); query head h reads kv head
/// h / (Hq / Hkv). Any size may be 0 except that Hkv must divide Hq.
template <class T>
struct FlashArgs {
  std::int64_t B = 1, Hq = 1, Hkv = 1, Lq = 0, Lk = 0, d = 0, dv = 0;
  Heads<const T> q, k, v;
  T scale = 1;
  Band band{};
  std::span<const ScoreHook<T>> hooks{};  // at most max_hooks
  Dropout dropout{};

  /// Packed batches: B + 1 row numbers each, ascending; problem b has the query rows q_starts[b] …
  /// q_starts[b+1]-1 and the like of keys, and positions, hooks and dropout count from 0 in each. Lq and Lk
  /// are then not used.
  const std::int64_t* q_starts = nullptr;
  const std::int64_t* k_starts = nullptr;

  /// Tile sizes; 0 chooses.
  std::int64_t block_q = 0, block_k = 0;
};

/// How many tiles there were, and how many of them were skipped because nothing in them may attend.
struct TileCount {
  std::int64_t total = 0, skipped = 0;
};

/// Writes out (B, Hq, Lq, dv) and, unless its data is null, lse (B, Hq, Lq; `element` is not used).
template <class T>
TileCount flash_forward(const FlashArgs<T>& args, Heads<T> out, Heads<T> lse);

/// What the backward pass starts from: the forward results, and the gradients arriving at them. `dlse`, the
/// gradient arriving at the log-sum-exp, may be null.
template <class T>
struct FlashSaved {
  Heads<const T> out, lse, dout, dlse{};
};

/// Writes (does not add) dq, dk and dv, in the shapes of q, k, v; one whose data is null is not computed.
template <class T>
TileCount flash_backward(const FlashArgs<T>& args, const FlashSaved<T>& saved, Heads<T> dq, Heads<T> dk,
                         Heads<T> dv);

}  // namespace tapehead::kernels
