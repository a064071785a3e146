#include "kernels/walk.hpp"

#include <algorithm>

#include "kernels/parallel.hpp"

namespace tapehead::kernels {
namespace {

// Two neighbouring axes are one where every operand steps from the end of the inner one to the next of the
// outer.
void merge_axes(Walk& w) {
  int kept = 0;  // axes 0 … kept-1 are final; axis kept-1 may still take in its inner neighbour
  for (int axis = 0; axis < w.rank; ++axis) {
    const std::int64_t size = w.sizes[axis];
    if (size == 1) continue;
    bool merges = kept > 0;
    for (int i = 0; merges && i < w.operands; ++i)
      merges = w.strides[i][kept - 1] == w.strides[i][axis] * size;
    if (!merges) w.sizes[kept++] = 1;
    w.sizes[kept - 1] *= size;
    for (int i = 0; i < w.operands; ++i) w.strides[i][kept - 1] = w.strides[i][axis];
  }
  w.rank = kept;
}

// Rows first … last-1 of the walk, counted over all axes but the innermost.
void walk_rows(const Walk& w, std::int64_t first, std::int64_t last, Row row, const void* context) {
  const int outer = w.rank - 1;
  std::int64_t index[max_axes], step[max_operands];
  char* p[max_operands];
  for (int i = 0; i < w.operands; ++i) p[i] = w.base[i], step[i] = w.strides[i][outer];
  std::int64_t rest = first;
  for (int axis = outer - 1; axis >= 0; --axis) {
    index[axis] = rest % w.sizes[axis];
    rest /= w.sizes[axis];
    for (int i = 0; i < w.operands; ++i) p[i] += index[axis] * w.strides[i][axis];
  }
  for (std::int64_t r = first; r < last; ++r) {
    row(w.sizes[outer], p, step, context);
    for (int axis = outer - 1; axis >= 0; --axis) {
      const bool wraps = ++index[axis] == w.sizes[axis];
      for (int i = 0; i < w.operands; ++i) p[i] += (wraps ? 1 - w.sizes[axis] : 1) * w.strides[i][axis];
      if (!wraps) break;
      index[axis] = 0;
    }
  }
}

}  // namespace

void walk(Walk w, Row row, const void* context) {
  std::int64_t total = 1;
  for (int axis = 0; axis < w.rank; ++axis) total *= w.sizes[axis];
  if (total == 0) return;
  merge_axes(w);
  if (w.rank == 0) w.rank = 1, w.sizes[0] = 1;

  if (w.rank == 1) {  // one long row: cut into pieces
    constexpr std::int64_t piece = 32'768;
    const std::int64_t n = w.sizes[0], pieces = (n + piece - 1) / piece;
    parallel_for(pieces, n, [&](std::int64_t k) {
      char* p[max_operands];
      std::int64_t step[max_operands];
      for (int i = 0; i < w.operands; ++i) step[i] = w.strides[i][0], p[i] = w.base[i] + k * piece * step[i];
      row(std::min(piece, n - k * piece), p, step, context);
    });
    return;
  }
  const std::int64_t rows = total / w.sizes[w.rank - 1];
  const std::int64_t group = std::max<std::int64_t>(1, 16'384 / w.sizes[w.rank - 1]);
  parallel_for((rows + group - 1) / group, total, [&](std::int64_t k) {
    walk_rows(w, k * group, std::min(rows, (k + 1) * group), row, context);
  });
}

}  // namespace tapehead::kernels
