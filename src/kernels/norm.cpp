#include "kernels/norm.hpp"

#include <cmath>

#include "kernels/row_sums.hpp"

namespace tapehead::kernels {
namespace {

struct RowNorm {
  template <class T>
  RowNorm(std::int64_t n, const T* x, double eps, bool centred) {
    const auto count = static_cast<double>(n);
    if (centred) mean = sums<1>(n, [x](auto at) { return std::array{at(x)}; })[0] / count;
    const double squares = sums<1>(n, [x, m = mean](auto at) {
      const auto apart = at(x) - m;
      return std::array{apart * apart};
    })[0];
    scale = 1 / std::sqrt(squares / count + eps);
  }
  template <class X>
  X operator()(X x) const {
    return (x - mean) * scale;
  }

  double mean = 0, scale;
};

}  // namespace

template <class T>
void norm_row(std::int64_t n, const T* x, const T* w, const T* b, double eps, bool centred, T* y) {
  const RowNorm norm(n, x, eps, centred);
  for_each_place(n, [=](auto at) {
    auto v = norm(at(x));
    if (w != nullptr) v = v * at(w);
    if (b != nullptr) v = v + at(b);
    at.put(y, v);
  });
}

template <class T>
void norm_pull_row(std::int64_t n, const T* x, const T* dy, const T* w, double eps, bool centred, T* dx,
                   double* dw, double* db) {
  const RowNorm norm(n, x, eps, centred);
  const auto g = [=](auto at) { return w != nullptr ? at(dy) * at(w) : at(dy); };
  if (dx != nullptr) {
    const auto total = sums<2>(n, [=](auto at) {
      const auto u = g(at);
      return std::array{u, u * norm(at(x))};
    });
    const auto count = static_cast<double>(n);
    const double mean = centred ? total[0] / count : 0, along = total[1] / count;
    for_each_place(n, [=](auto at) { at.put(dx, (g(at) - mean - norm(at(x)) * along) * norm.scale); });
  }
  if (dw != nullptr) for_each_place(n, [=](auto at) { at.put(dw, at(dw) + at(dy) * norm(at(x))); });
  if (db != nullptr) for_each_place(n, [=](auto at) { at.put(db, at(db) + at(dy)); });
}

#define TAPEHEAD_NORM(T)                                                                \
  template void norm_row(std::int64_t, const T*, const T*, const T*, double, bool, T*); \
  template void norm_pull_row(std::int64_t, const T*, const T*, const T*, double, bool, T*, double*, double*);
TAPEHEAD_NORM(float)
TAPEHEAD_NORM(double)

}  // namespace tapehead::kernels
