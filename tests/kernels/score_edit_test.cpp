// What the fused kernel promises to an edit of scores, by edits that write down how they are called.
#include "tapehead/kernels/score_edit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/flash.hpp"
#include "testing.hpp"

using namespace tapehead::kernels;
using std::int64_t;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr int64_t B = 2, Hq = 4, Hkv = 2, Lq = 7, Lk = 10, d = 3, dv = 2;

HeadsView<double> view(std::vector<double>& x, int64_t heads, int64_t rows, int64_t width) {
  return {x.data(), heads * rows * width, rows * width, width, 1};
}
std::vector<double> wave(int64_t n, double phase) {
  std::vector<double> x;
  for (int64_t i = 0; i < n; ++i) x.push_back(std::sin(phase + 1.7 * static_cast<double>(i)));
  return x;
}

// Grouped attention in tiles of 3 x 4 with one edit, and its gradients.
struct Problem {
  std::vector<double> q = wave(B * Hq * Lq * d, 0), k = wave(B * Hkv * Lk * d, 1), v = wave(B * Hkv * Lk * dv, 2);
  std::vector<double> dout = wave(B * Hq * Lq * dv, 3), out = dout, max = std::vector<double>(B * Hq * Lq), sum = max;
  std::vector<double> dq = q;
  TileCount tiles;

  FlashArgs<double> args(const ScoreEdit<double>* const& edit) {
    FlashArgs<double> a;
    a.B = B, a.Hq = Hq, a.Hkv = Hkv, a.Lq = Lq, a.Lk = Lk, a.d = d, a.dv = dv;
    a.q = view(q, Hq, Lq, d).read(), a.k = view(k, Hkv, Lk, d).read(), a.v = view(v, Hkv, Lk, dv).read();
    a.scale = 0.5, a.block_q = 3, a.block_k = 4, a.edits = {&edit, 1};
    return a;
  }
  RowSums<double> rows() { return {view(max, Hq, Lq, 1), view(sum, Hq, Lq, 1)}; }
  // Σ out ⊙ dout
  double forward(const ScoreEdit<double>& edit) {
    const ScoreEdit<double>* one = &edit;
    tiles = flash_forward(args(one), view(out, Hq, Lq, dv), rows());
    double loss = 0;
    for (std::size_t i = 0; i < out.size(); ++i) loss += out[i] * dout[i];
    return loss;
  }
  void backward(const ScoreEdit<double>& edit, double* totals) {
    const ScoreEdit<double>* one = &edit;
    FlashGradients<double> to;
    to.q = view(dq, Hq, Lq, d), to.totals = {&totals, 1};
    flash_backward(args(one), {view(out, Hq, Lq, dv).read(), rows().read(), view(dout, Hq, Lq, dv).read()}, to);
  }
};

// Leaves scores alone and writes down which it was shown. Tiles are skipped, full and partial in turn, or all partial.
struct Watching : ScoreEdit<double> {
  explicit Watching(bool in_turn) : in_turn_(in_turn) {}
  TileKind kind(const Tile& t) const override {
    const int64_t turn = in_turn_ ? (t.i0 + t.j0 + t.h) % 3 : 1;
    if (turn == 0) {
      const std::lock_guard lock(mutex_);
      skipped.insert({t.b, t.h, t.i0, t.j0});
    }
    return turn == 0 ? TileKind::skip : turn == 1 ? TileKind::partial : TileKind::full;
  }
  void edit(const Tile& t, double* S) const override {
    const std::lock_guard lock(mutex_);
    only_partial &= kind_of(t) == TileKind::partial;
    for (int64_t r = 0; r < t.rows; ++r)
      for (int64_t c = 0; c < t.cols; ++c) {
        ++seen[static_cast<std::size_t>(((t.b * Hq + t.h) * Lq + t.i0 + r) * Lk + t.j0 + c)];
        finite &= std::isfinite(S[r * t.ld + c]);
      }
  }
  void edit_gradient(const Tile&, const double* S, double*, double*) const override {
    const std::lock_guard lock(mutex_);
    ++gradients, without_scores &= S == nullptr;
  }
  mutable std::set<std::tuple<int64_t, int64_t, int64_t, int64_t>> skipped;
  mutable std::vector<int> seen = std::vector<int>(B * Hq * Lq * Lk);
  mutable int gradients = 0;
  mutable bool only_partial = true, finite = true, without_scores = true;

 private:
  TileKind kind_of(const Tile& t) const {
    return !in_turn_ || (t.i0 + t.j0 + t.h) % 3 == 1 ? TileKind::partial : TileKind::full;
  }
  bool in_turn_;
  mutable std::mutex mutex_;
};

// s + w s² with one weight for each kv head, where key 0 is hidden.
struct Square : ScoreEdit<double> {
  Square() { reads_scores = true, sum_count = 1; }
  void edit(const Tile& t, double* S) const override {
    for (int64_t r = 0; r < t.rows; ++r)
      for (int64_t c = 0; c < t.cols; ++c) {
        double& s = S[r * t.ld + c];
        s = t.j0 + c == 0 ? -inf : s + weight(t) * s * s;
      }
  }
  void edit_gradient(const Tile& t, const double* S, double* dS, double* sums) const override {
    for (int64_t r = 0; r < t.rows; ++r)
      for (int64_t c = 0; c < t.cols; ++c) {
        const double s = S[r * t.ld + c];
        double& ds = dS[r * t.ld + c];
        if (ds == 0) continue;
        sums[0] += ds * s * s;
        ds *= 1 + 2 * weight(t) * s;
      }
  }
  int64_t first_sum(int64_t, int64_t kv_head) const override { return kv_head; }
  double weight(const Tile& t) const { return w[static_cast<std::size_t>(t.h / (Hq / Hkv))]; }
  std::vector<double> w{0.3, -0.8};
};

}  // namespace

TEST_CASE("score edit: the defaults see every tile, pass the gradient on, and keep no sums") {
  struct Plain : ScoreEdit<double> {
    void edit(const Tile&, double*) const override {}
  };
  const Plain plain;
  const Tile tile{0, 0, 0, 1, 0, 2, 2};
  CHECK(plain.kind(tile) == TileKind::partial);
  double dS[] = {0.25, -3};
  plain.edit_gradient(tile, nullptr, dS, nullptr);
  CHECK(dS[0] == 0.25);
  CHECK(dS[1] == -3);
  CHECK(!plain.reads_scores);
  CHECK(plain.sum_count == 0);
  CHECK(plain.first_sum(1, 1) == 0);
}

TEST_CASE("score edit: each score is shown once, finite, with its own batch, head, query and key") {
  Problem p;
  const Watching edit(false);
  p.forward(edit);
  CHECK(edit.finite);
  CHECK(edit.seen == std::vector<int>(edit.seen.size(), 1));
  CHECK(p.tiles.total == B * Hq * 3 * 3);
  CHECK(p.tiles.skipped == 0);
  double totals = 0;
  p.backward(edit, &totals);
  CHECK(edit.gradients == B * Hq * 3 * 3);
  CHECK(edit.without_scores);  // as it does not ask for them
  CHECK(totals == 0);
}

TEST_CASE("score edit: of skipped and of full tiles nothing is shown, and the skipped ones are counted") {
  Problem p;
  const Watching edit(true);
  p.forward(edit);
  CHECK(edit.only_partial);
  CHECK(p.tiles.total == B * Hq * 3 * 3);
  CHECK(p.tiles.skipped == static_cast<int64_t>(edit.skipped.size()));
  CHECK(*std::max_element(edit.seen.begin(), edit.seen.end()) == 1);
}

TEST_CASE("score edit: -inf hides a key, and NaN in a hidden key stays out of the result and the gradients") {
  Problem p;
  const Square edit;
  const double loss = p.forward(edit);
  for (int64_t head = 0; head < B * Hkv; ++head)
    for (int64_t c = 0; c < d; ++c) p.k[static_cast<std::size_t>(head * Lk * d + c)] = std::nan("");
  CHECK(p.forward(edit) == loss);
  double totals[Hkv] = {};
  p.backward(edit, totals);
  CHECK(std::isfinite(totals[0] + totals[1]));
}

TEST_CASE("score edit: gradients of scores and of the edit's own weights beside central differences") {
  Problem p;
  Square edit;
  const double h = 1e-5;
  const auto slope = [&](double& x) {
    const double before = x;
    x = before + h;
    const double above = p.forward(edit);
    x = before - h;
    const double below = p.forward(edit);
    x = before;
    return (above - below) / (2 * h);
  };
  std::vector<double> dw, dq;
  for (double& w : edit.w) dw.push_back(slope(w));
  for (double& q : p.q) dq.push_back(slope(q));
  p.forward(edit);
  double totals[Hkv] = {};
  p.backward(edit, totals);
  for (std::size_t n = 0; n < dw.size(); ++n) CHECK(totals[n] == doctest::Approx(dw[n]).epsilon(1e-7));
  for (std::size_t i = 0; i < dq.size(); ++i) CHECK(std::abs(p.dq[i] - dq[i]) < 1e-8);
}
