// The fused attention kernel against the plain way: sizes, layouts, bands, masks, biases, score functions,
// dropout, tile sizes, threads, packed batches; forward and every gradient.
#include "kernels/flash_problem.hpp"
#include "threads.hpp"

using namespace flash_test;

#define FLOATS float, double

TEST_CASE_TEMPLATE("flash: odd sizes, forward and backward", T, FLOATS) {
  const int64_t lengths[] = {1, 2, 3, 7, 16, 17, 63, 65, 96, 130, 200};
  int n = 0;
  for (int64_t Lq : lengths)
    for (int64_t Lk : lengths) {
      const int64_t d = 1 + (n * 7) % 40, dv = 1 + (n * 11) % 37;
      Problem<T> p(1 + n % 2, 2, 2, Lq, Lk, d, dv);
      p.scale = 1 / std::sqrt(double(d));
      if (n % 3 == 1) p.band.right = 0;
      if (n++ % 3 == 2) p.band.right = 0, p.band.bottom_right = true;
      CAPTURE(Lq);
      CAPTURE(Lk);
      CAPTURE(d);
      CAPTURE(dv);
      CHECK(error_of(p) < bound);
    }
  for (int64_t d : {16, 32, 64, 80, 128}) {  // whole vectors: rows are used where they lie
    Problem<T> p(2, 2, 2, 70, 90, d, d);
    p.scale = 1 / std::sqrt(double(d));
    CHECK(error_of(p) < bound);
  }
}

TEST_CASE_TEMPLATE("flash: long and thin", T, FLOATS) {
  for (auto [Lq, Lk] : {std::pair<int64_t, int64_t>{1, 500}, {500, 1}, {3, 5000}, {2000, 2}, {1, 32768}, {700, 700}}) {
    Problem<T> p(1, 1, 1, Lq, Lk, 5, 3);
    CAPTURE(p.Lq);
    CAPTURE(p.Lk);
    CHECK(error_of(p) < bound);
  }
}

TEST_CASE("flash: a causal window over 32768 tokens") {
  const int64_t L = 32768, window = 1000;
  Problem<float> p(1, 1, 1, L, L, 2, 1);
  p.band = {window - 1, 0, false};
  const auto r = fused(p);
  for (int64_t i : {int64_t(0), int64_t(95), int64_t(20000), L - 1}) {  // some rows of the truth, which is slow
    double sum = 0, out = 0;
    for (int64_t j = std::max<int64_t>(0, i - window + 1); j <= i; ++j) {
      double s = 0;
      for (int64_t c = 0; c < 2; ++c) s += double(p.q(0, 0, i, c)) * double(p.k(0, 0, j, c));
      sum += std::exp(s * p.scale), out += std::exp(s * p.scale) * double(p.v(0, 0, j, 0));
    }
    CHECK(std::abs(double(r.out(0, 0, i, 0)) - out / sum) < 1e-6);
    CHECK(std::abs(double(r.lse(0, 0, i, 0)) - std::log(sum)) < 1e-6 * std::max(1.0, std::log(sum)));
  }
}

TEST_CASE_TEMPLATE("flash: any layout of inputs and outputs", T, FLOATS) {
  const Layout layouts[] = {Layout::plain, Layout::heads_inside, Layout::transposed, Layout::reversed, Layout::gaps};
  for (Layout in : layouts)
    for (Layout out : layouts)
      for (int64_t d : {64, 7}) {
        random_state = 5;  // the same numbers in each layout …
        Problem<T> p(2, 4, 2, 19, 40, d, d, in);
        p.band.right = 3, p.band.left = 12;
        const auto r = fused(p, out);
        CHECK(worst_error(p, r, reference(p)) < bound);
        random_state = 5;
        Problem<T> plain(2, 4, 2, 19, 40, d, d);
        plain.band = p.band;
        const auto same = fused(plain);  // … and the same bits
        bool equal = true;
        for (auto [a, b] : {std::pair{&r.out, &same.out},
                            {&r.dq, &same.dq},
                            {&r.dk, &same.dk},
                            {&r.dv, &same.dv},
                            {&r.max, &same.max},
                            {&r.sum, &same.sum}})
          b->each([&, x = a, y = b](int64_t i, int64_t j, int64_t k, int64_t c) {
            equal = equal && (*x)(i, j, k, c) == (*y)(i, j, k, c);
          });
        CHECK(equal);
      }
  for (Repeat repeat = 1; repeat < 16; ++repeat) {  // expanded inputs
    Problem<T> p(2, 2, 2, 20, 33, 6, 5);
    for (auto* x : {&p.q, &p.k, &p.v, &p.dout}) {
      *x = Array<T>(x->n[0], x->n[1], x->n[2], x->n[3], Layout::plain, repeat);
      x->fill(next_uniform);
    }
    CAPTURE(repeat);
    CHECK(error_of(p) < bound);
  }
}

TEST_CASE_TEMPLATE("flash: bands", T, FLOATS) {
  for (int64_t left : {-1, 0, 1, 5, 63, 200})
    for (int64_t right : {-1, 0, 1, 70})
      for (bool bottom_right : {false, true})
        for (auto [Lq, Lk] : {std::pair<int64_t, int64_t>{130, 130}, {20, 150}, {150, 20}}) {
          Problem<T> p(1, 1, 1, Lq, Lk, 3, 4);
          p.band = {left, right, bottom_right};
          p.block_q = 1 + static_cast<int64_t>(next_random() % 100),
          p.block_k = 1 + static_cast<int64_t>(next_random() % 70);
          CAPTURE(left);
          CAPTURE(right);
          CAPTURE(bottom_right);
          CAPTURE(p.Lq);
          CHECK(error_of(p) < bound);
        }
}

TEST_CASE_TEMPLATE("flash: masks and biases of every broadcast shape", T, FLOATS) {
  for (Repeat mask = 0; mask < 16; ++mask)
    for (Repeat bias = 0; bias < 16; ++bias) {
      Problem<T> p(2, 4, 2, 23, 37, 4, 3);
      p.block_q = 16, p.block_k = 8;
      if (mask != 15) p.add_mask(mask, 0.7, mask % 2 ? Layout::plain : Layout::transposed);
      p.add_bias(bias, bias % 3 == 2 ? Layout::transposed : Layout::plain);
      if (bias % 4 == 1) p.band.right = 2;
      CAPTURE(mask);
      CAPTURE(bias);
      CHECK(error_of(p) < bound);
    }
}

TEST_CASE_TEMPLATE("flash: query heads share kv heads", T, FLOATS) {
  for (auto [Hq, Hkv] : {std::pair<int64_t, int64_t>{8, 2}, {3, 1}, {6, 3}, {4, 4}}) {
    Problem<T> p(2, Hq, Hkv, 33, 50, 8, 8);
    p.band.right = 0, p.band.bottom_right = true;
    p.add_bias(0b0010);
    CHECK(error_of(p) < bound);
  }
}

TEST_CASE_TEMPLATE("flash: a score function with learned constants", T, FLOATS) {
  Problem<T> p(2, 4, 2, 41, 70, 6, 5, Layout::plain, 3);
  p.cap = {0.7, 1.5, 3, 10};
  for (int64_t blocks : {0, 7}) {
    p.block_q = p.block_k = blocks;
    CHECK(error_of(p) < bound);
  }
  p.add_mask(0b0100);
  p.add_bias(0b1100);
  p.band.right = 4;
  CHECK(error_of(p) < bound);
}

TEST_CASE_TEMPLATE("flash: every tile size gives the same within the bound", T, FLOATS) {
  const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 16, 64, 1000};
  for (int64_t block_q : sizes)
    for (int64_t block_k : sizes) {
      Problem<T> p(1, 2, 1, 67, 70, 5, 3);
      p.band.right = 0;
      p.add_mask(0b1000, 0.8);
      p.add_bias(0b0100);
      p.dropout.p = 0.3, p.dropout.seed = 11;
      p.block_q = block_q, p.block_k = block_k;
      CAPTURE(block_q);
      CAPTURE(block_k);
      CHECK(error_of(p) < bound);
    }
}

TEST_CASE_TEMPLATE("flash: dropout", T, FLOATS) {
  Problem<T> p(2, 4, 2, 50, 90, 6, 5);
  for (double share : {0.1, 0.5, 0.9}) {
    p.dropout = {share, 1234, {}};
    CHECK(error_of(p) < bound / (1 - share));  // what is kept grows by that much, errors included
  }
  p.add_mask(0b0010);
  p.add_bias(0b1110);
  p.dropout = {0.4, 99, {}};
  CHECK(error_of(p) < 2 * bound);
  for (Repeat repeat : {0b0000, 0b1100, 0b0010}) {
    Array<bool> keep(2, 4, 50, 90, Layout::transposed, repeat);
    keep.fill([] { return next_uniform() < 0.2; });
    p.dropout = {0.4, 0, keep.view.read()};
    CHECK(error_of(p) < 2 * bound);
  }
  // All dropped: output and gradients are zero; the log-sum-exp knows nothing of it.
  Problem<T> none(1, 1, 1, 9, 20, 3, 3), all = Problem<T>(1, 1, 1, 9, 20, 3, 3);
  all.dropout.p = 1;
  const auto r = fused(all);
  for (auto* x : {&r.out, &r.dq, &r.dk, &r.dv})
    x->each([&, x](int64_t b, int64_t h, int64_t i, int64_t c) { CHECK((*x)(b, h, i, c) == 0); });
  all.dropout.p = 0;
  CHECK(same_bits(r.lse, fused(all).lse));
}

TEST_CASE_TEMPLATE("flash: sinks take weight and have no value; their gradients", T, FLOATS) {
  Problem<T> p(2, 4, 2, 130, 70, 6, 5);
  p.sinks = {0.5, -2, 3, -inf};
  for (int64_t blocks : {0, 7}) {
    p.block_q = p.block_k = blocks;
    CHECK(error_of(p) < bound);
  }
  p.band = {20, 0, true}, p.add_bias(0b1010), p.add_mask(0b0100), p.dropout = {0.3, 2, {}};
  CHECK(error_of(p) < 2 * bound);
  Problem<T> no_keys(1, 2, 1, 3, 0, 4, 2);  // the sink takes all of it
  no_keys.sinks = {1, 2};
  const auto r = fused(no_keys);
  r.out.each([&](int64_t b, int64_t h, int64_t i, int64_t c) { CHECK(r.out(b, h, i, c) == 0); });
  CHECK(r.lse(0, 1, 0, 0) == 2);
  CHECK(r.dsinks == std::vector<double>{0, 0});
  for (double bad : {inf, quiet_nan}) {
    Problem<T> one(1, 1, 1, 2, 3, 4, 2);
    one.sinks = {bad};
    CHECK(std::isnan(fused(one).out(0, 0, 1, 0)));
  }
}

TEST_CASE_TEMPLATE("flash: one, two and five threads give the same bits", T, FLOATS) {
  const auto run = [](int threads) {
    const testing::Threads chosen(threads);
    random_state = 3;
    std::vector<Result<T>> results;
    for (int kind = 0; kind < 3; ++kind) {
      Problem<T> p(kind == 1 ? 1 : 2, kind == 1 ? 2 : 8, kind == 1 ? 1 : 4, 150, 140, 16, 16);
      p.band.right = 0;
      if (kind > 0) p.add_bias(kind == 1 ? 0b1100 : 0b1010), p.cap.assign(static_cast<std::size_t>(p.Hq), 2.0);
      if (kind == 2) p.dropout = {0.2, 5, {}};
      results.push_back(fused(p));
    }
    return results;
  };
  const auto one = run(1), two = run(2), five = run(5);
  for (std::size_t n = 0; n < one.size(); ++n) {
    CHECK(same_bits(one[n], two[n]));
    CHECK(same_bits(one[n], five[n]));
  }
}

TEST_CASE_TEMPLATE("flash: a packed batch is one call a document", T, FLOATS) {
  const int64_t q_starts[] = {0, 20, 20, 75, 76}, k_starts[] = {0, 30, 31, 90, 90};
  const int64_t documents = 4, H = 4, Hkv = 2, d = 16, dv = 5;
  Problem<T> p(1, H, Hkv, q_starts[documents], k_starts[documents], d, dv, Layout::heads_inside);
  Array<T> out(1, H, p.Lq, dv, Layout::heads_inside), max(1, H, p.Lq, 1), sum(1, H, p.Lq, 1),
      dq(1, H, p.Lq, d, Layout::heads_inside), dk(1, Hkv, p.Lk, d, Layout::heads_inside),
      dv_(1, Hkv, p.Lk, dv, Layout::heads_inside);
  FlashArgs<T> a;
  a.B = documents, a.Hq = H, a.Hkv = Hkv, a.d = d, a.dv = dv, a.scale = T(0.3);
  a.q = p.q.view.read(), a.k = p.k.view.read(), a.v = p.v.view.read();
  a.q_starts = q_starts, a.k_starts = k_starts;
  a.band.right = 0, a.band.bottom_right = true, a.dropout = {0.25, 3, {}};
  const RowSums<T> sums{max.view, sum.view};
  flash_forward(a, out.view, sums);
  flash_backward(a, FlashSaved<T>{out.view.read(), sums.read(), p.dout.view.read()}, {dq.view, dk.view, dv_.view});
  for (int64_t n = 0; n < documents; ++n) {
    const int64_t i0 = q_starts[n], Lq = q_starts[n + 1] - i0, j0 = k_starts[n], Lk = k_starts[n + 1] - j0;
    Problem<T> one(1, H, Hkv, Lq, Lk, d, dv);
    one.q.each([&](int64_t, int64_t h, int64_t i, int64_t c) { one.q(0, h, i, c) = p.q(0, h, i0 + i, c); });
    one.dout.each([&](int64_t, int64_t h, int64_t i, int64_t c) { one.dout(0, h, i, c) = p.dout(0, h, i0 + i, c); });
    one.k.each([&](int64_t, int64_t h, int64_t i, int64_t c) { one.k(0, h, i, c) = p.k(0, h, j0 + i, c); });
    one.v.each([&](int64_t, int64_t h, int64_t i, int64_t c) { one.v(0, h, i, c) = p.v(0, h, j0 + i, c); });
    one.scale = 0.3, one.band = a.band;
    // The same dropout: its mask, drawn for document n, given as one.
    Array<bool> keep(1, H, Lq, Lk);
    keep.each([&](int64_t, int64_t h, int64_t i, int64_t j) { keep(0, h, i, j) = kept(3, n, h, i, j, 0.25); });
    one.dropout = {0.25, 0, keep.view.read()};
    const auto r = fused(one);
    bool same = true;
    r.out.each(
        [&](int64_t, int64_t h, int64_t i, int64_t c) { same = same && r.out(0, h, i, c) == out(0, h, i0 + i, c); });
    r.sum.each([&](int64_t, int64_t h, int64_t i, int64_t c) {
      same = same && r.max(0, h, i, c) == max(0, h, i0 + i, c) && r.sum(0, h, i, c) == sum(0, h, i0 + i, c);
    });
    r.dq.each(
        [&](int64_t, int64_t h, int64_t i, int64_t c) { same = same && r.dq(0, h, i, c) == dq(0, h, i0 + i, c); });
    r.dk.each(
        [&](int64_t, int64_t h, int64_t i, int64_t c) { same = same && r.dk(0, h, i, c) == dk(0, h, j0 + i, c); });
    r.dv.each(
        [&](int64_t, int64_t h, int64_t i, int64_t c) { same = same && r.dv(0, h, i, c) == dv_(0, h, j0 + i, c); });
    CAPTURE(n);
    CHECK(same);
  }
}
