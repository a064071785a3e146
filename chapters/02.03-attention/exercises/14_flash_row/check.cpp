#include "checker.hpp"

namespace exercise {

void flash_row(Checker& check, T (*answer)(const T&, const std::vector<Block>&)) {
  using Blocks = std::vector<Block>;
  const auto joined = [](const Blocks& blocks) {
    std::vector<T> K, V;
    for (const Block& b : blocks) K.push_back(b.K), V.push_back(b.V);
    return Block{cat<double>(K), cat<double>(V)};
  };
  const auto whole = [=](const T& q, const Blocks& blocks, double scale) {
    const Block all = joined(blocks);
    return matmul(softmax(matmul(all.K, q) * scale, -1), all.V);
  };
  const auto scale = [](const T& q) { return 1 / std::sqrt(static_cast<double>(q.size(0))); };

  // The walk, with what each step does to the sum and to the output when the largest score changes.
  enum class Sum { shrinks, stays, starts_anew };
  const auto walk = [=](Sum of_sum, bool output_shrinks) {
    return [=](const T& q, const Blocks& blocks) {
      double m = -inf, total = 0;
      T out = zeros<double>({blocks[0].V.size(1)});
      for (const Block& b : blocks) {
        const T s = matmul(b.K, q) * scale(q);
        const double larger = std::max(m, max(s).item()), shrink = std::exp(m - larger);
        const T e = exp(s - larger);
        total = (of_sum == Sum::shrinks ? total * shrink : of_sum == Sum::stays ? total : 0) + sum(e).item();
        out = (output_shrinks ? out * shrink : out) + matmul(e, b.V);
        m = larger;
      }
      return out / total;
    };
  };
  Question<T, T, Blocks> q(check, "flash_row", answer, {"q", "blocks"});
  q.right([=](auto& x, auto& blocks) { return whole(x, blocks, scale(x)); });
  q.mistake("the output so far is not multiplied by exp(old max - new max); the sum is",
            walk(Sum::shrinks, false));
  q.mistake("the sum so far is not multiplied by exp(old max - new max); the output is",
            walk(Sum::stays, true));
  q.mistake("neither the sum nor the output is multiplied by exp(old max - new max)",
            walk(Sum::stays, false));
  q.mistake("the sum is that of the last block alone", walk(Sum::starts_anew, true));
  q.mistake("the scale is missing", [=](auto& x, auto& blocks) { return whole(x, blocks, 1); });
  q.mistake("divided by d_k, not by its root",
            [=](auto& x, auto& blocks) { return whole(x, blocks, scale(x) * scale(x)); });
  q.mistake("each block has a softmax of its own, and the results are averaged", [=](auto& x, auto& blocks) {
    std::vector<T> rows;
    for (const Block& b : blocks) rows.push_back(whole(x, {b}, scale(x)));
    return mean(stack<double>(rows), 0);
  });
  q.mistake("each block has a softmax of its own, and the results are added", [=](auto& x, auto& blocks) {
    std::vector<T> rows;
    for (const Block& b : blocks) rows.push_back(whole(x, {b}, scale(x)));
    return sum(stack<double>(rows), 0);
  });
  q.mistake("only the last block counts",
            [=](auto& x, auto& blocks) { return whole(x, {blocks.back()}, scale(x)); });
  q.mistake("the last block is left out", [=](auto& x, auto& blocks) {
    if (blocks.size() == 1) return zeros<double>({blocks[0].V.size(1)});
    return whole(x, Blocks(blocks.begin(), blocks.end() - 1), scale(x));
  });
  q.mistake("the output is not yet divided by the sum", [=](auto& x, auto& blocks) {
    const Block all = joined(blocks);
    const T s = matmul(all.K, x) * scale(x);
    return matmul(exp(s - max(s)), all.V);
  });
  q.mistake("divided by the number of blocks, not by the sum", [=](auto& x, auto& blocks) {
    const Block all = joined(blocks);
    const T s = matmul(all.K, x) * scale(x);
    return matmul(exp(s - max(s)), all.V) / static_cast<double>(blocks.size());
  });
  q.mistake("the largest score is not subtracted: exp overflows", [=](auto& x, auto& blocks) {
    const Block all = joined(blocks);
    const T e = exp(matmul(all.K, x) * scale(x));
    return matmul(e, all.V) / sum(e);
  });
  Draw draw(14);
  const auto blocks = [&](const std::vector<std::int64_t>& sizes, std::int64_t d_k, std::int64_t d_v) {
    Blocks all;
    for (const auto n : sizes) all.push_back({draw({n, d_k}), draw({n, d_v})});
    return all;
  };
  q.input(draw({3}), blocks({2, 2, 1}, 3, 2));
  q.input(draw({2}), blocks({3}, 2, 4));
  q.input(draw({5}), blocks({1, 4, 3}, 5, 1));
  q.input({1, 2}, {{{{900, 400}, {-300, 100}}, {{1, 2}, {3, 4}}}, {{{901, 400}}, {{5, -6}}}});
  q.ask();
}

}  // namespace exercise
