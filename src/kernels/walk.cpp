#include "kernels/walk.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

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

// Calls row(n, p, s) for rows first … last-1 of the walk, counted over all axes but the innermost: n steps,
// operand i starting at p[i] and advancing by s[i] bytes a step.
template <class Row>
void walk_rows(const Walk& w, std::int64_t first, std::int64_t last, const Row& row) {
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
    row(w.sizes[outer], p, step);
    for (int axis = outer - 1; axis >= 0; --axis) {
      const bool wraps = ++index[axis] == w.sizes[axis];
      for (int i = 0; i < w.operands; ++i) p[i] += (wraps ? 1 - w.sizes[axis] : 1) * w.strides[i][axis];
      if (!wraps) break;
      index[axis] = 0;
    }
  }
}

template <class Row>
void for_each_row(Walk w, const Row& row) {
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
      row(std::min(piece, n - k * piece), p, step);
    });
    return;
  }
  const std::int64_t rows = total / w.sizes[w.rank - 1];
  const std::int64_t group = std::max<std::int64_t>(1, 16'384 / w.sizes[w.rank - 1]);
  parallel_for((rows + group - 1) / group, total,
               [&](std::int64_t k) { walk_rows(w, k * group, std::min(rows, (k + 1) * group), row); });
}

template <class Bits>
void copy_steps(std::int64_t n, char* to, std::int64_t to_step, const char* from, std::int64_t from_step) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Bits));
  Bits v;  // numbers of every type are moved as so many bytes: memcpy is a load or a store here
  if (to_step == size && from_step == 0) {
    std::memcpy(&v, from, sizeof v);
    for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * size, &v, sizeof v);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      std::memcpy(&v, from + i * from_step, sizeof v);
      std::memcpy(to + i * to_step, &v, sizeof v);
    }
  }
}

// n elements of so many bytes (1, 4 or 8) from one place to another.
void copy_row(std::int64_t bytes, std::int64_t n, char* to, std::int64_t to_step, const char* from,
              std::int64_t from_step) {
  if (to_step == bytes && from_step == bytes)
    std::memcpy(to, from, static_cast<std::size_t>(n * bytes));
  else if (bytes == 1)
    copy_steps<std::uint8_t>(n, to, to_step, from, from_step);
  else if (bytes == 4)
    copy_steps<std::uint32_t>(n, to, to_step, from, from_step);
  else
    copy_steps<std::uint64_t>(n, to, to_step, from, from_step);
}

}  // namespace

void walk(Walk w, Run run, const void* context) {
  for_each_row(w, [&](std::int64_t n, char* const* p, const std::int64_t* step) {
    constexpr std::int64_t piece = 512;
    alignas(64) char gathered[max_operands][piece * 8];
    bool whole = true;
    for (int i = 1; i < w.operands; ++i) whole &= step[i] == w.bytes[i];
    if (whole) return run(n, p, context);
    for (std::int64_t start = 0; start < n; start += piece) {
      const std::int64_t size = std::min(piece, n - start);
      char* q[max_operands] = {p[0] + start * w.bytes[0]};
      for (int i = 1; i < w.operands; ++i) {
        q[i] = p[i] + start * step[i];
        if (step[i] == w.bytes[i]) continue;
        if (start == 0 || step[i] != 0) copy_row(w.bytes[i], size, gathered[i], w.bytes[i], q[i], step[i]);
        q[i] = gathered[i];
      }
      run(size, q, context);
    }
  });
}

void copy(Walk w) {
  for_each_row(w, [&](std::int64_t n, char* const* p, const std::int64_t* step) {
    copy_row(w.bytes[0], n, p[0], step[0], p[1], step[1]);
  });
}

}  // namespace tapehead::kernels
