#include "kernels/norm.hpp"

#include <cmath>

#include "kernels/row_sums.hpp"

namespace tapehead::kernels {
namespace {

/// x̂ = (x - mean) scale, for numbers and for vectors.
struct RowNorm {
  double mean, scale;
  RowNorm(double row_mean, double squares, std::int64_t n, double eps)
      : mean(row_mean), scale(1 / std::sqrt(squares / static_cast<double>(n) + eps)) {}
  template <class X> X operator()(X x) const { return (x - mean) * scale; }
};

template <class T> double mean_of(std::int64_t n, const T* x, bool centred) {
  return centred ? sums<1>(n, [x](auto at) { return std::array{at(x)}; })[0] / static_cast<double>(n) : 0;
}

}  // namespace

template <class T> void norm_row(std::int64_t n, const T* x, const T* w, const T* b, double eps, bool centred, T* y) {
  const double mean = mean_of(n, x, centred);
  const double squares = sums<1>(n, [=](auto at) {
    const auto apart = at(x) - mean;
    return std::array{apart * apart};
  })[0];
  const RowNorm norm(mean, squares, n, eps);
  for_each_place(n, [=](auto at) {
    auto v = norm(at(x));
    if (w != nullptr) v = v * at(w);
    if (b != nullptr) v = v + at(b);
    at.put(y, v);
  });
}

template <class T> void norm_pull_row(std::int64_t n, const T* x, const T* dy, const T* w, double eps, bool centred,
                                      T* dx, double* dw, double* db) {
  const double mean = mean_of(n, x, centred);
  const auto g = [=](auto at) { return w != nullptr ? at(dy) * at(w) : at(dy); };
  const auto total = sums<3>(n, [=](auto at) {  // Σ (x - mean)², Σ g, Σ g (x - mean)
    const auto apart = at(x) - mean, u = g(at);
    return std::array{apart * apart, u, u * apart};
  });
  const RowNorm norm(mean, total[0], n, eps);
  const auto count = static_cast<double>(n);
  const double g_mean = centred ? total[1] / count : 0, along = total[2] * norm.scale / count;
  // Each result has a loop of its own. In one loop for all, the compiler fuses multiplications with additions in other
  // places when dw is asked for than when it is not, and the last bit of dx would depend on that.
  if (dw != nullptr) for_each_place(n, [=](auto at) { at.put(dw, at(dw) + at(dy) * norm(at(x))); });
  if (db != nullptr) for_each_place(n, [=](auto at) { at.put(db, at(db) + at(dy)); });
  if (dx != nullptr)
    for_each_place(n, [=](auto at) { at.put(dx, (g(at) - g_mean - norm(at(x)) * along) * norm.scale); });
}

#define TAPEHEAD_NORM(T)                                                                \
  template void norm_row(std::int64_t, const T*, const T*, const T*, double, bool, T*); \
  template void norm_pull_row(std::int64_t, const T*, const T*, const T*, double, bool, T*, double*, double*);
TAPEHEAD_NORM(float)
TAPEHEAD_NORM(double)

}  // namespace tapehead::kernels
