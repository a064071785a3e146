// Weights that are not negative and sum to one make a convex combination: all such blends of three points
// fill the triangle between them, and none lies outside. So (12, 0) cannot be had from (0, 0), (10, 0), (0,
// 10): its first coordinate would be a blend of 0, 10 and 0, and that is at most 10. A point is inside when
// it lies on the same side of all three edges, walked around in one direction. side() is twice the signed
// area of a triangle: positive on the left of the edge, negative on its right. Which of the two is inside
// depends on the order of the corners, so both all-left and all-right count.
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
