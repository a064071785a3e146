// The forward pass: for each query block, one walk over the key blocks with a running maximum and running
// sums.
//
// Scale is folded into the packed queries. A tile of scores goes through four stages, each over all rows,
// because rows do not depend on each other while the steps of one row do: the product Q Kᵀ; the new maxima;
// the factors by which earlier sums shrink, exp(m_old - m_new), for a vector of rows at once; the weights and
// their sums. The product with V applies the factors on its way. Row sums stay vectors, added up once at the
// end. A sink is a key that every row has met before the first tile: m starts at its logit and l at 1.
//
// Near the edge of the band a tile is half empty. There each strip of six rows computes only the vectors of
// keys that its rows can see, so causal attention costs little more than half of the full one at any length.

#include "kernels/flash_tiles.hpp"

namespace tapehead::kernels {
namespace {

/// Query blocks `first`, `first + step`, … of all query heads that share one kv head.
template <class T> class ForwardTask {
 public:
  ForwardTask(const FlashArgs<T>& args, const HeadsView<T>& out, const RowSums<T>& sums, std::int64_t b,
              std::int64_t kv_head)
      : a_(args), out_(out), sums_(sums), b_(b), kv_head_(kv_head) {
    packed_.zero(), S_.zero();
  }

  TileCount run(std::int64_t first, std::int64_t step) {
    const std::int64_t group = a_.Hq / a_.Hkv, blocks = (s_.Lq + block_q_ - 1) / block_q_;
    for (std::int64_t h = kv_head_ * group; h < (kv_head_ + 1) * group; ++h)
      for (std::int64_t n = first; n < blocks; n += step)
        query_block(h, n * block_q_, std::min(block_q_, s_.Lq - n * block_q_));
    return count_;
  }

 private:
  void query_block(std::int64_t h, std::int64_t i0, std::int64_t rows) {
    pack_rows(s_.query(a_.q, h) + i0 * a_.q.row, a_.q.row, a_.q.element, rows, a_.d, a_.scale, Q_ + 0, a_.d);
    begin_sums(h);
    const Range seen = band_.keys(i0, rows);
    std::int64_t visited = 0;
    for (auto n = seen.begin / block_k_; n * block_k_ < seen.end; ++n) {
      const std::int64_t j0 = n * block_k_;
      const Tile tile{b_, h, i0, rows, j0, std::min(block_k_, s_.Lk - j0), ld_};
      const int edits = edits_at_work(a_.edits, tile);
      if (edits < 0) continue;
      pack(tile);
      scores(tile, edits);
      weights(tile);
      for_each_strip<T>(band_, tile, [&](std::int64_t r, std::int64_t count, Range c) {
        tile_product(count, width_, std::min(c.end, tile.cols) - c.begin, {S_ + r * ld_ + c.begin, ld_, 1},
                     V_ + (j0 + c.begin) * width_, width_, O_ + r * width_, width_, Onto::scaled_sum, factor_ + r);
      });
      ++visited;
    }
    count_.total += key_blocks_, count_.skipped += key_blocks_ - visited;
    write(h, i0, rows);
  }

  void begin_sums(std::int64_t h) {
    const T sink = a_.sinks.data ? *a_.sinks.at(b_, h, 0) : -infinity<T>;
    m_.fill(sink), m_next_.fill(sink), l_.zero(), O_.zero();
    if (sink == -infinity<T>) return;
    for (std::int64_t r = 0; r < block_q_; ++r) l_[r * lanes<T>] = 1 + 0 * sink;  // NaN for an infinite sink
  }

  T* keys(std::int64_t j0) const { return K_ + j0 / block_k_ * ld_ * a_.d; }

  /// Keys and values are packed when a block of them is first met: Kᵀ, and rows of V padded to whole vectors.
  void pack(const Tile& t) {
    if (packed_[t.j0 / block_k_]) return;
    const auto &k = a_.k, &v = a_.v;
    kernels::pack<T>(t.cols, ld_, a_.d, {s_.key(k, kv_head_) + t.j0 * k.row, k.row, k.element}, keys(t.j0));
    rows_to_read(s_.key(v, kv_head_) + t.j0 * v.row, v, t.cols, a_.dv, V_room_ + t.j0 * width_);
    packed_[t.j0 / block_k_] = true;
  }

  void scores(const Tile& tile, int edits) {
    for_each_strip<T>(band_, tile, [&](std::int64_t r, std::int64_t rows, Range c) {
      tile_product(rows, c.end - c.begin, a_.d, {Q_ + r * a_.d, a_.d, 1}, keys(tile.j0) + c.begin, ld_,
                   S_ + r * ld_ + c.begin, ld_, Onto::nothing);
    });
    for (std::size_t n = 0; n < a_.edits.size(); ++n)
      if (edits >> n & 1) a_.edits[n]->edit(tile, S_ + 0);
  }

  /// Scores become weights exp(s - m); m and l follow.
  void weights(const Tile& tile) {
    for_each_strip<T>(band_, tile, [&](std::int64_t r, std::int64_t rows, Range c) {
      if (band_.cuts(tile, r, rows, c))
        for (std::int64_t i = r; i < r + rows; ++i) band_.hide(tile, i, c, S_ + i * ld_);
      for (std::int64_t i = r; i < r + rows; ++i) m_next_[i] = row_maximum(i, c);
    });
    move_maxima(tile.rows);
    for_each_strip<T>(band_, tile, [&](std::int64_t r, std::int64_t rows, Range c) {
      for (std::int64_t i = r; i < r + rows; ++i) row_weights(i, c);
      if (drops(a_.dropout))
        for (std::int64_t i = r; i < r + rows; ++i) drop(tile, i, c);
    });
  }

  T row_maximum(std::int64_t r, Range c) {
    const T* s = S_ + r * ld_;
    Vec<T> top = m_[r];
    for (auto n = c.begin; n < c.end; n += lanes<T>)
      top = max(load(s + n), top);  // in this order a NaN score is not taken, and a NaN maximum stays
    const T m = horizontal_max(top);
    return m == infinity<T> && has_nan(r, c) ? std::numeric_limits<T>::quiet_NaN() : m;
  }

  /// Whether an infinite row also holds a NaN, in this tile or before it became infinite. In other rows the
  /// sum l shows a NaN; here it is NaN in any case.
  bool has_nan(std::int64_t r, Range c) {
    const bool before = m_[r] != infinity<T> && std::isnan(horizontal_sum(load(l_ + r * lanes<T>)));
    return before || std::any_of(S_ + r * ld_ + c.begin, S_ + r * ld_ + c.end, [](T s) { return std::isnan(s); });
  }

  void move_maxima(std::int64_t rows) {
    const Vec<T> one = T(1), zero = T(0), nothing = -infinity<T>;
    for (std::int64_t r = 0; r < rows; r += lanes<T>) {
      const Vec<T> before = load(m_ + r), now = load(m_next_ + r);
      // Two equal infinities have no difference, so their factor is set to 1. A row that has met only -inf subtracts 0
      // instead of its maximum: -inf - 0 gives weight 0, where -inf - -inf would give NaN.
      store(factor_ + r, select(before == now, one, exp_of_difference(before - now)));
      store(shift_ + r, select(now == nothing, zero, now));
      store(m_ + r, now);
    }
  }

  void row_weights(std::int64_t r, Range c) {
    T *s = S_ + r * ld_, *l = l_ + r * lanes<T>;
    const Vec<T> shift = shift_[r];
    Vec<T> sum = load(l) * factor_[r];
    for (auto n = c.begin; n < c.end; n += lanes<T>) {
      const Vec<T> p = exp_of_difference(load(s + n) - shift);
      sum += p;
      store(s + n, p);
    }
    store(l, sum);
  }

  void drop(const Tile& tile, std::int64_t r, Range c) {
    T* s = S_ + r * ld_;
    const std::int64_t end = std::min(c.end, tile.cols);
    dropout_factors(a_.dropout, b_, tile.h, tile.i0 + r, tile.j0 + c.begin, end - c.begin, drop_ + c.begin);
    for (auto n = c.begin; n < end; ++n) s[n] *= drop_[n];
  }

  void write(std::int64_t h, std::int64_t i0, std::int64_t rows) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const T l = horizontal_sum(load(l_ + r * lanes<T>));
      T* out = s_.query(out_, h) + (i0 + r) * out_.row;
      // l is 0 in a row that could attend to nothing: its output is 0, not 0/0.
      write_rows(O_ + r * width_, l == 0 ? T(0) : 1 / l, out, out_, 1, a_.dv);
      if (!sums_.max.data) continue;
      s_.query(sums_.max, h)[(i0 + r) * sums_.max.row] = m_[r];
      s_.query(sums_.sum, h)[(i0 + r) * sums_.sum.row] = l;
    }
  }

  const FlashArgs<T>& a_;
  const HeadsView<T>& out_;
  const RowSums<T>& sums_;
  const std::int64_t b_, kv_head_;
  const Sequence s_ = sequence(a_, b_);
  const Diagonals band_{a_.band, s_};
  const std::int64_t block_q_ = tile_side(a_.block_q, s_.Lq), block_k_ = tile_side(a_.block_k, s_.Lk);
  const std::int64_t ld_ = round_up(block_k_, lanes<T>), width_ = round_up(a_.dv, lanes<T>);
  const std::int64_t rows_ = round_up(block_q_, lanes<T>), key_blocks_ = (s_.Lk + block_k_ - 1) / block_k_;
  TileCount count_;

  Scratch<bool> packed_{key_blocks_};       // whether pack() has seen a block
  Scratch<T> K_{key_blocks_ * a_.d * ld_};  // (key blocks, d, ld): Kᵀ
  Scratch<T> V_room_{room_for(a_.v, s_.Lk, a_.dv)};
  const T* V_ = lies_packed(a_.v, a_.dv) ? s_.key(a_.v, kv_head_) : V_room_ + 0;  // (Lk, width)
  Scratch<T> Q_{block_q_ * a_.d};                                                 // (block_q, d), times the scale
  Scratch<T> S_{block_q_ * ld_};                                                  // (block_q, ld): scores, then weights
  Scratch<T> O_{block_q_ * width_};                                               // (block_q, width)
  Scratch<T> l_{block_q_ * lanes<T>};                                   // (block_q, lanes): row sums as vectors
  Scratch<T> m_{rows_}, m_next_{rows_}, factor_{rows_}, shift_{rows_};  // (rows)
  Scratch<T> drop_{ld_};
};

}  // namespace

template <class T> TileCount flash_forward(const FlashArgs<T>& args, HeadsView<T> out, const RowSums<T>& rows) {
  // With few heads the query blocks of one are dealt out to several tasks, which then each pack its keys.
  const std::int64_t heads = args.B * args.Hkv, threads = available_threads();
  const std::int64_t split = heads < threads ? 2 * threads / std::max<std::int64_t>(heads, 1) : 1;
  SharedCount count;
  parallel_for(heads * split, operations(args), [&](std::int64_t n) {
    const std::int64_t head = n / split;
    count.add(ForwardTask<T>(args, out, rows, head / args.Hkv, head % args.Hkv).run(n % split, split));
  });
  return count.get();
}

template TileCount flash_forward(const FlashArgs<float>&, HeadsView<float>, const RowSums<float>&);
template TileCount flash_forward(const FlashArgs<double>&, HeadsView<double>, const RowSums<double>&);

}  // namespace tapehead::kernels
