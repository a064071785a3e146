// Exercise 02: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

inline void wrong_blend(Question<T(T, T)>& q) {
  q.mistake("this is the plain mean of the values: the weights are not used",
            [](T, T V) { return mean(V, 0); });
  q.mistake("this is the sum of the values: the weights are not used", [](T, T V) { return sum(V, 0); });
  q.mistake("wrong axis: value i is row i of V, not column i", [](T a, T V) { return matmul(V, a); });
  q.mistake("the result is divided by the number of values, but the weights sum to one already",
            [](T a, T V) { return matmul(a, V) / V.size(0); });
  q.mistake("only the value with the largest weight is returned: that is a lookup, not a blend",
            [](T a, T V) { return V[argmax(a).item()]; });
  q.mistake("the weights went through softmax again", [](T a, T V) { return matmul(softmax(a, 0), V); });
  q.mistake("the rows of V are weighted but not added up", [](T a, T V) { return unsqueeze(a, 1) * V; });
  q.mistake("the sum runs along the rows: add up the values, component by component",
            [](T a, T V) { return sum(unsqueeze(a, 1) * V, 1); });
  q.mistake("the result is a matrix with one row, (1, d); it should be (d,)",
            [](T a, T V) { return matmul(unsqueeze(a, 0), V); });
  q.mistake("the weights are squared", [](T a, T V) { return matmul(a * a, V); });
  q.wrong("Most likely: every number is 0", [](T, T V) { return zeros<double>({V.size(1)}); });
  q.mistake("only the first three values are used: there are V.size(0) of them",
            [](T a, T V) { return matmul(a.slice(0, 0, 3), V.slice(0, 0, 3)); });
  q.wrong("", [](T a, T V) { return matmul(a, V) + V[0] * 0.1; });
}

// The weights that give the point, and the signed area of the triangle of the values: they sum to one, and
// their signs say where the point is.
inline T weights_of(const T& p, const T& V) {
  const auto area = [](double ax, double ay, double bx, double by) { return ax * by - ay * bx; };
  const double x = p.at({0}), y = p.at({1}), x0 = V.at({0, 0}), y0 = V.at({0, 1}), x1 = V.at({1, 0}),
               y1 = V.at({1, 1}), x2 = V.at({2, 0}), y2 = V.at({2, 1});
  const double whole = area(x1 - x0, y1 - y0, x2 - x0, y2 - y0);
  const double w1 = area(x - x0, y - y0, x2 - x0, y2 - y0) / whole,
               w2 = area(x1 - x0, y1 - y0, x - x0, y - y0) / whole;
  return T{1 - w1 - w2, w1, w2, whole};
}
inline bool inside(const T& p, const T& V) { return min(weights_of(p, V).slice(0, 0, 3)).item() > 0; }

inline void wrong_reachable(Question<bool(T, T)>& q) {
  q.mistake("the point is in the box around the values, but a blend stays inside their triangle",
            [](T x, T V) { return min(x - min(V, 0)).item() > 0 && min(max(V, 0) - x).item() > 0; });
  q.mistake(
      "the answer is always true: weights that sum to one exist for every point, but some may be negative",
      [](T, T) { return true; });
  q.mistake("the answer is always false, but every point inside the triangle of the values can be reached",
            [](T, T) { return false; });
  q.mistake(
      "this is right only if the values go anticlockwise; otherwise the inside is right of all three edges",
      [](T x, T V) { return weights_of(x, V).at({3}) > 0 && inside(x, V); });
  q.mistake("this is right only if the values go clockwise; otherwise the inside is left of all three edges",
            [](T x, T V) { return weights_of(x, V).at({3}) < 0 && inside(x, V); });
  const char* two = "only two of the three weights are looked at: all three must be positive";
  q.mistake(two, [](T x, T V) { return min(weights_of(x, V).slice(0, 1, 3)).item() > 0; });
  q.mistake(two, [](T x, T V) { return min(weights_of(x, V).slice(0, 0, 2)).item() > 0; });
  q.mistake(
      "the point is closer to the middle than the farthest value, but that is a circle, not the triangle",
      [](T x, T V) {
        const T middle = mean(V, 0);
        return norm(x - middle).item() < max(norm(V - middle, -1)).item();
      });
  q.mistake("inside and outside are exchanged", [](T x, T V) { return !inside(x, V); });
  q.mistake("the weights are not checked against a sum of one: negative blends of the values pass",
            [](T x, T V) { return weights_of(x, V).at({0}) < 1; });
  q.mistake("this looks at the first coordinate alone",
            [](T x, T V) { return x.at({0}) > min(V, 0).at({0}) && x.at({0}) < max(V, 0).at({0}); });
  q.wrong("", [](T x, T V) { return inside(x, V) && norm(x).item() < 100; });
}

}  // namespace exercise
