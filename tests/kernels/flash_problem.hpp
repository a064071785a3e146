#pragma once
// Attention problems of every kind for the tests of the fused kernel: arrays in any layout, the same problem
// solved the plain way, in double, with every weight stored, and by the kernel, and the distance between the
// two.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/dropout.hpp"
#include "kernels/flash.hpp"
#include "kernels/flash_masks.hpp"
#include "testing.hpp"

namespace flash_test {

using namespace tapehead::kernels;
using std::int64_t;

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();

inline std::uint64_t random_state = 1;
inline std::uint64_t next_random() {
  random_state += 0x9e3779b97f4a7c15u;
  std::uint64_t x = (random_state ^ (random_state >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
/// Uniform in (-1, 1), exact in float.
inline double next_uniform() {
  return static_cast<double>(static_cast<int64_t>(next_random() >> 40) - (1 << 23)) * 0x1p-23;
}

/// How a (B, H, L, n) array lies in memory.
enum class Layout { plain, heads_inside, transposed, reversed, gaps };
/// Axes (batch 8, head 4, row 2, element 1) along which an array repeats itself.
using Repeat = int;

/// An array of four axes as the test sees it, in any layout, with NaN in the gaps.
template <class T> struct Array {
  int64_t n[4] = {};
  HeadsView<T> view;
  std::vector<unsigned char> memory;

  Array() = default;
  Array(int64_t B, int64_t H, int64_t L, int64_t width, Layout layout = Layout::plain, Repeat repeat = 0) {
    const int64_t given[4] = {B, H, L, width};
    int64_t size[4], stride[4];
    for (int a = 0; a < 4; ++a) n[a] = given[a], size[a] = repeat >> (3 - a) & 1 ? 1 : given[a];
    int order[4] = {0, 1, 2, 3};  // outermost first
    if (layout == Layout::heads_inside) order[1] = 2, order[2] = 1;
    if (layout == Layout::transposed) order[2] = 3, order[3] = 2;
    int64_t total = 1;
    for (int k = 3; k >= 0; --k) {
      const int a = order[k];
      stride[a] = total, total *= size[a];
      if (layout == Layout::gaps) total = total + (k == 3 ? 3 : 1) * stride[a], total += k == 3 ? 0 : 5;
    }
    memory.assign(static_cast<std::size_t>(total + 64) * sizeof(T), 0);
    view.data = reinterpret_cast<T*>(memory.data());
    if constexpr (!std::is_same_v<T, bool>) std::fill_n(view.data, total + 64, std::numeric_limits<T>::quiet_NaN());
    if (layout == Layout::reversed)  // negative strides: from the last row and element backwards
      for (int a : {2, 3})
        if (size[a] > 0) view.data += stride[a] * (size[a] - 1), stride[a] = -stride[a];
    for (int a = 0; a < 4; ++a)
      if (repeat >> (3 - a) & 1) stride[a] = 0;
    view.batch = stride[0], view.head = stride[1], view.row = stride[2], view.element = stride[3];
  }
  Array(const Array&) = delete;
  Array(Array&&) = default;
  Array& operator=(Array&&) = default;

  T& operator()(int64_t b, int64_t h, int64_t i, int64_t c) { return view.at(b, h, i)[c * view.element]; }
  T operator()(int64_t b, int64_t h, int64_t i, int64_t c) const { return view.at(b, h, i)[c * view.element]; }
  template <class F> Array& fill(const F& f) {
    each([&](int64_t b, int64_t h, int64_t i, int64_t c) { (*this)(b, h, i, c) = static_cast<T>(f()); });
    return *this;
  }
  template <class F> void each(const F& f) const {
    for (int64_t b = 0; b < n[0]; ++b)
      for (int64_t h = 0; h < n[1]; ++h)
        for (int64_t i = 0; i < n[2]; ++i)
          for (int64_t c = 0; c < n[3]; ++c) f(b, h, i, c);
  }
  bool given() const { return view.data != nullptr; }
};

/// Whether dropout keeps one weight.
inline bool kept(std::uint64_t seed, int64_t b, int64_t h, int64_t i, int64_t j, double p) {
  bool keep = false;
  dropout_row(seed, p, b, h, i, j, 1, true, &keep);
  return keep;
}

/// A problem, and which extras it has. The arrays hold T; the reference reads them as double.
template <class T> struct Problem {
  int64_t B = 1, Hq = 1, Hkv = 1, Lq = 1, Lk = 1, d = 1, dv = 1;
  double scale = 0.5;
  Band band{};
  Dropout dropout{};
  Array<T> q, k, v, dout;
  std::vector<double> sinks;  // one logit a query head
  Array<bool> mask;
  Array<T> bias;
  Repeat bias_repeat = 0;
  std::vector<double> cap;           // a score function: cap[h] tanh(s / cap[h])
  int64_t block_q = 0, block_k = 0;  // 0: as the kernel has them

  Problem(int64_t B_, int64_t Hq_, int64_t Hkv_, int64_t Lq_, int64_t Lk_, int64_t d_, int64_t dv_,
          Layout layout = Layout::plain, double size = 1)
      : B(B_),
        Hq(Hq_),
        Hkv(Hkv_),
        Lq(Lq_),
        Lk(Lk_),
        d(d_),
        dv(dv_),
        q(B, Hq, Lq, d, layout),
        k(B, Hkv, Lk, d, layout),
        v(B, Hkv, Lk, dv, layout),
        dout(B, Hq, Lq, dv, layout) {
    for (auto* x : {&q, &k}) x->fill([&] { return size * 2 * next_uniform(); });
    for (auto* x : {&v, &dout}) x->fill(next_uniform);
  }
  void add_mask(Repeat repeat, double share = 0.6, Layout layout = Layout::plain) {
    mask = Array<bool>(B, Hq, Lq, Lk, layout, repeat);
    mask.fill([&] { return next_uniform() < 2 * share - 1; });
  }
  void add_bias(Repeat repeat, Layout layout = Layout::plain) {
    bias = Array<T>(B, Hq, Lq, Lk, layout, repeat);
    bias.fill(next_uniform);
    bias_repeat = repeat;
  }
};

template <class T> struct Result {
  Array<T> out, max, sum, lse, dq, dk, dv, dbias;
  std::vector<double> dcap, dsinks;
  double largest = 0;  // score
  TileCount forward, backward;
};

/// The plain way, one row after the other.
template <class T> Result<double> reference(const Problem<T>& p) {
  Result<double> r;
  r.out = Array<double>(p.B, p.Hq, p.Lq, p.dv), r.lse = Array<double>(p.B, p.Hq, p.Lq, 1);
  r.dq = Array<double>(p.B, p.Hq, p.Lq, p.d);
  r.dk = Array<double>(p.B, p.Hkv, p.Lk, p.d), r.dv = Array<double>(p.B, p.Hkv, p.Lk, p.dv);
  r.dbias = Array<double>(p.B, p.Hq, p.Lq, p.Lk, Layout::plain, p.bias.given() ? p.bias_repeat : 15);
  r.dcap.assign(p.cap.size(), 0), r.dsinks.assign(p.sinks.size(), 0);
  for (auto* x : {&r.out, &r.dq, &r.dk, &r.dv, &r.dbias}) x->fill([] { return 0; });
  const int64_t group = p.Hkv > 0 ? p.Hq / p.Hkv : 1, shift = p.band.bottom_right ? p.Lk - p.Lq : 0;
  std::vector<double> rows(static_cast<std::size_t>(5 * p.Lk));
  double *raw = rows.data(), *S = raw + p.Lk, *A = S + p.Lk, *keep = A + p.Lk, *dA = keep + p.Lk;
  const double* cap = p.cap.data();
  double* dcap = r.dcap.data();
  r.lse.each([&](int64_t b, int64_t h, int64_t i, int64_t) {
    const int64_t g = h / group;
    const double sink = p.sinks.empty() ? -inf : p.sinks[static_cast<std::size_t>(h)];
    double m = sink, l = 0, dot = 0;
    for (int64_t j = 0; j < p.Lk; ++j) {
      double s = 0;
      for (int64_t c = 0; c < p.d; ++c) s += double(p.q(b, h, i, c)) * double(p.k(b, g, j, c));
      raw[j] = s *= p.scale;
      if (!p.cap.empty()) s = cap[h] * std::tanh(s / cap[h]);
      if (p.bias.given()) s = p.bias(b, h, i, j) == T(-inf) ? -inf : s + double(p.bias(b, h, i, j));
      const bool near =
          (p.band.left < 0 || j >= i + shift - p.band.left) && (p.band.right < 0 || j <= i + shift + p.band.right);
      if (!near || (p.mask.given() && !p.mask(b, h, i, j))) s = -inf;
      S[j] = s, m = std::max(m, s);
      if (std::isfinite(s)) r.largest = std::max(r.largest, std::abs(s));
      keep[j] = 1;
      if (p.dropout.p > 0)
        keep[j] = (p.dropout.keep.data ? p.dropout.keep.at(b, h, i)[j * p.dropout.keep.element]
                                       : kept(p.dropout.seed, b, h, i, j, p.dropout.p))
                      ? 1 / (1 - p.dropout.p)
                      : 0;
    }
    for (int64_t j = 0; j < p.Lk; ++j) l += A[j] = S[j] == -inf ? 0 : std::exp(S[j] - m);
    if (sink != -inf) l += std::exp(sink - m);
    r.lse(b, h, i, 0) = l == 0 ? -inf : m + std::log(l);
    for (int64_t j = 0; j < p.Lk; ++j) {
      if (A[j] == 0) continue;
      A[j] /= l, dA[j] = 0;
      for (int64_t c = 0; c < p.dv; ++c) {
        const double go = double(p.dout(b, h, i, c));
        r.out(b, h, i, c) += A[j] * keep[j] * double(p.v(b, g, j, c));
        r.dv(b, g, j, c) += A[j] * keep[j] * go;
        dA[j] += keep[j] * go * double(p.v(b, g, j, c));
      }
      dot += A[j] * dA[j];
    }
    if (sink != -inf) r.dsinks[static_cast<std::size_t>(h)] -= std::exp(sink - m) / l * dot;
    for (int64_t j = 0; j < p.Lk; ++j) {
      if (A[j] == 0) continue;
      double ds = A[j] * (dA[j] - dot);
      r.dbias(b, h, i, j) += ds;
      if (!p.cap.empty()) {
        const double t = std::tanh(raw[j] / cap[h]);
        dcap[h] += ds * (t - raw[j] / cap[h] * (1 - t * t));
        ds *= 1 - t * t;
      }
      for (int64_t c = 0; c < p.d; ++c) {
        r.dq(b, h, i, c) += p.scale * ds * double(p.k(b, g, j, c));
        r.dk(b, g, j, c) += p.scale * ds * double(p.q(b, h, i, c));
      }
    }
  });
  return r;
}

/// The score function cap tanh(s / cap) with one learned cap a head.
template <class T> struct Cap final : ScoreEdit<T> {
  const std::vector<double>& cap;
  explicit Cap(const std::vector<double>& caps) : cap(caps) {
    this->reads_scores = true, this->sum_count = static_cast<int64_t>(cap.size());
  }
  void edit(const Tile& t, T* S) const override {
    const T c = T(cap[static_cast<std::size_t>(t.h)]);
    for (int64_t r = 0; r < t.rows; ++r)
      for (int64_t n = 0; n < t.cols; ++n) S[r * t.ld + n] = c * std::tanh(S[r * t.ld + n] / c);
  }
  void edit_gradient(const Tile& t, const T* S, T* dS, double* sums) const override {
    const T c = T(cap[static_cast<std::size_t>(t.h)]);
    for (int64_t r = 0; r < t.rows; ++r)
      for (int64_t n = 0; n < t.cols; ++n) {
        T& ds = dS[r * t.ld + n];
        if (ds == 0) continue;
        const T s = S[r * t.ld + n], y = std::tanh(s / c);
        sums[t.h] += double(ds * (y - s / c * (1 - y * y)));
        ds *= 1 - y * y;
      }
  }
};

/// The kernel on the same problem; outputs in a layout of their own.
template <class T> Result<T> fused(const Problem<T>& p, Layout layout = Layout::plain) {
  Result<T> r;
  r.out = Array<T>(p.B, p.Hq, p.Lq, p.dv, layout), r.lse = Array<T>(p.B, p.Hq, p.Lq, 1);
  r.max = Array<T>(p.B, p.Hq, p.Lq, 1, layout), r.sum = Array<T>(p.B, p.Hq, p.Lq, 1, layout);
  r.dq = Array<T>(p.B, p.Hq, p.Lq, p.d, layout);
  r.dk = Array<T>(p.B, p.Hkv, p.Lk, p.d, layout), r.dv = Array<T>(p.B, p.Hkv, p.Lk, p.dv, layout);
  const Repeat repeat = p.bias.given() ? p.bias_repeat : 15;
  r.dbias = Array<T>(p.B, p.Hq, p.Lq, p.Lk, Layout::plain, repeat);
  r.dcap.assign(p.cap.size(), 0), r.dsinks.assign(p.sinks.size(), 0);

  const Cap<T> cap(p.cap);
  std::array<int64_t, 4> sizes{p.B, p.Hq, p.Lq, p.Lk};
  for (int a = 0; a < 4; ++a)
    if (repeat >> (3 - a) & 1) sizes[static_cast<std::size_t>(a)] = 1;
  const bool direct = p.bias.given() && sizes == std::array{p.B, p.Hq, p.Lq, p.Lk};
  if (direct) r.dbias.fill([] { return 0; });
  std::vector<double> dbias(static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]));
  const BiasEdit<T> bias(p.bias.view.read(), sizes, p.Hkv > 0 ? p.Hq / p.Hkv : 1, direct ? r.dbias.view.data : nullptr);
  const MaskEdit<T> mask(p.mask.view.read());
  std::vector<const ScoreEdit<T>*> edits;
  std::vector<double*> totals;
  if (!p.cap.empty()) edits.push_back(&cap), totals.push_back(r.dcap.data());
  if (p.bias.given()) edits.push_back(&bias), totals.push_back(dbias.data());
  if (p.mask.given()) edits.push_back(&mask);

  FlashArgs<T> a;
  a.B = p.B, a.Hq = p.Hq, a.Hkv = p.Hkv, a.Lq = p.Lq, a.Lk = p.Lk, a.d = p.d, a.dv = p.dv;
  a.q = p.q.view.read(), a.k = p.k.view.read(), a.v = p.v.view.read();
  a.scale = T(p.scale), a.band = p.band, a.edits = edits, a.dropout = p.dropout;
  if (p.block_q > 0) a.block_q = p.block_q;
  if (p.block_k > 0) a.block_k = p.block_k;
  const std::vector<T> sinks(p.sinks.begin(), p.sinks.end());
  Array<T> dsinks(p.B, p.Hq, 1, 1);
  if (!sinks.empty()) a.sinks = {sinks.data(), 0, 1, 0, 0};
  const RowSums<T> rows{r.max.view, r.sum.view};
  r.forward = flash_forward(a, r.out.view, rows);
  r.lse.each([&](int64_t b, int64_t h, int64_t i, int64_t c) {
    const T m = r.max(b, h, i, c);
    r.lse(b, h, i, c) = m == T(inf) ? m : m + std::log(r.sum(b, h, i, c));
  });
  const FlashSaved<T> saved{r.out.view.read(), rows.read(), p.dout.view.read()};
  r.backward =
      flash_backward(a, saved, {r.dq.view, r.dk.view, r.dv.view, sinks.empty() ? HeadsView<T>{} : dsinks.view, totals});
  if (p.bias.given() && !direct) {
    const double* sums = dbias.data();
    for (int64_t b = 0; b < sizes[0]; ++b)
      for (int64_t h = 0; h < sizes[1]; ++h)
        for (int64_t i = 0; i < sizes[2]; ++i)
          for (int64_t j = 0; j < sizes[3]; ++j) r.dbias(b, h, i, j) = T(*sums++);
  }
  if (!sinks.empty())
    dsinks.each([&](int64_t b, int64_t h, int64_t, int64_t) {
      r.dsinks[static_cast<std::size_t>(h)] += double(dsinks(b, h, 0, 0));
    });
  return r;
}

/// The error of each result, as a multiple of eps (1 + largest score) max(1, largest value of that result): a
/// score is off by eps times its size, a weight by as much relative to itself, and everything else sums
/// weights.
template <class T> double worst_error(const Problem<T>& p, const Result<T>& r, const Result<double>& truth) {
  const double eps = std::numeric_limits<T>::epsilon() / 2;
  double worst = 0;
  const auto compare = [&](const Array<T>& x, const Array<double>& y) {
    double size = 1;
    y.each([&](int64_t b, int64_t h, int64_t i, int64_t c) {
      if (std::isfinite(y(b, h, i, c))) size = std::max(size, std::abs(y(b, h, i, c)));
    });
    y.each([&](int64_t b, int64_t h, int64_t i, int64_t c) {
      const double got = double(x(b, h, i, c)), want = y(b, h, i, c);
      if (got == want) return;
      const double e = std::abs(got - want) / (eps * (1 + truth.largest) * size);
      worst = std::isnan(e) ? inf : std::max(worst, e);
    });
  };
  compare(r.out, truth.out), compare(r.lse, truth.lse);
  compare(r.dq, truth.dq), compare(r.dk, truth.dk), compare(r.dv, truth.dv);
  if (p.bias.given()) compare(r.dbias, truth.dbias);
  for (std::size_t h = 0; h < p.cap.size(); ++h)
    worst = std::max(worst, std::abs(r.dcap[h] - truth.dcap[h]) /
                                (eps * (1 + truth.largest) * std::max(1.0, std::abs(truth.dcap[h]))));
  for (std::size_t h = 0; h < p.sinks.size(); ++h)
    worst = std::max(worst, std::abs(r.dsinks[h] - truth.dsinks[h]) /
                                (eps * (1 + truth.largest) * std::max(1.0, std::abs(truth.dsinks[h]))));
  return worst;
}

/// The stated bound, in those units. The largest error seen is 5.
inline constexpr double bound = 16;

template <class T> double error_of(const Problem<T>& p, Layout layout = Layout::plain) {
  return worst_error(p, fused(p, layout), reference(p));
}

template <class T> bool same_bits(const Array<T>& a, const Array<T>& b) {
  return std::memcmp(a.memory.data(), b.memory.data(), a.memory.size()) == 0;
}
template <class T> bool same_bits(const Result<T>& a, const Result<T>& b) {
  return same_bits(a.out, b.out) && same_bits(a.lse, b.lse) && same_bits(a.dq, b.dq) && same_bits(a.dk, b.dk) &&
         same_bits(a.dv, b.dv) && same_bits(a.dbias, b.dbias) && a.dcap == b.dcap && a.dsinks == b.dsinks;
}

}  // namespace flash_test
