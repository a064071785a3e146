#include "checker.hpp"

namespace exercise {

void blend(Checker& check, T (*answer)(const T&, const T&), bool (*reachable)(const T&, const T&)) {
  Draw draw(2);
  Question<T, T, T> q(check, "blend", answer, {"a", "V"});
  q.right([](auto& a, auto& V) { return matmul(a, V); });
  q.mistake("the plain mean of the values: the weights are not used",
            [](auto&, auto& V) { return mean(V, 0); });
  q.mistake("wrong axis: value i is the i-th row of V, not the i-th column",
            [](auto& a, auto& V) { return matmul(V, a); });
  q.mistake("divided by the number of values: weights sum to one already",
            [](auto& a, auto& V) { return matmul(a, V) / V.size(0); });
  q.mistake("only the value with the largest weight: that is a lookup, not a blend",
            [](auto& a, auto& V) { return V[argmax(a).item()]; });
  q.mistake("the weights went through softmax again",
            [](auto& a, auto& V) { return matmul(softmax(a, 0), V); });
  q.input({0.5, 0.3, 0.2}, {{0, 0}, {10, 0}, {0, 10}});
  for (const std::int64_t n : {3, 4, 7}) q.input(draw.weights({n}), draw({n, n == 4 ? 2 : n}));
  q.ask();

  // The weights that give the point: they sum to one, and say by their signs where it is.
  const auto weights = [](const T& p, const T& V) {
    const auto area = [](double ax, double ay, double bx, double by) { return ax * by - ay * bx; };
    const double x = p.at({0}), y = p.at({1}), x0 = V.at({0, 0}), y0 = V.at({0, 1}), x1 = V.at({1, 0}),
                 y1 = V.at({1, 1}), x2 = V.at({2, 0}), y2 = V.at({2, 1});
    const double whole = area(x1 - x0, y1 - y0, x2 - x0, y2 - y0);
    const double w1 = area(x - x0, y - y0, x2 - x0, y2 - y0) / whole,
                 w2 = area(x1 - x0, y1 - y0, x - x0, y - y0) / whole;
    return T{1 - w1 - w2, w1, w2, whole};
  };
  const auto inside = [weights](const T& p, const T& V) {
    return min(weights(p, V).slice(0, 0, 3)).item() > 0;
  };
  Question<bool, T, T> p(check, "reachable", reachable, {"point", "V"});
  p.right(inside);
  p.mistake("inside the box around the values is not enough: a blend stays inside their triangle",
            [](auto& x, auto& V) { return min(x - min(V, 0)).item() > 0 && min(max(V, 0) - x).item() > 0; });
  p.mistake("weights that sum to one are found, but they may be negative: a softmax has none that are",
            [](auto&, auto&) { return true; });
  p.mistake("this holds only where the values go anticlockwise; all on the right-hand side is inside too",
            [=](auto& x, auto& V) { return weights(x, V).at({3}) > 0 && inside(x, V); });
  p.mistake("this holds only where the values go clockwise; all on the left-hand side is inside too",
            [=](auto& x, auto& V) { return weights(x, V).at({3}) < 0 && inside(x, V); });
  p.mistake("only two of the three weights are looked at",
            [=](auto& x, auto& V) { return min(weights(x, V).slice(0, 1, 3)).item() > 0; });
  p.mistake("being closer to the middle than the farthest value is not enough", [](auto& x, auto& V) {
    const T middle = mean(V, 0);
    return norm(x - middle).item() < max(norm(V - middle, -1)).item();
  });
  p.mistake("inside and outside are exchanged", [=](auto& x, auto& V) { return !inside(x, V); });
  p.input({12, 0.5}, {{0, 0}, {10, 0}, {0, 10}});
  p.input({2, 3}, {{0, 0}, {10, 0}, {0, 10}});
  p.input({2, 3}, {{0, 0}, {0, 10}, {10, 0}});
  p.input({8, 8}, {{0, 0}, {10, 0}, {0, 10}});
  for (int made = 0; made < 28;) {
    const T V = draw({3, 2}), x = made % 2 == 0 ? round(matmul(draw.weights({3}), V), 2) : draw({2});
    const T w = weights(x, V);
    if (std::abs(w.at({3})) < 0.1 || min(abs(w)).item() < 0.02)
      continue;  // too flat, or too close to an edge
    p.input(x, V);
    ++made;
  }
  p.ask();
}

}  // namespace exercise
