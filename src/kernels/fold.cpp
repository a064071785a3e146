#include "kernels/fold.hpp"

#include <algorithm>
#include <concepts>
#include <limits>

#include "kernels/parallel.hpp"

namespace tapehead::kernels {
namespace {

// Each kind of reduction has a start value, a way to add a number, and a way to join two accumulators.
template <class T, bool squared = false> struct Sum {
  using Acc = typename SumOf<T>::type;
  static constexpr Acc start = 0;
  static void add(Acc& acc, T v) { acc += static_cast<Acc>(v) * (squared ? static_cast<Acc>(v) : Acc{1}); }
  static void join(Acc& acc, Acc other) { acc += other; }
};

template <class T, bool largest> struct Extreme {
  using Acc = T;
  static constexpr Acc start = largest ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  // Both conditions are computed, without a branch, so that the compiler vectorises loops of this.
  static void add(Acc& acc, T v) {
    acc = (static_cast<int>(largest ? acc > v : acc < v) | static_cast<int>(acc != acc)) != 0 ? acc : v;
  }
  static void join(Acc& acc, T other) { add(acc, other); }
};

constexpr int ways = 16;

/// Folds n elements into `ways` interleaved accumulators.
template <class R, class T> void fold_along(std::int64_t n, const T* x, std::int64_t step, typename R::Acc* acc) {
  std::int64_t i = 0;
  if (step == 1)
    for (; i + ways <= n; i += ways)
      for (int w = 0; w < ways; ++w) R::add(acc[w], x[i + w]);
  for (; i < n; ++i) R::add(acc[i % ways], x[i * step]);
}

/// Folds n elements into one accumulator each.
template <class R, class T> void fold_beside(std::int64_t n, const T* x, std::int64_t step, typename R::Acc* acc) {
  if (step == 1)
    for (std::int64_t i = 0; i < n; ++i) R::add(acc[i], x[i]);
  else
    for (std::int64_t i = 0; i < n; ++i) R::add(acc[i], x[i * step]);
}

template <class R, class T> void fold(FoldAxes axes, const T* x, const Results<typename R::Acc>& results) {
  using Acc = typename R::Acc;
  const std::int64_t all = number_of_positions(axes.kept_rank, axes.kept_sizes),
                     each = number_of_positions(axes.gone_rank, axes.gone_sizes);
  if (all == 0) return;
  // The innermost axis is a row of `run` elements; what is left in `axes` are the others.
  int& rank = axes.innermost_goes ? axes.gone_rank : axes.kept_rank;
  rank = std::max(rank - 1, 0);
  const bool one = all * each == 1;  // then there is no axis at all
  const std::int64_t run = one ? 1 : (axes.innermost_goes ? axes.gone_sizes : axes.kept_sizes)[rank],
                     step = (axes.innermost_goes ? axes.gone_strides : axes.kept_strides)[rank];
  const std::int64_t* const kept_strides[] = {axes.kept_strides};
  const auto for_each_gone = [&](const T* first, const auto& f) {
    for_each_element(axes.gone_rank, axes.gone_sizes, axes.gone_strides,
                     [&](std::int64_t offset) { f(first + offset); });
  };
  // A task is a group of results, or a piece of a row of results.
  constexpr std::int64_t group = 64, widest = 256;
  const std::int64_t rows = number_of_positions(axes.kept_rank, axes.kept_sizes);
  const std::int64_t pieces = axes.innermost_goes ? 1 : (run + widest - 1) / widest;
  const std::int64_t at_once = axes.innermost_goes ? group : 1, tasks = (rows + at_once - 1) / at_once * pieces;
  parallel_for(tasks, all * each, [&](std::int64_t task) {
    Acc acc[widest], done[group];
    const std::int64_t from = task / pieces * at_once, to = std::min(rows, from + at_once),
                       start = task % pieces * widest, n = std::min(widest, run - start);
    Acc* next = done;
    for_each_position(axes.kept_rank, axes.kept_sizes, kept_strides, from, to, [&](const std::int64_t* at) {
      if (axes.innermost_goes) {
        std::fill_n(acc, ways, R::start);
        for_each_gone(x + *at, [&](const T* p) { fold_along<R>(run, p, step, acc); });
        for (int half = ways / 2; half > 0; half /= 2)
          for (int w = 0; w < half; ++w) R::join(acc[w], acc[w + half]);
        *next++ = acc[0];
      } else {
        std::fill_n(acc, n, R::start);
        for_each_gone(x + *at + start * step, [&](const T* p) { fold_beside<R>(n, p, step, acc); });
      }
    });
    axes.innermost_goes ? results(done, to - from, from) : results(acc, n, from * run + start);
  });
}

}  // namespace

template <class T> void fold_sum(const FoldAxes& axes, const T* x, const Results<typename SumOf<T>::type>& results) {
  fold<Sum<T>>(axes, x, results);
}
template <class T> void fold_squares(const FoldAxes& axes, const T* x, const Results<double>& results) {
  fold<Sum<T, true>>(axes, x, results);
}
template <class T>
void fold_extreme(const FoldAxes& axes, const T* x, bool largest, const Results<std::type_identity_t<T>>& results) {
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
