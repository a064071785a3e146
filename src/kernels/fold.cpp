#include "kernels/fold.hpp"

#include <algorithm>
#include <concepts>
#include <limits>

#include "kernels/gemm_pack.hpp"
#include "kernels/parallel.hpp"

namespace tapehead::kernels {
namespace {

// A way of folding: where it starts, how a number comes in, and how two accumulators become one.
template <class T, bool squared = false>
struct Sum {
  using Acc = typename SumOf<T>::type;
  static constexpr Acc start = 0;
  static void add(Acc& acc, T v) { acc += static_cast<Acc>(v) * (squared ? static_cast<Acc>(v) : Acc{1}); }
  static void join(Acc& acc, Acc other) { acc += other; }
};

template <class T, bool largest>
struct Extreme {
  using Acc = T;
  static constexpr Acc start =
      largest ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  // Both conditions are worked out, without a branch, so that a loop of these becomes vectors.
  static void add(Acc& acc, T v) {
    acc = (static_cast<int>(largest ? acc > v : acc < v) | static_cast<int>(acc != acc)) != 0 ? acc : v;
  }
  static void join(Acc& acc, T other) { add(acc, other); }
};

/// Calls f(i, row, apart) for each of `run` rows of n numbers, which lie `apart` from each other: number c of
/// row i is p[i * step + c * side]. Where it is each column that is stored without gaps, blocks of columns
/// are turned first: so a cache line is read once, and not once a row.
template <class T, class F>
void for_each_row(std::int64_t run, std::int64_t n, const T* p, std::int64_t step, std::int64_t side,
                  const F& f) {
  if constexpr (std::floating_point<T>) {
    if (step == 1 && side != 1) {
      constexpr std::int64_t block = 16'384 / sizeof(T);
      T rows[block];
      for (std::int64_t i = 0, depth = block / n; i < run; i += depth) {
        const std::int64_t count = std::min(depth, run - i);
        pack<T>(n, n, count, {p + i, side, 1}, rows);
        for (std::int64_t r = 0; r < count; ++r) f(i + r, rows + r * n, std::int64_t{1});
      }
      return;
    }
  }
  for (std::int64_t i = 0; i < run; ++i) f(i, p + i * step, side);
}

constexpr int most = 16;

/// One result, of a row that is stored along.
template <class R, class T>
typename R::Acc folded_row(const FoldAxes& axes, std::int64_t run, std::int64_t step, const T* base) {
  typename R::Acc acc[most];
  std::fill_n(acc, most, R::start);
  for_each_element(std::max(axes.gone_rank - 1, 0), axes.gone_sizes, axes.gone_strides,
                   [&](std::int64_t offset) {
                     const T* p = base + offset;
                     std::int64_t i = 0;
                     if (step == 1)
                       for (; i + most <= run; i += most)
                         for (int w = 0; w < most; ++w) R::add(acc[w], p[i + w]);
                     for (; i < run; ++i) R::add(acc[i % most], p[i * step]);
                   });
  for (int half = most / 2; half > 0; half /= 2)
    for (int w = 0; w < half; ++w) R::join(acc[w], acc[w + half]);
  return acc[0];
}

/// n results side by side, each of `ways` accumulators: acc has room for ways rows of n, the first of which
/// holds them in the end.
template <class R, class T>
void folded_columns(const FoldAxes& axes, std::int64_t run, std::int64_t step, const T* base,
                    std::int64_t side, std::int64_t n, int ways, typename R::Acc* acc) {
  std::fill_n(acc, ways * n, R::start);
  for_each_element(std::max(axes.gone_rank - 1, 0), axes.gone_sizes, axes.gone_strides,
                   [&](std::int64_t offset) {
                     for_each_row(run, n, base + offset, step, side,
                                  [&](std::int64_t i, const T* row, std::int64_t apart) {
                                    typename R::Acc* sums = acc + (ways == 1 ? 0 : i % most * n);
                                    if (apart == 1)
                                      for (std::int64_t c = 0; c < n; ++c) R::add(sums[c], row[c]);
                                    else
                                      for (std::int64_t c = 0; c < n; ++c) R::add(sums[c], row[c * apart]);
                                  });
                   });
  for (std::int64_t half = ways / 2 * n; half >= n && ways > 1; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) R::join(acc[i], acc[i + half]);
}

template <class R, class T>
void fold(const FoldAxes& axes, const T* x, const Results<typename R::Acc>& results) {
  std::int64_t kept = 1, gone = 1;
  for (int i = 0; i < axes.kept_rank; ++i) kept *= axes.kept_sizes[i];
  for (int i = 0; i < axes.gone_rank; ++i) gone *= axes.gone_sizes[i];
  if (kept == 0) return;

  const int last = axes.kept_rank - 1, inner = axes.gone_rank - 1, ways = axes.innermost_goes ? most : 1;
  const std::int64_t run = inner >= 0 ? axes.gone_sizes[inner] : 1,
                     step = inner >= 0 ? axes.gone_strides[inner] : 0;
  // One task: a piece of the innermost kept axis, its columns side by side, or single results along stored
  // rows.
  const bool columns = last >= 0 && !(axes.innermost_goes && step == 1);
  const std::int64_t widest = axes.innermost_goes ? 32 : 256;
  const std::int64_t width = columns ? axes.kept_sizes[last] : 1, pieces = (width + widest - 1) / widest;
  const std::int64_t side = columns ? axes.kept_strides[last] : 0;
  const int outer_rank = columns ? last : axes.kept_rank;
  const std::int64_t tasks = kept / width * pieces;
  parallel_for(tasks < 4096 ? tasks : (tasks + 63) / 64, kept * gone, [&](std::int64_t task) {
    const std::int64_t from = tasks < 4096 ? task : task * 64,
                       to = tasks < 4096 ? task + 1 : std::min(tasks, from + 64);
    typename R::Acc acc[most * 32];
    for (std::int64_t t = from; t < to; ++t) {
      std::int64_t rest = t / pieces, start = 0;
      const std::int64_t first = t % pieces * widest, n = std::min(widest, width - first);
      for (int axis = outer_rank - 1; axis >= 0; --axis) {
        start += rest % axes.kept_sizes[axis] * axes.kept_strides[axis];
        rest /= axes.kept_sizes[axis];
      }
      const T* base = x + start + first * side;
      if (columns) {
        folded_columns<R>(axes, run, step, base, side, n, ways, acc);
        results(acc, n, t / pieces * width + first);
      } else {
        acc[t - from] = folded_row<R>(axes, run, step, base);
      }
    }
    if (!columns) results(acc, to - from, from);
  });
}

}  // namespace

template <class T>
void fold_sum(const FoldAxes& axes, const T* x, const Results<typename SumOf<T>::type>& results) {
  fold<Sum<T>>(axes, x, results);
}
template <class T>
void fold_squares(const FoldAxes& axes, const T* x, const Results<double>& results) {
  fold<Sum<T, true>>(axes, x, results);
}
template <class T>
void fold_extreme(const FoldAxes& axes, const T* x, bool largest,
                  const Results<std::type_identity_t<T>>& results) {
  largest ? fold<Extreme<T, true>>(axes, x, results) : fold<Extreme<T, false>>(axes, x, results);
}

#define TAPEHEAD_FOLD(T)                                                         \
  template void fold_sum(const FoldAxes&, const T*, const Results<double>&);     \
  template void fold_squares(const FoldAxes&, const T*, const Results<double>&); \
  template void fold_extreme(const FoldAxes&, const T*, bool, const Results<T>&);
TAPEHEAD_FOLD(float)
TAPEHEAD_FOLD(double)
template void fold_sum(const FoldAxes&, const std::int64_t*, const Results<std::uint64_t>&);

}  // namespace tapehead::kernels
