// The fused attention kernel on inputs whose answer is known: finite differences, rows without keys,
// infinities and NaN, saturation, tiles that are skipped.
#include "kernels/flash_problem.hpp"

using namespace flash_test;

namespace {

/// One head of given numbers: q (Lq, d), k (Lk, d), v (Lk, dv), everything else off.
Problem<double> one_head(int64_t d, int64_t dv, const std::vector<double>& q, const std::vector<double>& k,
                         const std::vector<double>& v, double scale = 1) {
  const auto rows = [](const std::vector<double>& x, int64_t width) { return static_cast<int64_t>(x.size()) / width; };
  Problem<double> p(1, 1, 1, rows(q, d), rows(k, d), d, dv);
  p.scale = scale;
  std::copy(q.begin(), q.end(), p.q.view.data), std::copy(k.begin(), k.end(), p.k.view.data);
  std::copy(v.begin(), v.end(), p.v.view.data);
  return p;
}
/// The same with scores of zero: weights are uniform over the visible keys, values one number a key.
Problem<double> zero_scores(int64_t Lq, const std::vector<double>& v) {
  return one_head(1, 1, std::vector<double>(static_cast<std::size_t>(Lq), 0.0), std::vector<double>(v.size(), 0.0), v);
}
void set_mask(Problem<double>& p, const std::vector<int>& keep, Repeat repeat = 0) {
  p.mask = Array<bool>(p.B, p.Hq, p.Lq, p.Lk, Layout::plain, repeat);
  std::copy(keep.begin(), keep.end(), p.mask.view.data);
}
void set_bias(Problem<double>& p, const std::vector<double>& bias, Repeat repeat = 0) {
  p.bias = Array<double>(p.B, p.Hq, p.Lq, p.Lk, Layout::plain, repeat), p.bias_repeat = repeat;
  std::copy(bias.begin(), bias.end(), p.bias.view.data);
}
/// All numbers of an array, in order, equal to those given to the seven digits they have.
bool reads(const Array<double>& x, const std::vector<double>& want) {
  std::size_t n = 0;
  bool good = true;
  x.each([&](int64_t b, int64_t h, int64_t i, int64_t c) {
    const double got = x(b, h, i, c);
    const bool same = n < want.size() &&
                      (std::isfinite(want[n]) ? std::abs(got - want[n]) <= 5.1e-8 * std::max(1.0, std::abs(want[n]))
                       : std::isnan(want[n])  ? std::isnan(got)
                                              : got == want[n]);
    if (!same) MESSAGE("element ", n, " is ", got);
    good = good && same, ++n;
  });
  return good && n == want.size();
}

}  // namespace

TEST_CASE("flash: gradients are those of finite differences") {
  Problem<double> p(1, 2, 1, 7, 9, 3, 2);
  p.cap = {1.5, 0.8}, p.band = {6, 1, true};
  p.add_mask(0b1000, 0.8), p.add_bias(0b0010), p.sinks = {0.3, -1};
  p.dropout = {0.3, 17, {}};
  p.block_q = 4, p.block_k = 4;
  const auto r = fused(p);
  const auto loss = [&] {
    const auto x = fused(p);
    double sum = 0;
    x.out.each([&](int64_t b, int64_t h, int64_t i, int64_t c) { sum += x.out(b, h, i, c) * p.dout(b, h, i, c); });
    return sum;
  };
  const double step = 1e-5;  // error about step² + eps / step, of numbers near 1
  const auto slope = [&](double& x) {
    const double at = x;
    x = at + step;
    const double up = loss();
    x = at - step;
    const double down = loss();
    x = at;
    return (up - down) / (2 * step);
  };
  for (auto [x, dx] : {std::pair{&p.q, &r.dq}, {&p.k, &r.dk}, {&p.v, &r.dv}, {&p.bias, &r.dbias}})
    x->each([&, x = x, dx = dx](int64_t b, int64_t h, int64_t i, int64_t c) {
      CHECK(std::abs(slope((*x)(b, h, i, c)) - (*dx)(b, h, i, c)) < 1e-8);
    });
  for (std::size_t h = 0; h < p.cap.size(); ++h) {
    CHECK(std::abs(slope(p.cap[h]) - r.dcap[h]) < 1e-8);
    CHECK(std::abs(slope(p.sinks[h]) - r.dsinks[h]) < 1e-8);
  }
}

TEST_CASE("flash: required answers") {
  {  // a row without keys, by mask and by bias; gradients of the other row alone
    auto p = one_head(2, 2, {1, 0, 0, 1}, {1, 0, 0, 1}, {1, 2, 3, 4}, 1 / std::sqrt(2.0));
    p.dout.fill([] { return 0; });
    p.dout(0, 0, 1, 0) = p.dout(0, 0, 1, 1) = 1;
    for (bool by_mask : {true, false}) {
      p.mask = {}, p.bias = {};
      by_mask ? set_mask(p, {0, 0, 1, 1}) : set_bias(p, {-inf, -inf, 0, 0});
      const auto r = fused(p);
      CHECK(reads(r.out, {0, 0, 2.3395231, 3.3395231}));
      CHECK(reads(r.lse, {-inf, 1.1079403}));
      CHECK(reads(r.dq, {0, 0, -0.6255944, 0.6255944}));
      CHECK(reads(r.dk, {0, -0.6255944, 0, 0.6255944}));
      CHECK(reads(r.dv, {0.3302385, 0.3302385, 0.6697616, 0.6697616}));
    }
  }
  {  // NaN and infinity in a masked key: its score is selected away
    for (double bad : {quiet_nan, inf, -inf}) {
      auto p = one_head(1, 1, {1}, {1, bad}, {5, 7});
      set_mask(p, {1, 0});
      CHECK(reads(fused(p).out, {5}));
      CHECK(reads(fused(p).dv, {p.dout(0, 0, 0, 0), 0}));
      p.mask = {};
      set_bias(p, {0, -inf});
      CHECK(reads(fused(p).out, {5}));
      p.bias = {}, p.band.right = 0;
      CHECK(reads(fused(p).out, {5}));
    }
  }
  {  // a boolean mask shows what is true; a float mask is added
    auto p = zero_scores(1, {1, 3});
    set_mask(p, {1, 0});
    CHECK(reads(fused(p).out, {1}));
    p.mask = {};
    set_bias(p, {1, 0});
    CHECK(reads(fused(p).out, {1.5378828}));
  }
  {  // mask and causal: both hold
    auto p = zero_scores(3, {1, 2, 3});
    set_mask(p, {1, 0, 1}, 0b0010), p.band.right = 0;
    CHECK(reads(fused(p).out, {1, 1, 2}));
  }
  {  // causal, aligned at either corner
    auto wide = zero_scores(2, {1, 2, 3, 4, 5}), tall = zero_scores(5, {1, 2});
    wide.band.right = tall.band.right = 0;
    CHECK(reads(fused(wide).out, {1, 1.5}));
    CHECK(reads(fused(tall).out, {1, 1.5, 1.5, 1.5, 1.5}));
    wide.band.bottom_right = tall.band.bottom_right = true;
    CHECK(reads(fused(wide).out, {2.5, 3}));
    CHECK(reads(fused(tall).out, {0, 0, 0, 1, 1.5}));
  }
  {  // an explicit scale is taken as it is
    CHECK(reads(fused(one_head(1, 1, {1}, {1, 2}, {1, 3}, 1)).out, {2.4621172}));
    CHECK(reads(fused(one_head(1, 1, {1}, {1, 2}, {1, 3}, 0)).out, {2}));
    CHECK(reads(fused(one_head(1, 1, {1}, {1, 2}, {1, 3}, -1)).out, {1.5378828}));
  }
  {  // consecutive query heads share a kv head
    Problem<double> p(1, 4, 2, 1, 3, 1, 1);
    p.q.fill([] { return 0; });
    p.v.each([&](int64_t b, int64_t h, int64_t j, int64_t c) { p.v(b, h, j, c) = double(h + 1); });
    CHECK(reads(fused(p).out, {1, 1, 2, 2}));
  }
  {  // V as the transposed view of an (L, H) array
    Problem<double> p(1, 2, 2, 1, 2, 1, 1, Layout::heads_inside);
    p.q.fill([] { return 0; });
    const double memory[] = {1, 10, 2, 20};
    std::copy(memory, memory + 4, p.v.view.data);
    CHECK(reads(fused(p).out, {1.5, 15}));
  }
  {  // nothing to attend to, nobody to attend, no width
    Problem<double> no_keys(1, 2, 2, 2, 0, 4, 3), no_queries(1, 2, 2, 0, 5, 4, 3), no_width(1, 1, 1, 2, 4, 0, 0);
    CHECK(reads(fused(no_keys).out, std::vector<double>(12, 0.0)));
    CHECK(reads(fused(no_keys).lse, std::vector<double>(4, -inf)));
    CHECK(reads(fused(no_keys).dq, std::vector<double>(16, 0.0)));
    CHECK(reads(fused(no_queries).dk, std::vector<double>(40, 0.0)));
    CHECK(reads(fused(no_queries).dv, std::vector<double>(30, 0.0)));
    CHECK(reads(fused(no_width).lse, {std::log(4.0), std::log(4.0)}));
    CHECK(reads(fused(Problem<double>(0, 1, 1, 3, 3, 2, 2)).out, {}));
    CHECK(reads(fused(Problem<double>(1, 0, 0, 3, 3, 2, 2)).out, {}));
  }
  {  // a window counts the current token
    auto p = zero_scores(4, {1, 2, 3, 4});
    p.band = {1, 0, false};
    CHECK(reads(fused(p).out, {1, 1.5, 2.5, 3.5}));
  }
  for (int64_t block : {1, 2, 3, 4, 5, 64}) {  // the first tiles hold nothing, and what comes is far below zero
    auto p = one_head(1, 1, {1}, {0, 0, -200, -201}, {7, 7, 1, 3});
    p.block_q = p.block_k = block;
    set_bias(p, {-inf, -inf, 0, 0});
    CHECK(reads(fused(p).out, {1.5378828}));
    CHECK(reads(fused(p).lse, {-199.6867383}));
    auto q = zero_scores(5, {1, 2, 3, 4, 5});
    std::vector<double> distance;
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 5; ++j) distance.push_back(i - j);
    q.block_q = q.block_k = block, q.band.right = 0;
    set_bias(q, distance);
    CHECK(reads(fused(q).out, {1, 1.2689414, 1.4247896, 1.5073473, 1.5480584}));
  }
  {  // a learned bias of shape (1, 1, 1, 3)
    Problem<double> p(2, 2, 2, 2, 3, 1, 1);
    p.q.fill([] { return 0; });
    p.dout.fill([] { return 1; });
    p.v.each([&](int64_t b, int64_t h, int64_t j, int64_t c) { p.v(b, h, j, c) = double(j); });
    p.add_bias(0b1110);
    p.bias.fill([] { return 0; });
    const auto r = fused(p);
    CHECK(std::abs(r.dbias(0, 0, 0, 0) + 8.0 / 3) < 1e-14);
    CHECK(std::abs(r.dbias(1, 1, 1, 1)) < 1e-14);
    CHECK(std::abs(r.dbias(0, 0, 0, 2) - 8.0 / 3) < 1e-14);
  }
}

TEST_CASE_TEMPLATE("flash: scores of 1e4, saturated rows, infinities", T, float, double) {
  for (double size : {30.0, 100.0}) {  // scores up to about 4 d size²  scale
    Problem<T> p(1, 2, 2, 40, 70, 4, 3, Layout::plain, size);
    p.band.right = 8;
    const auto truth = reference(p);
    CHECK(truth.largest > (size > 50 ? 1e4 : 1e3));
    CHECK(worst_error(p, fused(p), truth) < bound);
  }
  {  // one key wins by far: the output is its value to the bit, and nothing flows to q and k
    Problem<T> p(1, 1, 1, 3, 50, 1, 4);
    p.scale = 1, p.q.fill([] { return 1; });
    p.k.each([&](int64_t, int64_t, int64_t j, int64_t) { p.k(0, 0, j, 0) = j == 20 ? T(5000) : T(-5000); });
    const auto r = fused(p);
    r.out.each([&](int64_t, int64_t, int64_t i, int64_t c) { CHECK(r.out(0, 0, i, c) == p.v(0, 0, 20, c)); });
    r.dq.each([&](int64_t, int64_t, int64_t i, int64_t c) {
      CHECK(std::abs(r.dq(0, 0, i, c)) <= 5000 * 4 * std::numeric_limits<T>::epsilon());
    });
  }
  {  // +inf: inf / inf, where softmax says so, and in no other row
    Problem<T> p(1, 1, 1, 3, 70, 2, 2);
    p.add_bias(0);
    p.bias(0, 0, 1, 66) = T(inf);
    const auto r = fused(p);
    CHECK(std::isfinite(r.out(0, 0, 0, 0)));
    CHECK(std::isfinite(r.dq(0, 0, 2, 0)));
    CHECK(std::isnan(r.out(0, 0, 1, 0)));
    CHECK(r.lse(0, 0, 1, 0) == T(inf));
    CHECK(std::isnan(r.dq(0, 0, 1, 0)));
    CHECK(std::isnan(r.dv(0, 0, 5, 0)));
  }
  {  // NaN spreads over its row and no other; a row of nothing but NaN is not a row without keys
    Problem<T> p(1, 1, 1, 3, 70, 2, 2);
    p.add_bias(0);
    p.bias(0, 0, 1, 3) = T(quiet_nan);
    for (int64_t j = 0; j < 70; ++j) p.bias(0, 0, 2, j) = T(quiet_nan);
    const auto r = fused(p);
    CHECK(std::isfinite(r.out(0, 0, 0, 0)));
    for (int64_t i : {1, 2}) {
      CHECK(std::isnan(r.out(0, 0, i, 0)));
      CHECK(std::isnan(r.lse(0, 0, i, 0)));
      CHECK(std::isnan(r.dq(0, 0, i, 0)));
    }
  }
  {  // -inf, in one place and in a whole row
    Problem<T> p(1, 1, 1, 3, 70, 2, 2);
    p.add_bias(0);
    p.bias(0, 0, 1, 10) = T(-inf);
    for (int64_t j = 0; j < 70; ++j) p.bias(0, 0, 2, j) = T(-inf);
    const auto r = fused(p);
    CHECK(worst_error(p, r, reference(p)) < bound);
    CHECK(r.dbias(0, 0, 1, 10) == 0);
    CHECK(r.out(0, 0, 2, 1) == 0);
    CHECK(r.lse(0, 0, 2, 0) == T(-inf));
    CHECK(r.dq(0, 0, 2, 1) == 0);
    CHECK(r.dbias(0, 0, 2, 9) == 0);
  }
  {  // a masked value so large that dO · v overflows: its dS is selected away
    Problem<T> p(1, 1, 1, 2, 5, 2, 2);
    p.add_mask(0, 1.0);
    p.mask(0, 0, 0, 3) = p.mask(0, 0, 1, 3) = false;
    p.v(0, 0, 3, 0) = std::numeric_limits<T>::max(), p.dout(0, 0, 0, 0) = 100;
    const auto large = fused(p);
    p.v(0, 0, 3, 0) = 0;
    CHECK(same_bits(large.dq, fused(p).dq));
    CHECK(same_bits(large.dk, fused(p).dk));
  }
}

TEST_CASE("flash: tiles that are skipped") {
  Problem<double> p(1, 2, 1, 100, 100, 2, 2);
  p.block_q = p.block_k = 10;
  CHECK(fused(p).forward.total == 200);
  CHECK(fused(p).forward.skipped == 0);
  p.band.right = 0;
  CHECK(fused(p).forward.skipped == 2 * 45);
  CHECK(fused(p).backward.skipped == 2 * 45);
  CHECK(fused(p).backward.total == 200);
  p.band = {};
  p.add_mask(0b1100);
  p.mask.each([&](int64_t b, int64_t h, int64_t i, int64_t j) { p.mask(b, h, i, j) = i / 20 == j / 20; });  // documents
  CHECK(fused(p).forward.skipped == 2 * (100 - 20));
  CHECK(fused(p).backward.skipped == 2 * (100 - 20));
  CHECK(error_of(p) < bound);
  p.mask = {};
  p.add_bias(0b1100);
  p.bias.each([&](int64_t b, int64_t h, int64_t i, int64_t j) { p.bias(b, h, i, j) = i / 20 == j / 20 ? 0.1 : -inf; });
  CHECK(fused(p).forward.skipped == 2 * (100 - 20));
  CHECK(error_of(p) < bound);
  // What is skipped is not read: NaN in the values of other documents stays there.
  Problem<double> two(1, 1, 1, 40, 40, 2, 2);
  two.block_q = two.block_k = 10;
  two.add_mask(0b1100);
  two.mask.each([&](int64_t b, int64_t h, int64_t i, int64_t j) { two.mask(b, h, i, j) = i / 20 == j / 20; });
  const auto before = fused(two);
  for (int64_t j = 20; j < 40; ++j) two.v(0, 0, j, 0) = two.k(0, 0, j, 0) = quiet_nan;
  const auto after = fused(two);
  for (int64_t i = 0; i < 20; ++i) CHECK(before.out(0, 0, i, 0) == after.out(0, 0, i, 0));
}

TEST_CASE("flash: only the gradients that are asked for, and their bits do not depend on the others") {
  Problem<float> p(1, 4, 2, 50, 60, 20, 9);
  const auto all = fused(p);
  FlashArgs<float> a;
  a.Hq = 4, a.Hkv = 2, a.Lq = 50, a.Lk = 60, a.d = 20, a.dv = 9, a.scale = 0.5f;
  a.q = p.q.view.read(), a.k = p.k.view.read(), a.v = p.v.view.read();
  const FlashSaved<float> saved{all.out.view.read(), {all.max.view.read(), all.sum.view.read()}, p.dout.view.read()};
  for (int which = 0; which < 8; ++which) {
    Result<float> r;
    r.dq = Array<float>(1, 4, 50, 20), r.dk = Array<float>(1, 2, 60, 20), r.dv = Array<float>(1, 2, 60, 9);
    const HeadsView<float> none{};
    flash_backward(a, saved,
                   {which & 1 ? r.dq.view : none, which & 2 ? r.dk.view : none, which & 4 ? r.dv.view : none});
    if (which & 1) CHECK(same_bits(r.dq, all.dq));
    if (which & 2) CHECK(same_bits(r.dk, all.dk));
    if (which & 4) CHECK(same_bits(r.dv, all.dv));
  }
  Array<float> out(1, 4, 50, 9);
  flash_forward(a, out.view, {});  // no row sums either
  CHECK(same_bits(out, all.out));
}

TEST_CASE("flash: an edit that throws is heard in the calling thread") {
  Problem<double> p(2, 4, 4, 100, 100, 32, 32);
  FlashArgs<double> a;
  a.B = 2, a.Hq = a.Hkv = 4, a.Lq = a.Lk = 100, a.d = a.dv = 32;
  a.q = p.q.view.read(), a.k = p.k.view.read(), a.v = p.v.view.read();
  struct Throws final : ScoreEdit<double> {
    void edit(const Tile& t, double*) const override {
      if (t.h == 2) throw tapehead::ValueError("edit");
    }
  };
  const Throws edit;
  const ScoreEdit<double>* const edits[] = {&edit};
  a.edits = edits;
  Array<double> out(2, 4, 100, 32);
  CHECK(testing::message<tapehead::ValueError>([&] { flash_forward(a, out.view, {}); }) == "edit"sv);
}

TEST_CASE_TEMPLATE("flash: scores of any finite size keep their differences, forward and backward", T, float, double) {
  const T largest = std::numeric_limits<T>::max();
  for (const T level : {T(1e7), T(-1e7), T(-1e9), T(1e10), T(1e20), T(-1e20), largest, -largest})
    for (int64_t blocks : {0, 1}) {
      CAPTURE(level);
      Problem<T> p(1, 1, 1, 1, 2, 1, 1);
      p.block_k = blocks, p.q.fill([] { return 0; }), p.k.fill([] { return 0; }), p.dout.fill([] { return 1; });
      p.v(0, 0, 0, 0) = 1, p.v(0, 0, 1, 0) = 3;
      p.add_bias(0), p.bias.fill([&] { return level; });
      const auto r = fused(p);
      CHECK(r.out(0, 0, 0, 0) == 2);
      CHECK(r.dv(0, 0, 0, 0) == T(0.5));
      CHECK(r.dv(0, 0, 1, 0) == T(0.5));
      CHECK(r.dbias(0, 0, 0, 0) == T(-0.5));
      p.bias(0, 0, 0, 1) = -level;  // one key alone; the difference may overflow
      const auto one = fused(p);
      CHECK(one.out(0, 0, 0, 0) == (level > 0 ? 1 : 3));
      CHECK(one.dv(0, 0, 0, 0) == (level > 0 ? 1 : 0));
      CHECK(one.dbias(0, 0, 0, 0) == 0);
    }
  // The same from products of queries and keys, whose rounding both passes must share: two keys of one score.
  Problem<T> p(1, 1, 1, 3, 2, 3, 1);
  p.scale = 0.3, p.q.fill([] { return 1234.567 * next_uniform(); }), p.dout.fill([] { return 1; });
  for (int64_t c = 0; c < 3; ++c) p.k(0, 0, 1, c) = p.k(0, 0, 0, c) = T(123456.7 * next_uniform());
  const auto r = fused(p);
  for (int64_t j : {0, 1}) CHECK(r.dv(0, 0, j, 0) == T(1.5));
}

TEST_CASE_TEMPLATE("flash: any NaN among infinities gives NaN, the log-sum-exp too", T, float, double) {
  const double rows[][3] = {{quiet_nan, quiet_nan, quiet_nan},
                            {-inf, quiet_nan, -inf},
                            {inf, quiet_nan, 0},
                            {quiet_nan, inf, 0},
                            {0, inf, quiet_nan},
                            {inf, 0, quiet_nan}};
  for (const auto& row : rows)
    for (int64_t blocks : {0, 1, 2}) {
      Problem<T> p(1, 1, 1, 2, 3, 1, 1);
      p.block_k = blocks, p.add_bias(0);
      for (int64_t j = 0; j < 3; ++j) p.bias(0, 0, 1, j) = T(row[j]);
      const auto r = fused(p);
      CHECK(std::isnan(r.lse(0, 0, 1, 0)));
      CHECK(std::isnan(r.out(0, 0, 1, 0)));
      CHECK(std::isnan(r.dq(0, 0, 1, 0)));
      CHECK(std::isfinite(r.lse(0, 0, 0, 0)));
      CHECK(std::isfinite(r.out(0, 0, 0, 0)));
    }
}

TEST_CASE_TEMPLATE("flash: every operand empty in turn, with every edit", T, float, double) {
  for (int64_t B : {0, 1})
    for (int64_t H : {0, 2})
      for (int64_t Lq : {0, 3})
        for (int64_t Lk : {0, 4})
          for (int64_t d : {0, 2})
            for (int64_t dv : {0, 3})
              for (Repeat repeat : {0b0000, 0b1111, 0b0010, 0b0101}) {
                Problem<T> p(B, H, H, Lq, Lk, d, dv);
                p.add_bias(repeat), p.add_mask(repeat, 1.0), p.dropout = {0.5, 1, {}};
                p.sinks.assign(static_cast<std::size_t>(H), 0.5), p.cap.assign(static_cast<std::size_t>(H), 2);
                CHECK(error_of(p) < bound);
              }
}
