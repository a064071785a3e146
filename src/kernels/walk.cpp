#include "kernels/walk.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/parallel.hpp"

namespace tapehead::kernels {
namespace {

constexpr std::int64_t piece_elements = 32'768;  // that a thread takes at a time

/// Drops axes of size 1 and merges two neighbouring axes into one if every operand steps from the end of the
/// inner axis to the next element of the outer one.
void merge_axes(Walk& w) {
  int kept = 0;  // axes 0 … kept-1 are final; axis kept-1 may still take in its inner neighbour
  for (int axis = 0; axis < w.rank; ++axis) {
    const std::int64_t size = w.sizes[axis];
    if (size == 1) continue;
    bool merges = kept > 0;
    for (int i = 0; merges && i < w.operands; ++i) merges = w.strides[i][kept - 1] == w.strides[i][axis] * size;
    if (!merges) w.sizes[kept++] = 1;
    w.sizes[kept - 1] *= size;
    for (int i = 0; i < w.operands; ++i) w.strides[i][kept - 1] = w.strides[i][axis];
  }
  w.rank = kept;
}

/// Calls row(n, p, step) for all rows along the innermost axis, or pieces of them if they are long: n
/// elements, where operand i starts at p[i] and advances by step[i] bytes.
template <class Row> void for_each_row(Walk w, const Row& row) {
  if (number_of_positions(w.rank, w.sizes) == 0) return;
  merge_axes(w);
  const int outer = w.rank > 0 ? w.rank - 1 : 0;
  const std::int64_t n = w.rank > 0 ? w.sizes[outer] : 1, rows = number_of_positions(outer, w.sizes);
  const std::int64_t *strides[max_operands], pieces = (n + piece_elements - 1) / piece_elements,
                                             group = std::max<std::int64_t>(1, piece_elements / n);
  std::int64_t step[max_operands];
  for (int i = 0; i < max_operands; ++i) strides[i] = w.strides[i], step[i] = w.strides[i][outer];
  parallel_for((rows + group - 1) / group * pieces, n * rows, [&](std::int64_t task) {
    const std::int64_t first = task / pieces * group, start = task % pieces * piece_elements;
    for_each_position(outer, w.sizes, strides, first, std::min(rows, first + group), [&](const std::int64_t* at) {
      char* p[max_operands];
      for (int i = 0; i < w.operands; ++i) p[i] = w.base[i] + at[i] + start * step[i];
      row(std::min(piece_elements, n - start), p, step);
    });
  });
}

template <class Bits>
void copy_steps(std::int64_t n, char* to, std::int64_t to_step, const char* from, std::int64_t from_step) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Bits));
  Bits v;  // numbers of any type are copied as bytes; memcpy compiles to a load or a store here
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

// Copies n elements of so many bytes (1, 4 or 8).
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
