#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>

#include "kernels/gemm_pack.hpp"
#include "kernels/parallel.hpp"
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

/// out[k] = finish(fold over the gone elements), k counting the kept ones in row-major order. R has a type
/// Acc, a value `start`, and add(Acc&, T); finish(Acc, k) gives the result.
template <class R, class T, class U, class Finish>
void fold(const FoldAxes& axes, const T* x, U* out, const R& reducer, const Finish& finish) {
  using Acc = typename R::Acc;
  std::int64_t kept = 1, gone = 1;
  for (int i = 0; i < axes.kept_rank; ++i) kept *= axes.kept_sizes[i];
  for (int i = 0; i < axes.gone_rank; ++i) gone *= axes.gone_sizes[i];
  if (kept == 0) return;

  constexpr int most = 16;
  const int last = axes.kept_rank - 1, inner = axes.gone_rank - 1, ways = axes.innermost_goes ? most : 1;
  const std::int64_t run = inner >= 0 ? axes.gone_sizes[inner] : 1,
                     step = inner >= 0 ? axes.gone_strides[inner] : 0;
  // One task: a piece of the innermost kept axis, its columns side by side, or a single result along a stored
  // row.
  const bool columns = last >= 0 && !(axes.innermost_goes && step == 1);
  const std::int64_t widest = axes.innermost_goes ? 32 : 256;
  const std::int64_t width = columns ? axes.kept_sizes[last] : 1, pieces = (width + widest - 1) / widest;
  const std::int64_t side = columns ? axes.kept_strides[last] : 0;
  const int outer_rank = columns ? last : axes.kept_rank;
  const std::int64_t tasks = kept / width * pieces;
  parallel_for(tasks < 4096 ? tasks : (tasks + 63) / 64, kept * gone, [&](std::int64_t task) {
    const std::int64_t from = tasks < 4096 ? task : task * 64,
                       to = tasks < 4096 ? task + 1 : std::min(tasks, from + 64);
    for (std::int64_t t = from; t < to; ++t) {
      std::int64_t rest = t / pieces, start = 0;
      const std::int64_t first = t % pieces * widest, n = std::min(widest, width - first);
      for (int axis = outer_rank - 1; axis >= 0; --axis) {
        start += rest % axes.kept_sizes[axis] * axes.kept_strides[axis];
        rest /= axes.kept_sizes[axis];
      }
      const T* base = x + start + first * side;
      const std::int64_t k = t / pieces * width + first;
      if (columns) {
        Acc acc[most * 32];  // `ways` rows of n
        for (std::int64_t i = 0; i < ways * n; ++i) acc[i] = reducer.start;
        for_each_element(std::max(inner, 0), axes.gone_sizes, axes.gone_strides, [&](std::int64_t offset) {
          for_each_row(run, n, base + offset, step, side,
                       [&](std::int64_t i, const T* row, std::int64_t apart) {
                         Acc* sums = acc + (ways == 1 ? 0 : i % most * n);
                         if (apart == 1)
                           for (std::int64_t c = 0; c < n; ++c) reducer.add(sums[c], row[c]);
                         else
                           for (std::int64_t c = 0; c < n; ++c) reducer.add(sums[c], row[c * apart]);
                       });
        });
        for (std::int64_t half = ways / 2 * n; half >= n && ways > 1; half /= 2)
          for (std::int64_t i = 0; i < half; ++i) reducer.join(acc[i], acc[i + half]);
        for (std::int64_t c = 0; c < n; ++c) out[k + c] = finish(acc[c], k + c);
      } else {
        Acc acc[most];
        for (Acc& a : acc) a = reducer.start;
        for_each_element(std::max(inner, 0), axes.gone_sizes, axes.gone_strides, [&](std::int64_t offset) {
          const T* p = base + offset;
          std::int64_t i = 0;
          if (step == 1)
            for (; i + most <= run; i += most)
              for (int w = 0; w < most; ++w) reducer.add(acc[w], p[i + w]);
          for (; i < run; ++i) reducer.add(acc[i % most], p[i * step]);
        });
        for (int half = most / 2; half > 0; half /= 2)
          for (int w = 0; w < half; ++w) reducer.join(acc[w], acc[w + half]);
        out[k] = finish(acc[0], k);
      }
    }
  });
}

}  // namespace tapehead::kernels
