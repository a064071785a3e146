#include "kernels/decode.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/vec.hpp"
#include "kernels/vmath.hpp"

namespace tapehead::kernels {
namespace {

template <class T> inline constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

// out[j] = q · key j for n keys: a vector of sums for each of a square of keys, and one transposition to add
// them up. A tile product would need Kᵀ, and packing it costs more than the few products that read it.
template <class T> void dots(const T* q, const T* keys, std::int64_t n, std::int64_t d, T* out) {
  const std::int64_t whole = d / lanes<T> * lanes<T>;
  for (std::int64_t j = 0; j < n; j += lanes<T>) {
    const std::int64_t count = std::min<std::int64_t>(lanes<T>, n - j);
    Vec<T> sums[lanes<T>];
    for (std::int64_t i = 0; i < count; ++i) {
      const T* key = keys + (j + i) * d;
      Vec<T> sum;
      for (std::int64_t c = 0; c < whole; c += lanes<T>) sum = fma(load(q + c), load(key + c), sum);
      if (whole < d) sum = fma(load_n(q + whole, d - whole), load_n(key + whole, d - whole), sum);
      sums[i] = sum;
    }
    transpose(sums);
    Vec<T> total = sums[0];
    for (int i = 1; i < lanes<T>; ++i) total += sums[i];
    store_n(out + j, total, count);
  }
}

// out += Σ p[j] value j, `vectors` registers of columns. One row of weights at a time: a tile product of several
// rows reads narrower pieces of each value, and that costs more here than reading the values again.
template <int vectors, class T> void add_columns(const T* p, const T* values, std::int64_t n, std::int64_t dv, T* out) {
  Vec<T> sums[vectors];
  for (int i = 0; i < vectors; ++i) sums[i] = load(out + i * lanes<T>);
  for (std::int64_t j = 0; j < n; ++j, values += dv)
    for (int i = 0; i < vectors; ++i) sums[i] = fma(Vec<T>(p[j]), load(values + i * lanes<T>), sums[i]);
  for (int i = 0; i < vectors; ++i) store(out + i * lanes<T>, sums[i]);
}

template <class T> void add_weighted(const T* p, const T* values, std::int64_t n, std::int64_t dv, T* out) {
  std::int64_t c = 0;
  for (; c + 4 * lanes<T> <= dv; c += 4 * lanes<T>) add_columns<4>(p, values + c, n, dv, out + c);
  for (; c + lanes<T> <= dv; c += lanes<T>) add_columns<1>(p, values + c, n, dv, out + c);
  if (c == dv) return;
  Vec<T> sum = load_n(out + c, dv - c);
  for (std::int64_t j = 0; j < n; ++j) sum = fma(Vec<T>(p[j]), load_n(values + j * dv + c, dv - c), sum);
  store_n(out + c, sum, dv - c);
}

template <class T> class Decoder {
 public:
  Decoder(const CachedRows<T>& rows, std::int64_t group, std::int64_t queries, const T* q, T scale, std::int64_t window,
          const T* sinks)
      : rows_(rows),
        queries_(queries),
        per_head_(group * queries),
        window_(window > 0 ? window : rows.length),
        sinks_(sinks),
        q_(q, q + rows.heads * per_head_ * rows.d) {
    for (T& x : q_) x *= scale;
  }

  void run(T* out) {
    const std::int64_t work = rows_.heads * per_head_ * rows_.length * (rows_.d + rows_.dv);
    parallel_for(rows_.heads * chunks_, work, [&](std::int64_t n) { chunk(n / chunks_, n % chunks_); });
    for (std::int64_t head = 0; head < rows_.heads; ++head)
      for (std::int64_t r = 0; r < per_head_; ++r) join(head, r, out + (head * per_head_ + r) * rows_.dv);
  }

 private:
  std::size_t at(std::int64_t head_chunk, std::int64_t r) const {
    return static_cast<std::size_t>(head_chunk * per_head_ + r);
  }

  // Calls f(offset in the chunk, first row, count) for each run of rows in a chunk.
  template <class F> void each_piece(std::int64_t head, std::int64_t begin, std::int64_t end, const F& f) const {
    for (std::int64_t j = begin; j < end;) {
      const std::int64_t run = j / rows_.run_rows, within = j % rows_.run_rows,
                         n = std::min(rows_.run_rows - within, end - j);
      f(j - begin, rows_.first_rows[static_cast<std::size_t>(run)] + head * rows_.head_rows + within, n);
      j += n;
    }
  }

  void chunk(std::int64_t head, std::int64_t c) {
    const std::int64_t begin = c * decode_chunk, end = std::min(begin + decode_chunk, rows_.length);
    thread_local std::vector<T> scores;
    scores.resize(static_cast<std::size_t>(per_head_ * decode_chunk));
    each_piece(head, begin, end, [&](std::int64_t offset, std::int64_t row, std::int64_t n) {
      for (std::int64_t r = 0; r < per_head_; ++r)
        dots(q_.data() + (head * per_head_ + r) * rows_.d, rows_.keys + row * rows_.d, n, rows_.d,
             scores.data() + r * decode_chunk + offset);
    });
    for (std::int64_t r = 0; r < per_head_; ++r)
      weights(at(head * chunks_ + c, r), r, begin, end, scores.data() + r * decode_chunk);
    each_piece(head, begin, end, [&](std::int64_t offset, std::int64_t row, std::int64_t n) {
      for (std::int64_t r = 0; r < per_head_; ++r)
        add_weighted(scores.data() + r * decode_chunk + offset, rows_.values + row * rows_.dv, n, rows_.dv,
                     O_.data() + static_cast<std::int64_t>(at(head * chunks_ + c, r)) * rows_.dv);
    });
  }

  // Scores of keys begin … end - 1 become exp(s - m), 0 where row r does not see the key.
  void weights(std::size_t place, std::int64_t r, std::int64_t begin, std::int64_t end, T* s) {
    const std::int64_t own = rows_.length - queries_ + r % queries_;  // the query's own key
    const std::int64_t n = end - begin;
    std::fill(s + std::clamp<std::int64_t>(own + 1 - begin, 0, n), s + decode_chunk, minus_infinity<T>);
    std::fill(s, s + std::clamp<std::int64_t>(own + 1 - window_ - begin, 0, n), minus_infinity<T>);
    Vec<T> top = minus_infinity<T>;
    for (std::int64_t j = 0; j < n; j += lanes<T>) top = max(load(s + j), top);  // in this order NaN is not taken
    const T m = horizontal_max(top);
    const Vec<T> shift = m == minus_infinity<T> ? T(0) : m;
    Vec<T> sum;
    for (std::int64_t j = 0; j < n; j += lanes<T>) {
      const Vec<T> p = exp(load(s + j) - shift);
      store(s + j, p);
      sum += p;
    }
    m_[place] = m, l_[place] = horizontal_sum(sum);
  }

  void join(std::int64_t head, std::int64_t r, T* out) const {
    std::fill_n(out, rows_.dv, T(0));
    const T sink = sinks_ ? sinks_[(head * per_head_ + r) / queries_] : minus_infinity<T>;
    T top = sink;
    for (std::int64_t c = 0; c < chunks_; ++c) top = std::max(top, m_[at(head * chunks_ + c, r)]);
    T l = sink == minus_infinity<T> ? T(0) : std::exp(sink - top);
    for (std::int64_t c = 0; c < chunks_; ++c) {
      const std::size_t place = at(head * chunks_ + c, r);
      if (l_[place] == 0) continue;  // it saw nothing
      const T factor = std::exp(m_[place] - top);
      const T* O = O_.data() + static_cast<std::int64_t>(place) * rows_.dv;
      l += factor * l_[place];
      for (std::int64_t i = 0; i < rows_.dv; ++i) out[i] += factor * O[i];
    }
    for (std::int64_t i = 0; l != 0 && i < rows_.dv; ++i) out[i] /= l;
  }

  const CachedRows<T>& rows_;
  const std::int64_t queries_, per_head_, window_;
  const T* sinks_;
  const std::int64_t chunks_ = (rows_.length + decode_chunk - 1) / decode_chunk;
  std::vector<T> q_;                                                                   // (heads, per_head, d)
  std::vector<T> m_ = std::vector<T>(at(rows_.heads * chunks_, 0)), l_ = m_;           // (heads, chunks, per_head)
  std::vector<T> O_ = std::vector<T>(m_.size() * static_cast<std::size_t>(rows_.dv));  // (…, per_head, dv)
};

}  // namespace

template <class T> void decode_rows(const CachedRows<T>& rows, std::int64_t group, std::int64_t queries, const T* q,
                                    T scale, std::int64_t window, T* out, const T* sinks) {
  Decoder<T>(rows, group, queries, q, scale, window, sinks).run(out);
}

template void decode_rows(const CachedRows<float>&, std::int64_t, std::int64_t, const float*, float, std::int64_t,
                          float*, const float*);
template void decode_rows(const CachedRows<double>&, std::int64_t, std::int64_t, const double*, double, std::int64_t,
                          double*, const double*);

}  // namespace tapehead::kernels
