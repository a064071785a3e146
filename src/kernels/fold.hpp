#pragma once
#include <cstdint>
#include <functional>
#include <type_traits>

#include "kernels/walk.hpp"

// Folding an array along some of its axes. Where the innermost axis goes, each result has 16 interleaved
// accumulators (independent additions, which the compiler vectorises); where it stays, one, and the columns
// stand side by side. So the order of additions depends on the shape alone, never on how the array is stored,
// nor on the threads; only the way through memory follows the strides.
namespace tapehead::kernels {

/// The axes that stay and those that go, with the strides of the array (in elements); none of size 1.
struct FoldAxes {
  int kept_rank = 0, gone_rank = 0;
  std::int64_t kept_sizes[max_axes] = {}, kept_strides[max_axes] = {};
  std::int64_t gone_sizes[max_axes] = {}, gone_strides[max_axes] = {};
  bool innermost_goes = false;
};

/// Takes n results, of the places k, k + 1, … counted over the kept axes in row-major order. Called from
/// several threads.
template <class A>
using Results = std::function<void(const A* results, std::int64_t n, std::int64_t k)>;

/// What numbers are summed in: integers wrap around, as unsigned numbers do.
template <class T>
struct SumOf {
  using type = double;
};
template <>
struct SumOf<std::int64_t> {
  using type = std::uint64_t;
};

/// Σ x, for float, double and int64. An empty sum is 0.
template <class T>
void fold_sum(const FoldAxes& axes, const T* x, const Results<typename SumOf<T>::type>& results);
/// Σ x², for float and double.
template <class T>
void fold_squares(const FoldAxes& axes, const T* x, const Results<double>& results);
/// The largest (the smallest) x, NaN where there is one; -∞ (∞) of nothing. For float and double.
template <class T>
void fold_extreme(const FoldAxes& axes, const T* x, bool largest,
                  const Results<std::type_identity_t<T>>& results);

}  // namespace tapehead::kernels
