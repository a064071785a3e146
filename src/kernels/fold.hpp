#pragma once
#include <cstdint>
#include <functional>
#include <type_traits>

#include "kernels/walk.hpp"

// Reducing an array along some of its axes. If the innermost axis is reduced, each result has 16 interleaved
// accumulators, whose independent additions the compiler vectorises; if it is kept, each result has one, and
// neighbouring results are accumulated together. So the order of additions depends on the shape alone, not on
// the storage order or the number of threads.
namespace tapehead::kernels {

/// The axes that are kept and those that are reduced (gone), with the strides of the array in elements. Axes
/// of size 1 are left out.
struct FoldAxes {
  int kept_rank = 0, gone_rank = 0;
  std::int64_t kept_sizes[max_axes] = {}, kept_strides[max_axes] = {};
  std::int64_t gone_sizes[max_axes] = {}, gone_strides[max_axes] = {};
  bool innermost_goes = false;

  /// The next axis, from the outermost in.
  void add(std::int64_t size, std::int64_t stride, bool goes) {
    if (size == 1) return;
    int& rank = goes ? gone_rank : kept_rank;
    (goes ? gone_sizes : kept_sizes)[rank] = size;
    (goes ? gone_strides : kept_strides)[rank++] = stride;
    innermost_goes = goes;
  }
};

/// Takes n results, those at positions k, k + 1, … of the kept axes in row-major order. Called from several
/// threads.
template <class A> using Results = std::function<void(const A* results, std::int64_t n, std::int64_t k)>;

/// Writes f(result) to y[k], y[k + 1], …
template <class T, class F> auto write_to(T* y, F f) {
  return [y, f](const auto* results, std::int64_t n, std::int64_t k) {
    for (std::int64_t i = 0; i < n; ++i) y[k + i] = static_cast<T>(f(results[i]));
  };
}

/// The type of a sum: double, and for integers one that wraps around.
template <class T> struct SumOf { using type = double; };
template <> struct SumOf<std::int64_t> { using type = std::uint64_t; };

/// Σ x, for float, double and int64. An empty sum is 0.
template <class T> void fold_sum(const FoldAxes& axes, const T* x, const Results<typename SumOf<T>::type>& results);
/// Σ x², for float and double.
template <class T> void fold_squares(const FoldAxes& axes, const T* x, const Results<double>& results);
/// The largest or smallest x, for float and double: NaN if x has one, and -∞ or ∞ if x is empty.
template <class T>
void fold_extreme(const FoldAxes& axes, const T* x, bool largest, const Results<std::type_identity_t<T>>& results);

}  // namespace tapehead::kernels
