// The backward pass. Nothing of the size of the scores was kept: each tile of them is computed again, and
//     A  = exp(S - m) / l        dV += Aᵀ dO      dA = dO Vᵀ
//     dS = A (dA - D)            dK += dSᵀ Q      dQ += dS K,      D_i = dO_i · O_i
// where D_i stands for Σ_j A_ij dA_ij, which would need the whole row. With dropout the weight that met V was
// A keep / (1 - p): dV uses that, and dA is multiplied by the same factor; D holds as it stands. A sink has
// the weight exp(sink - m) / l and no value, so its dA is 0 and its gradient -Σ_i A_i D_i.
//
// A task is one kv head and the query heads that read it, in turn. Key blocks are the outer walk, so that Kᵀ
// and Vᵀ are packed for one block only. The packed queries carry the scale, as in the forward pass, so that S
// has the same bits there and here; that makes dK right too, and dQ is scaled at its end. K and dO are read,
// and dQ, dK and dV grow, where they lie if their rows lie packed, else in packed copies.

#include "kernels/flash_tiles.hpp"

namespace tapehead::kernels {
namespace {

template <class T> class BackwardTask {
 public:
  BackwardTask(const FlashArgs<T>& args, const FlashSaved<T>& saved, const FlashGradients<T>& gradients, std::int64_t b,
               std::int64_t kv_head)
      : a_(args), saved_(saved), d_(gradients), b_(b), kv_head_(kv_head) {
    A_.zero(), dS_.zero();
  }

  /// `sums` has the private sums of all edits, one after the other.
  TileCount run(double* sums) {
    const std::int64_t group = a_.Hq / a_.Hkv;
    if (d_.k.data) dK_ = rows_to_sum(s_.key(d_.k, kv_head_), d_.k, s_.Lk, a_.d, dK_room_ + 0);
    if (d_.v.data) dV_ = rows_to_sum(s_.key(d_.v, kv_head_), d_.v, s_.Lk, a_.dv, dV_room_ + 0);
    for (std::int64_t h = kv_head_ * group; h < (kv_head_ + 1) * group; ++h) {
      prepare_queries(h);
      for (std::int64_t j0 = 0; j0 < s_.Lk; j0 += block_k_) key_block(h, j0, sums);
      if (d_.q.data) write_rows(dQ_, a_.scale, s_.query(d_.q, h), d_.q, s_.Lq, a_.d);
    }
    if (d_.k.data) write_rows(dK_, T(1), s_.key(d_.k, kv_head_), d_.k, s_.Lk, a_.d);
    if (d_.v.data) write_rows(dV_, T(1), s_.key(d_.v, kv_head_), d_.v, s_.Lk, a_.dv);
    return count_;
  }

 private:
  static std::int64_t readers(const FlashArgs<T>& a) {
    return std::count_if(a.edits.begin(), a.edits.end(), [](const auto* edit) { return edit->reads_scores; });
  }

  void prepare_queries(std::int64_t h) {
    const auto &q = a_.q, &g = saved_.dout, &o = saved_.out, &top = saved_.rows.max, &sum = saved_.rows.sum;
    pack_rows(s_.query(q, h), q.row, q.element, s_.Lq, a_.d, a_.scale, Q_ + 0, width_);
    dO_ = rows_to_read(s_.query(g, h), g, s_.Lq, a_.dv, dO_room_ + 0);
    if (d_.q.data) dQ_ = rows_to_sum(s_.query(d_.q, h), d_.q, s_.Lq, a_.d, dQ_room_ + 0);
    for (std::int64_t i = 0; i < s_.Lq; ++i) {
      const T* out = s_.query(o, h) + i * o.row;
      if (o.element != 1) pack_rows(out, 0, o.element, 1, a_.dv, T(1), O_row_ + 0, vwidth_), out = O_row_ + 0;
      D_[i] = inner_product(dO_ + i * vwidth_, out, a_.dv);
      // A row that attends to nothing must get weight 0 for every score: exp(s - inf). One that met +inf has
      // l = NaN.
      const T m = s_.query(top, h)[i * top.row], l = s_.query(sum, h)[i * sum.row];
      m_[i] = l == 0 ? infinity<T> : m, inverse_l_[i] = l == 0 ? T(0) : 1 / l;
    }
    if (d_.sinks.data) *d_.sinks.at(b_, h, 0) = static_cast<T>(sink_gradient(*a_.sinks.at(b_, h, 0)));
  }

  double sink_gradient(T sink) const {
    double sum = 0;
    for (std::int64_t i = 0; sink != -infinity<T> && i < s_.Lq; ++i)
      sum -= static_cast<double>(std::exp(sink - m_[i]) * inverse_l_[i] * D_[i]);
    return sum;
  }

  void key_block(std::int64_t h, std::int64_t j0, double* sums) {
    const std::int64_t cols = std::min(block_k_, s_.Lk - j0), blocks = (s_.Lq + block_q_ - 1) / block_q_;
    const Range seen = band_.queries(j0, cols);
    std::int64_t visited = 0;
    for (auto n = seen.begin / block_q_; n * block_q_ < seen.end; ++n) {
      const Tile tile{b_, h, n * block_q_, std::min(block_q_, s_.Lq - n * block_q_), j0, cols, ld_};
      const int edits = edits_at_work(a_.edits, tile);
      if (edits < 0) continue;
      if (visited++ == 0) pack_keys(j0, cols);
      weights_and_gradients(tile, edits, sums);
      accumulate(tile);
    }
    count_.total += blocks, count_.skipped += blocks - visited;
  }

  void pack_keys(std::int64_t j0, std::int64_t cols) {
    const auto &k = a_.k, &v = a_.v;
    const T* rows = s_.key(k, kv_head_) + j0 * k.row;
    K_ = rows_to_read(rows, k, cols, a_.d, K_room_ + 0);
    pack<T>(cols, ld_, a_.d, {rows, k.row, k.element}, KT_ + 0);
    pack<T>(cols, ld_, a_.dv, {s_.key(v, kv_head_) + j0 * v.row, v.row, v.element}, VT_ + 0);
  }

  /// A (as it met V: dropped and scaled) and dS; zeros where the band hides.
  void weights_and_gradients(const Tile& tile, int edits, double* sums) {
    for_each_strip<T>(band_, tile, [&](std::int64_t r, std::int64_t rows, Range c) {
      const std::int64_t i = tile.i0 + r, cols = c.end - c.begin, at = r * ld_ + c.begin;
      tile_product(rows, cols, a_.d, {Q_ + i * width_, width_, 1}, KT_ + c.begin, ld_, A_ + at, ld_, Onto::nothing);
      tile_product(rows, cols, a_.dv, {dO_ + i * vwidth_, vwidth_, 1}, VT_ + c.begin, ld_, dS_ + at, ld_,
                   Onto::nothing);
    });
    T* found = found_ + 0;
    for (std::size_t n = 0; n < a_.edits.size(); ++n) {
      if (a_.edits[n]->reads_scores) found = std::copy_n(A_ + 0, tile.rows * ld_, found);
      if (edits >> n & 1) a_.edits[n]->edit(tile, A_ + 0);
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
    sums += sums_of(a_.edits);
    for (std::size_t n = a_.edits.size(); n-- > 0;) {
      const ScoreEdit<T>& edit = *a_.edits[n];
      sums -= edit.sum_count;
      if (edit.reads_scores) found -= tile.rows * ld_;
      if (edits >> n & 1) edit.edit_gradient(tile, edit.reads_scores ? found : nullptr, dS_ + 0, sums);
    }
  }

  /// Zeros outside columns c: sums over the rows of a tile pass there.
  void zero_outside(std::int64_t begin, std::int64_t end, Range c) {
    if (c.begin == 0 && c.end == ld_) return;
    for (std::int64_t r = begin; r < end; ++r)
      for (T* x : {A_ + r * ld_, dS_ + r * ld_}) std::fill(x, x + c.begin, T(0)), std::fill(x + c.end, x + ld_, T(0));
  }

  /// One row: the score becomes the weight A, dA becomes dS.
  void row(const Tile& tile, std::int64_t r, Range c) {
    const std::int64_t i = tile.i0 + r, end = std::min(c.end, tile.cols);
    T *s = A_ + r * ld_, *ds = dS_ + r * ld_;
    const bool dropping = drops(a_.dropout);
    if (dropping) dropout_factors(a_.dropout, b_, tile.h, i, tile.j0 + c.begin, end - c.begin, drop_ + c.begin);
    const Vec<T> m = m_[i], inverse_l = inverse_l_[i], D = D_[i], zero = T(0);
    for (auto n = c.begin; n < c.end; n += lanes<T>) {
      const Vec<T> A = exp_of_difference(load(s + n) - m) * inverse_l;
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
      if (d_.v.data)
        tile_product(cols, vwidth_, depth, {A_ + at, 1, ld_}, dO_ + i * vwidth_, vwidth_, dV_ + j * vwidth_, vwidth_,
                     Onto::sum);
      if (d_.k.data)
        tile_product(cols, width_, depth, {dS_ + at, 1, ld_}, Q_ + i * width_, width_, dK_ + j * width_, width_,
                     Onto::sum);
    });
    if (!d_.q.data) return;
    for_each_strip<T>(band_, tile, [&](std::int64_t r, std::int64_t rows, Range c) {
      tile_product(rows, width_, std::min(c.end, tile.cols) - c.begin, {dS_ + r * ld_ + c.begin, ld_, 1},
                   K_ + c.begin * width_, width_, dQ_ + (tile.i0 + r) * width_, width_, Onto::sum);
    });
  }

  const FlashArgs<T>& a_;
  const FlashSaved<T>& saved_;
  const FlashGradients<T>& d_;
  const std::int64_t b_, kv_head_;
  const Sequence s_ = sequence(a_, b_);
  const Diagonals band_{a_.band, s_};
  const std::int64_t block_q_ = tile_side(a_.block_q, s_.Lq), block_k_ = tile_side(a_.block_k, s_.Lk);
  const std::int64_t ld_ = round_up(block_k_, lanes<T>);
  const std::int64_t width_ = round_up(a_.d, lanes<T>), vwidth_ = round_up(a_.dv, lanes<T>);
  TileCount count_;

  // Rows used where they lie if they lie packed, else in their room.
  const T *K_ = nullptr, *dO_ = nullptr;             // (block_k, width), (Lq, vwidth)
  T *dQ_ = nullptr, *dK_ = nullptr, *dV_ = nullptr;  // (Lq, width), (Lk, width), (Lk, vwidth)
  Scratch<T> K_room_{room_for(a_.k, block_k_, a_.d)}, dO_room_{room_for(saved_.dout, s_.Lq, a_.dv)};
  Scratch<T> dQ_room_{d_.q.data ? room_for(d_.q, s_.Lq, a_.d) : 0};
  Scratch<T> dK_room_{d_.k.data ? room_for(d_.k, s_.Lk, a_.d) : 0};
  Scratch<T> dV_room_{d_.v.data ? room_for(d_.v, s_.Lk, a_.dv) : 0};

  Scratch<T> Q_{s_.Lq * width_};                       // (Lq, width), times the scale
  Scratch<T> m_{s_.Lq}, inverse_l_{s_.Lq}, D_{s_.Lq};  // (Lq)
  Scratch<T> KT_{a_.d * ld_}, VT_{a_.dv * ld_};        // (d, ld), (dv, ld)
  Scratch<T> A_{block_q_ * ld_}, dS_{block_q_ * ld_};  // (block_q, ld)
  Scratch<T> found_{readers(a_) * block_q_ * ld_};     // (edits that read scores, block_q, ld)
  Scratch<T> drop_{ld_}, O_row_{vwidth_};              // (ld), (vwidth)
};

}  // namespace

template <class T>
TileCount flash_backward(const FlashArgs<T>& args, const FlashSaved<T>& saved, const FlashGradients<T>& gradients) {
  const std::int64_t heads = args.B * args.Hkv, sum_count = sums_of(args.edits);

  // Sums of edits are private to a task and added up in the order of tasks, so that the result does not
  // depend on which thread was first. Tasks go in waves of one a thread, which bounds the memory for them.
  const std::int64_t wave = sum_count > 0 ? available_threads() : std::max<std::int64_t>(heads, 1);
  Scratch<double> sums(sum_count > 0 ? wave * sum_count : 0);
  SharedCount count;
  for (std::int64_t first = 0; first < heads; first += wave) {
    const std::int64_t n = std::min(wave, heads - first);
    sums.zero();
    parallel_for(n, operations(args) / heads * n, [&](std::int64_t task) {
      const std::int64_t head = first + task;
      BackwardTask<T> work(args, saved, gradients, head / args.Hkv, head % args.Hkv);
      count.add(work.run(sums + task * sum_count));
    });
    const double* own = sums + 0;
    for (std::int64_t head = first; head < first + n; ++head)
      for (std::size_t k = 0; k < args.edits.size(); own += args.edits[k++]->sum_count) {
        if (k >= gradients.totals.size() || gradients.totals[k] == nullptr) continue;
        double* total = gradients.totals[k] + args.edits[k]->first_sum(head / args.Hkv, head % args.Hkv);
        for (std::int64_t i = 0; i < args.edits[k]->sum_count; ++i) total[i] += own[i];
      }
  }
  return count.get();
}

template TileCount flash_backward(const FlashArgs<float>&, const FlashSaved<float>&, const FlashGradients<float>&);
template TileCount flash_backward(const FlashArgs<double>&, const FlashSaved<double>&, const FlashGradients<double>&);

}  // namespace tapehead::kernels
