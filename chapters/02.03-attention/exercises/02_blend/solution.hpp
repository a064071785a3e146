// A sum with weights that are not negative and sum to one is a convex combination. All convex combinations
// of three points together fill the triangle between the points, and none lies outside. So (12, 0) cannot
// be reached from (0, 0), (10, 0) and (0, 10): its first coordinate would be a blend of 0, 10 and 0, which
// is at most 10. A point is inside if it lies on the same side of all three edges when you walk around the
// triangle. side() is twice the signed area of a triangle: positive if the point is left of the edge,
// negative if it is right. Which of the two is the inside depends on the order of the corners, so the code
// accepts both.
#include "exercise.hpp"

Tensor<double> blend(const Tensor<double>& a, const Tensor<double>& V) { return matmul(a, V); }

bool reachable(const Tensor<double>& point, const Tensor<double>& V) {
  const auto side = [&](std::int64_t from, std::int64_t to) {
    const double ux = V.at({to, 0}) - V.at({from, 0}), uy = V.at({to, 1}) - V.at({from, 1});
    const double px = point.at({0}) - V.at({from, 0}), py = point.at({1}) - V.at({from, 1});
    return ux * py - uy * px;
  };
  const double s0 = side(0, 1), s1 = side(1, 2), s2 = side(2, 0);
  return (s0 > 0 && s1 > 0 && s2 > 0) || (s0 < 0 && s1 < 0 && s2 < 0);
}
