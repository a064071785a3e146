// The backward pass. Nothing of the size of the scores was kept: each tile of them is computed again, and
//     A  = exp(S - lse)          dV += Aᵀ dO      dA = dO Vᵀ
//     dS = A (dA - D)            dK += dSᵀ Q      dQ += dS K,      D_i = dO_i · O_i (- dlse_i)
// where D_i stands for Σ_j A_ij dA_ij, which would need the whole row. With dropout the weight that met V was
// A keep / (1 - p): dV uses that, and dA is multiplied by the same factor; D holds as it stands.
//
// A task is one kv head and the query heads that read it, in turn. Key blocks are the outer walk, so that Kᵀ,
// Vᵀ and K are packed for one block only; Kᵀ and K carry the scale, which makes S and dQ right, and dK is
// scaled at its end. Q and dO are read, and dQ, dK and dV grow, where they lie if their rows lie packed, else
// in packed copies.

#include "kernels/flash_tiles.hpp"

namespace tapehead::kernels {
namespace {

template <class T>
class BackwardTask {
 public:
  BackwardTask(const FlashArgs<T>& args, const FlashSaved<T>& saved, const Heads<T>& dq, const Heads<T>& dk,
               const Heads<T>& dv, std::int64_t b, std::int64_t kv_head)
      : a_(args),
        saved_(saved),
        dq_(dq),
        dk_(dk),
        dv_(dv),
        b_(b),
        kv_head_(kv_head),
        s_(sequence(args, b)),
        band_(args.band, s_),
        block_q_(block(args.block_q, s_.Lq)),
        block_k_(block(args.block_k, s_.Lk)),
        ld_(round_up(block_k_, lanes<T>)),
        width_(round_up(a_.d, lanes<T>)),
        vwidth_(round_up(a_.dv, lanes<T>)),
        Q_room_(room_for(a_.q, s_.Lq, a_.d)),
        dO_room_(room_for(saved.dout, s_.Lq, a_.dv)),
        dQ_room_(dq.data ? room_for(dq, s_.Lq, a_.d) : 0),
        dK_room_(dk.data ? room_for(dk, s_.Lk, a_.d) : 0),
        dV_room_(dv.data ? room_for(dv, s_.Lk, a_.dv) : 0),
        shift_(s_.Lq),
        D_(s_.Lq),
        KT_(a_.d * ld_),
        VT_(a_.dv * ld_),
        K_(block_k_ * width_),
        A_(block_q_ * ld_),
        dS_(block_q_ * ld_),
        drop_(ld_),
        O_row_(vwidth_),
        found_(readers(args) * block_q_ * ld_) {
    A_.zero(), dS_.zero();
  }

  /// sums[n] belongs to hook n.
  TileCount run(double* const* sums) {
    const std::int64_t group = a_.Hq / a_.Hkv;
    if (dk_.data) dK_ = rows_to_sum(s_.key(dk_, kv_head_), dk_, s_.Lk, a_.d, dK_room_ + 0);
    if (dv_.data) dV_ = rows_to_sum(s_.key(dv_, kv_head_), dv_, s_.Lk, a_.dv, dV_room_ + 0);
    for (std::int64_t h = kv_head_ * group; h < (kv_head_ + 1) * group; ++h) {
      prepare_queries(h);
      for (std::int64_t j0 = 0; j0 < s_.Lk; j0 += block_k_) key_block(h, j0, sums);
      if (dq_.data) write_rows(dQ_, T(1), s_.query(dq_, h), dq_, s_.Lq, a_.d);
    }
    if (dk_.data) write_rows(dK_, a_.scale, s_.key(dk_, kv_head_), dk_, s_.Lk, a_.d);
    if (dv_.data) write_rows(dV_, T(1), s_.key(dv_, kv_head_), dv_, s_.Lk, a_.dv);
    return count_;
  }

 private:
  static std::int64_t readers(const FlashArgs<T>& a) {
    return std::count_if(a.hooks.begin(), a.hooks.end(), [](const auto& hook) { return hook.reads_scores; });
  }

  void prepare_queries(std::int64_t h) {
    const auto &g = saved_.dout, &o = saved_.out, &lse = saved_.lse, &dlse = saved_.dlse;
    Q_ = rows_to_read(s_.query(a_.q, h), a_.q, s_.Lq, a_.d, Q_room_ + 0);
    dO_ = rows_to_read(s_.query(g, h), g, s_.Lq, a_.dv, dO_room_ + 0);
    if (dq_.data) dQ_ = rows_to_sum(s_.query(dq_, h), dq_, s_.Lq, a_.d, dQ_room_ + 0);
    for (std::int64_t i = 0; i < s_.Lq; ++i) {
      const T* out = s_.query(o, h) + i * o.row;
      if (o.element != 1) pack_rows(out, 0, o.element, 1, a_.dv, T(1), O_row_ + 0, vwidth_), out = O_row_ + 0;
      D_[i] = dot(dO_ + i * vwidth_, out, a_.dv);
      if (dlse.data) D_[i] -= s_.query(dlse, h)[i * dlse.row];
      // Weights are exp2(s log2(e) + shift). A row that attends to nothing has lse = -inf and must give 0 for
      // every score; one that met +inf has no weights.
      const T l = s_.query(lse, h)[i * lse.row];
      shift_[i] = -l * log2_e<T>;
      if (l == -infinity<T>) shift_[i] = l;
      if (l == infinity<T>) shift_[i] = std::numeric_limits<T>::quiet_NaN();
    }
  }

  void key_block(std::int64_t h, std::int64_t j0, double* const* sums) {
    const std::int64_t cols = std::min(block_k_, s_.Lk - j0), blocks = (s_.Lq + block_q_ - 1) / block_q_;
    const Range seen = band_.queries(j0, cols);
    std::int64_t visited = 0;
    for (auto n = seen.begin / block_q_; n * block_q_ < seen.end; ++n) {
      const Tile tile{b_, h, n * block_q_, std::min(block_q_, s_.Lq - n * block_q_), j0, cols, ld_};
      const int hooks = hooks_at_work(a_.hooks, tile);
      if (hooks < 0) continue;
      if (visited++ == 0) pack_keys(j0, cols);
      weights_and_gradients(tile, hooks, sums);
      accumulate(tile);
    }
    count_.total += blocks, count_.skipped += blocks - visited;
  }

  void pack_keys(std::int64_t j0, std::int64_t cols) {
    const auto &k = a_.k, &v = a_.v;
    pack_rows(s_.key(k, kv_head_) + j0 * k.row, k.row, k.element, cols, a_.d, a_.scale, K_ + 0, width_);
    pack<T>(cols, ld_, a_.d, {K_ + 0, width_, 1}, KT_ + 0);
    pack<T>(cols, ld_, a_.dv, {s_.key(v, kv_head_) + j0 * v.row, v.row, v.element}, VT_ + 0);
  }

  /// A (as it met V: dropped and scaled) and dS; zeros where the band hides.
  void weights_and_gradients(const Tile& tile, int hooks, double* const* sums) {
    for_each_strip<T>(band_, tile, [&](std::int64_t r, std::int64_t rows, Range c) {
      const std::int64_t i = tile.i0 + r, cols = c.end - c.begin, at = r * ld_ + c.begin;
      tile_product(rows, cols, a_.d, {Q_ + i * width_, width_, 1}, KT_ + c.begin, ld_, A_ + at, ld_,
                   Onto::nothing);
      tile_product(rows, cols, a_.dv, {dO_ + i * vwidth_, vwidth_, 1}, VT_ + c.begin, ld_, dS_ + at, ld_,
                   Onto::nothing);
    });
    T* found = found_ + 0;
    for (std::size_t n = 0; n < a_.hooks.size(); ++n) {
      const auto& hook = a_.hooks[n];
      if (hook.reads_scores) found = std::copy_n(A_ + 0, tile.rows * ld_, found);
      if (hooks >> n & 1) hook.edit(hook.context, tile, A_ + 0);
    }
    std::int64_t done = 0;
    for_each_strip<T>(band_, tile, [&](std::int64_t r, std::int64_t rows, Range c) {
      zero_outside(done, r, Range{0, 0}), zero_outside(r, r + rows, c);
      if (band_.cuts(tile, r, rows, c))
        for (std::int64_t i = r; i < r + rows; ++i) band_.hide(tile, i, c, A_ + i * ld_);
      for (std::int64_t i = r; i < r + rows; ++i) row(tile, i, c);
      done = r + rows;
    });
    zero_outside(done, tile.rows, Range{0, 0});
    for (std::size_t n = a_.hooks.size(); n-- > 0;) {
      const auto& hook = a_.hooks[n];
      if (hook.reads_scores) found -= tile.rows * ld_;
      if (hooks >> n & 1 && hook.edit_gradient)
        hook.edit_gradient(hook.context, tile, hook.reads_scores ? found : nullptr, dS_ + 0, sums[n]);
    }
  }

  /// Zeros outside columns c: sums over the rows of a tile pass there.
  void zero_outside(std::int64_t begin, std::int64_t end, Range c) {
    if (c.begin == 0 && c.end == ld_) return;
    for (std::int64_t r = begin; r < end; ++r)
      for (T* x : {A_ + r * ld_, dS_ + r * ld_})
        std::fill(x, x + c.begin, T(0)), std::fill(x + c.end, x + ld_, T(0));
  }

  /// One row: the score becomes the weight A, dA becomes dS.
  void row(const Tile& tile, std::int64_t r, Range c) {
    const std::int64_t i = tile.i0 + r, end = std::min(c.end, tile.cols);
    T *s = A_ + r * ld_, *ds = dS_ + r * ld_;
    const bool dropping = drops(a_.dropout);
    if (dropping)
      dropout_factors(a_.dropout, b_, tile.h, i, tile.j0 + c.begin, end - c.begin, drop_ + c.begin);
    const Vec<T> shift = shift_[i], D = D_[i], zero = T(0);
    for (auto n = c.begin; n < c.end; n += lanes<T>) {
      const Vec<T> A = exp2_or_0(fma(load(s + n), Vec<T>(log2_e<T>), shift));
      Vec<T> dA = load(ds + n), met = A;
      if (dropping) {
        const Vec<T> factor = load(drop_ + n);
        dA = select(factor == zero, zero, dA * factor), met *= factor;
      }
      // Selected, not multiplied: dA of a masked key may be infinite or NaN.
      store(ds + n, select(A == zero, zero, A * (dA - D)));
      store(s + n, met);
    }
  }

  /// The three products that sum over a tile.
  void accumulate(const Tile& tile) {
    for_each_key_strip(band_, tile, [&](std::int64_t c, std::int64_t cols, Range rows) {
      const std::int64_t i = tile.i0 + rows.begin, j = tile.j0 + c, depth = rows.end - rows.begin,
                         at = rows.begin * ld_ + c;
      if (dv_.data)
        tile_product(cols, vwidth_, depth, {A_ + at, 1, ld_}, dO_ + i * vwidth_, vwidth_, dV_ + j * vwidth_,
                     vwidth_, Onto::sum);
      if (dk_.data)
        tile_product(cols, width_, depth, {dS_ + at, 1, ld_}, Q_ + i * width_, width_, dK_ + j * width_,
                     width_, Onto::sum);
    });
    if (!dq_.data) return;
    for_each_strip<T>(band_, tile, [&](std::int64_t r, std::int64_t rows, Range c) {
      tile_product(rows, width_, std::min(c.end, tile.cols) - c.begin, {dS_ + r * ld_ + c.begin, ld_, 1},
                   K_ + c.begin * width_, width_, dQ_ + (tile.i0 + r) * width_, width_, Onto::sum);
    });
  }

  const FlashArgs<T>& a_;
  const FlashSaved<T>& saved_;
  const Heads<T>&dq_, &dk_, &dv_;
  const std::int64_t b_, kv_head_;
  const Sequence s_;
  const Diagonals band_;
  const std::int64_t block_q_, block_k_, ld_, width_, vwidth_;
  TileCount count_;
  const T *Q_ = nullptr, *dO_ = nullptr;
  T *dQ_ = nullptr, *dK_ = nullptr, *dV_ = nullptr;
  Scratch<T> Q_room_, dO_room_, dQ_room_, dK_room_, dV_room_, shift_, D_, KT_, VT_, K_, A_, dS_, drop_,
      O_row_, found_;
};

}  // namespace

template <class T>
TileCount flash_backward(const FlashArgs<T>& given, const FlashSaved<T>& saved, Heads<T> dq, Heads<T> dk,
                         Heads<T> dv) {
  const FlashArgs<T> args = with_tile_sizes(given);
  const std::int64_t heads = args.B * args.Hkv;
  std::int64_t sum_count = 0;
  for (const auto& hook : args.hooks) sum_count += hook.sum_count;

  // Sums of hooks are private to a task and added up in the order of tasks, so that the result does not
  // depend on which thread was first. Tasks go in waves of one a thread, which bounds the memory for them.
  const std::int64_t wave = sum_count > 0 ? available_threads() : std::max<std::int64_t>(heads, 1);
  Scratch<double> sums(sum_count > 0 ? wave * sum_count : 0);
  SharedCount count;
  for (std::int64_t first = 0; first < heads; first += wave) {
    const std::int64_t n = std::min(wave, heads - first);
    sums.zero();
    parallel_for(n, operations(args) / std::max<std::int64_t>(heads, 1) * n, [&](std::int64_t task) {
      double* places[max_hooks] = {};
      std::int64_t at = task * sum_count;
      for (std::size_t k = 0; k < args.hooks.size(); ++k)
        places[k] = sums + at, at += args.hooks[k].sum_count;
      const std::int64_t head = first + task;
      count.add(BackwardTask<T>(args, saved, dq, dk, dv, head / args.Hkv, head % args.Hkv).run(places));
    });
    for (std::int64_t task = 0; task < n; ++task) {
      std::int64_t at = task * sum_count;
      for (const auto& hook : args.hooks) {
        if (hook.reduce)
          hook.reduce(hook.context, (first + task) / args.Hkv, (first + task) % args.Hkv, sums + at);
        at += hook.sum_count;
      }
    }
  }
  return count.get();
}

template TileCount flash_backward(const FlashArgs<float>&, const FlashSaved<float>&, Heads<float>,
                                  Heads<float>, Heads<float>);
template TileCount flash_backward(const FlashArgs<double>&, const FlashSaved<double>&, Heads<double>,
                                  Heads<double>, Heads<double>);

}  // namespace tapehead::kernels
