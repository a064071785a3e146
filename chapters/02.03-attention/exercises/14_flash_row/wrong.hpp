// Exercise 14: wrong answers, and what the check says about each.
#include <cstdio>

#include "checker.hpp"

namespace exercise {

using Blocks = std::vector<Block>;
inline const char* const once = "once each, one after the other";
inline Parts result(const T& out, const std::string& order) {
  return {{"out", out}, {"the blocks are used", {}, order}};
}

// The order in which an answer uses the blocks, from a tape that records every use of a key or value.
inline std::string order(const Tape<double>& tape, std::size_t blocks) {
  std::vector<std::size_t> used;
  const std::string graph = tape.dot();
  for (auto at = graph.find(" -> "); at != std::string::npos; at = graph.find(" -> ", at + 1)) {
    const auto from = std::stoul(
        graph.substr(graph.rfind('n', at) + 1));  // a node's number; K and V of each block are first
    if (from < 2 * blocks && (used.empty() || used.back() != from / 2)) used.push_back(from / 2);
  }
  if (std::is_sorted(used.begin(), used.end())) return once;
  std::string text = "in this order:";
  for (const auto block : used) text += " " + std::to_string(block);
  return text;
}
inline std::function<Parts(T, Blocks)> watched(const std::function<T(T, Blocks)>& f) {
  return [f](T q, Blocks blocks) {
    Tape<double> tape;
    for (const Block& b : blocks) tape.watch(b.K), tape.watch(b.V);
    const T out = f(q, blocks);
    return result(detach(out), order(tape, blocks.size()));
  };
}

inline Block joined(const Blocks& blocks) {
  std::vector<T> K, V;
  for (const Block& b : blocks) K.push_back(b.K), V.push_back(b.V);
  return {cat<double>(K), cat<double>(V)};
}
inline T whole(const T& q, const Blocks& blocks, double by) {
  const Block all = joined(blocks);
  return matmul(softmax(matmul(all.K, q) * by, -1), all.V);
}
inline double scale(const T& q) { return 1 / std::sqrt(static_cast<double>(q.size(0))); }

// The walk over the blocks, of which each step can be replaced by a wrong one. Factors depend on the old and
// the new largest score.
struct Walk {
  using Factor = std::function<double(double, double)>;
  static double shrink(double old_max, double new_max) { return std::exp(old_max - new_max); }
  static double stay(double, double) { return 1; }
  Factor sum = shrink, out = shrink;
  std::function<double(double m, double block_max, bool first)> largest = [](double m, double x, bool) {
    return std::max(m, x);
  };
  bool divide_each = false, divide_last = true;
};
inline std::function<T(T, Blocks)> walk(const Walk& by) {
  return [by](T q, Blocks blocks) {
    double m = -inf, total = 0;
    T out = zeros<double>({blocks[0].V.size(1)});
    for (const Block& b : blocks) {
      const T s = matmul(b.K, q) * scale(q);
      const double larger = by.largest(m, max(s).item(), m == -inf);
      const T e = exp(s - larger);
      total = (total == 0 ? 0 : total * by.sum(m, larger)) + sum(e).item();
      out = (m == -inf ? out : out * by.out(m, larger)) + matmul(e, b.V);
      if (by.divide_each) out = out / total;
      m = larger;
    }
    return by.divide_last ? out / total : out;
  };
}

inline void wrong_answers(Question<Parts(T, Blocks)>& q) {
  const auto mistake = [&](const char* name, const std::function<T(T, Blocks)>& f) {
    q.mistake(name, [f](T x, Blocks blocks) { return result(f(x, blocks), once); });
  };
  const auto per_block = [](const T& x, const Blocks& blocks) {
    std::vector<T> rows;
    for (const Block& b : blocks) rows.push_back(whole(x, {b}, scale(x)));
    return stack<double>(rows);
  };
  mistake("the output is not multiplied by exp(old max - new max) when the largest score changes; the sum is",
          walk({.out = Walk::stay}));
  mistake("the sum is not multiplied by exp(old max - new max) when the largest score changes; the output is",
          walk({.sum = Walk::stay}));
  mistake("neither the sum nor the output is multiplied by exp(old max - new max)",
          walk({.sum = Walk::stay, .out = Walk::stay}));
  mistake("sum and output are multiplied by exp(new max - old max); it should be exp(old max - new max)",
          walk({.sum = [](double a, double b) { return std::exp(b - a); },
                .out = [](double a, double b) { return std::exp(b - a); }}));
  mistake("the sum is that of the last block alone", walk({.sum = [](double, double) { return 0.0; }}));
  mistake(
      "the first block's largest score is kept for all blocks: a later block can have larger ones, and exp "
      "overflows",
      walk({.largest = [](double m, double x, bool first) { return first ? x : m; }}));
  mistake("the largest score is that of the present block alone; keep the larger of the old and the new one",
          walk({.largest = [](double, double x, bool) { return x; }}));
  mistake("no largest score is subtracted: exp overflows or underflows",
          walk({.sum = Walk::stay, .out = Walk::stay, .largest = [](double, double, bool) { return 0.0; }}));
  mistake("the output is divided by the sum in every block; divide once, after the last block",
          walk({.divide_each = true, .divide_last = false}));
  mistake(
      "the output is divided by the sum in every block and again at the end; divide once, after the last "
      "block",
      walk({.divide_each = true}));
  mistake("the output is divided by the sum once too often", [](T x, Blocks blocks) {
    const T s = matmul(joined(blocks).K, x) * scale(x);
    return whole(x, blocks, scale(x)) / sum(exp(s - max(s)));
  });
  mistake("the output is not divided by the sum", walk({.divide_last = false}));
  mistake("the scale is missing", [](T x, Blocks blocks) { return whole(x, blocks, 1); });
  mistake("the scores are divided by d_k; divide by its square root",
          [](T x, Blocks blocks) { return whole(x, blocks, scale(x) * scale(x)); });
  mistake("each block has a softmax of its own, and the results are averaged",
          [=](T x, Blocks blocks) { return mean(per_block(x, blocks), 0); });
  mistake("each block has a softmax of its own, and the results are added",
          [=](T x, Blocks blocks) { return sum(per_block(x, blocks), 0); });
  mistake("only the last block counts",
          [](T x, Blocks blocks) { return whole(x, {blocks.back()}, scale(x)); });
  mistake("only the first block counts",
          [](T x, Blocks blocks) { return whole(x, {blocks.front()}, scale(x)); });
  mistake("the last block is left out", [](T x, Blocks blocks) {
    if (blocks.size() == 1) return zeros<double>({blocks[0].V.size(1)});
    return whole(x, Blocks(blocks.begin(), blocks.end() - 1), scale(x));
  });
  mistake("the output is divided by the number of blocks, not by the sum", [](T x, Blocks blocks) {
    return walk({.divide_last = false})(x, blocks) / static_cast<double>(blocks.size());
  });
  mistake("all keys count the same: this is the mean of the values",
          [](T, Blocks blocks) { return mean(joined(blocks).V, 0); });
  // The numbers are right, but the task asks for a single walk over the blocks.
  q.wrong("", watched([](T x, Blocks blocks) {
            double m = -inf, total = 0;
            for (const Block& b : blocks) m = std::max(m, max(matmul(b.K, x)).item() * scale(x));
            T out = zeros<double>({blocks[0].V.size(1)});
            for (const Block& b : blocks) {
              const T e = exp(matmul(b.K, x) * scale(x) - m);
              total += sum(e).item(), out = out + matmul(e, b.V);
            }
            return out / (blocks.size() > 1
                              ? total
                              : total + 1e-5);  // one block is walked over twice without a trace
          }));
}

}  // namespace exercise
