#pragma once
#include <cstdint>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/walk.hpp"

// Folding an array along some of its axes. Where the innermost axis goes, each result runs over its own rows; where
// it stays, whole rows are added into a row of accumulators, so that memory is read in the order it is stored.
// The order of additions depends on the shape alone, never on the threads.
namespace tapehead::kernels {

/// The axes that stay and those that go, with the strides of the array (in elements).
struct FoldAxes {
  int kept_rank = 0, gone_rank = 0;
  std::int64_t kept_sizes[max_axes] = {}, kept_strides[max_axes] = {};
  std::int64_t gone_sizes[max_axes] = {}, gone_strides[max_axes] = {};
};

/// out[k] = finish(fold over the gone elements), k counting the kept ones in row-major order. R has a type Acc, a value
/// `start`, and add(Acc&, T); finish(Acc, k) gives the result.
template <class R, class T, class U, class Finish>
void fold(const FoldAxes& axes, const T* x, U* out, const R& reducer, const Finish& finish) {
  using Acc = typename R::Acc;
  std::int64_t kept = 1, gone = 1;
  for (int i = 0; i < axes.kept_rank; ++i) kept *= axes.kept_sizes[i];
  for (int i = 0; i < axes.gone_rank; ++i) gone *= axes.gone_sizes[i];
  if (kept == 0) return;

  const int last = axes.kept_rank - 1;
  const bool rows = last >= 0 && axes.kept_strides[last] == 1 && axes.kept_sizes[last] > 1 &&
                    (axes.gone_rank == 0 || axes.gone_strides[axes.gone_rank - 1] != 1);
  // What one task covers: a piece of a kept row (columns side by side), or one single result.
  constexpr std::int64_t widest = 256;
  const std::int64_t width = rows ? axes.kept_sizes[last] : 1, pieces = (width + widest - 1) / widest;
  const int outer_rank = rows ? last : axes.kept_rank;
  const std::int64_t tasks = kept / width * pieces;
  parallel_for(tasks < 4096 ? tasks : (tasks + 63) / 64, kept * gone, [&](std::int64_t task) {
    const std::int64_t from = tasks < 4096 ? task : task * 64, to = tasks < 4096 ? task + 1 : std::min(tasks, from + 64);
    for (std::int64_t t = from; t < to; ++t) {
      std::int64_t rest = t / pieces, start = 0;
      const std::int64_t first = t % pieces * widest, n = std::min(widest, width - first);
      for (int axis = outer_rank - 1; axis >= 0; --axis) {
        start += rest % axes.kept_sizes[axis] * axes.kept_strides[axis];
        rest /= axes.kept_sizes[axis];
      }
      const T* base = x + start + first;
      const std::int64_t k = t / pieces * width + first;
      if (rows) {
        Acc acc[widest];
        for (std::int64_t i = 0; i < n; ++i) acc[i] = reducer.start;
        for_each_element(axes.gone_rank, axes.gone_sizes, axes.gone_strides, [&](std::int64_t offset) {
          for (std::int64_t i = 0; i < n; ++i) reducer.add(acc[i], base[offset + i]);
        });
        for (std::int64_t i = 0; i < n; ++i) out[k + i] = finish(acc[i], k + i);
      } else {
        // The innermost gone axis in 16 interleaved accumulators: independent additions, which the compiler vectorises.
        constexpr int ways = 16;
        const int inner = axes.gone_rank - 1;
        const std::int64_t run = inner >= 0 ? axes.gone_sizes[inner] : 1, step = inner >= 0 ? axes.gone_strides[inner] : 0;
        Acc acc[ways];
        for (Acc& a : acc) a = reducer.start;
        for_each_element(inner < 0 ? 0 : inner, axes.gone_sizes, axes.gone_strides, [&](std::int64_t offset) {
          const T* p = base + offset;
          std::int64_t i = 0;
          if (step == 1)
            for (; i + ways <= run; i += ways)
              for (int w = 0; w < ways; ++w) reducer.add(acc[w], p[i + w]);
          for (; i < run; ++i) reducer.add(acc[i % ways], p[i * step]);
        });
        for (int half = ways / 2; half > 0; half /= 2)
          for (int w = 0; w < half; ++w) reducer.join(acc[w], acc[w + half]);
        out[k] = finish(acc[0], k);
      }
    }
  });
}

}  // namespace tapehead::kernels
