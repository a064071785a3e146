#pragma once
#include <cstdint>

// How several arrays of one (broadcast) shape are gone through together. The walk merges axes that are stored
// one after the other, then calls a row function for each innermost run. It is compiled once; an operation
// brings only its row.
namespace tapehead::kernels {

inline constexpr int max_axes = 6;
inline constexpr int max_operands = 4;

/// n steps along one row: operand i starts at p[i] and advances by s[i] bytes a step.
using Row = void (*)(std::int64_t n, char* const* p, const std::int64_t* s, const void* context);

struct Walk {
  int rank = 0;
  int operands = 0;
  std::int64_t sizes[max_axes] = {};
  char* base[max_operands] = {};
  std::int64_t strides[max_operands][max_axes] = {};  // in bytes; 0 on a broadcast axis
};

/// Calls `row` over the whole of it, on several threads when there is work enough (operands that are written
/// must then not overlap themselves: no stride 0 in an output).
void walk(Walk w, Row row, const void* context);

/// Calls f(offset in elements) for each element of one array in row-major order.
template <class F>
void for_each_element(int rank, const std::int64_t* sizes, const std::int64_t* strides, const F& f) {
  std::int64_t index[max_axes] = {}, offset = 0;
  for (int axis = 0; axis < rank; ++axis)
    if (sizes[axis] == 0) return;
  for (;;) {
    f(offset);
    int axis = rank - 1;
    for (; axis >= 0; --axis) {
      offset += strides[axis];
      if (++index[axis] < sizes[axis]) break;
      offset -= strides[axis] * sizes[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

}  // namespace tapehead::kernels
