#pragma once
#include <cstdint>

// How several arrays of one (broadcast) shape are gone through together. The walk merges axes that are stored
// one after the other and hands the innermost runs to a function; where an array is not stored without gaps,
// its numbers are gathered in a buffer first. So an operation brings one loop, over numbers side by side, and
// all the rest is compiled once.
namespace tapehead::kernels {

inline constexpr int max_axes = 6;
inline constexpr int max_operands = 4;

struct Walk {
  int rank = 0;
  int operands = 0;
  std::int64_t sizes[max_axes] = {};
  char* base[max_operands] = {};
  std::int64_t bytes[max_operands] = {};              // of one element
  std::int64_t strides[max_operands][max_axes] = {};  // in bytes; 0 on a broadcast axis
};

/// n elements of every operand, each stored without gaps; the first operand is the one that is written.
using Run = void (*)(std::int64_t n, char* const* p, const void* context);

/// Calls `run` over the whole of it, on several threads when there is work enough. The first operand is
/// stored without gaps.
void walk(Walk w, Run run, const void* context);

/// Copies the second operand to the first, whatever their strides (no stride 0 in the first).
void copy(Walk w);

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
