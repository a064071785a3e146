#pragma once
#include <cstdint>

// How arrays of one (broadcast) shape are traversed together. There is one loop over an index space,
// for_each_position(); all others call it. walk() merges axes that are stored one after the other and hands
// the innermost rows to a function; an array that is not contiguous there is gathered into a buffer first. So
// an operation brings one loop over contiguous numbers, and everything else is compiled once.
namespace tapehead::kernels {

inline constexpr int max_axes = 6;
inline constexpr int max_operands = 4;

/// Calls f(at) for positions first … last - 1 of an index space of that rank and those sizes, counted in
/// row-major order; at[i] is the offset of array i there, strides[i][axis] its step along an axis.
template <int arrays, class F> void for_each_position(int rank, const std::int64_t* sizes,
                                                      const std::int64_t* const (&strides)[arrays], std::int64_t first,
                                                      std::int64_t last, const F& f) {
  std::int64_t index[max_axes] = {}, at[arrays] = {};
  if (first >= last) return;
  std::int64_t rest = first;
  for (int axis = rank - 1; rest > 0; --axis) {
    index[axis] = rest % sizes[axis];
    rest /= sizes[axis];
    for (int i = 0; i < arrays; ++i) at[i] += index[axis] * strides[i][axis];
  }
  for (std::int64_t position = first; position < last; ++position) {
    f(static_cast<const std::int64_t*>(at));
    for (int axis = rank - 1; axis >= 0; --axis) {
      if (++index[axis] < sizes[axis]) {
        for (int i = 0; i < arrays; ++i) at[i] += strides[i][axis];
        break;
      }
      for (int i = 0; i < arrays; ++i) at[i] -= (sizes[axis] - 1) * strides[i][axis];
      index[axis] = 0;
    }
  }
}

/// The product of the sizes. It is unsigned in between, because beside a size of 0 the others may be of any length.
inline std::int64_t number_of_positions(int rank, const std::int64_t* sizes) {
  std::uint64_t n = 1;
  for (int axis = 0; axis < rank; ++axis) n *= static_cast<std::uint64_t>(sizes[axis]);
  return static_cast<std::int64_t>(n);
}

/// Calls f(offset) for each element of one array in row-major order.
template <class F> void for_each_element(int rank, const std::int64_t* sizes, const std::int64_t* strides, const F& f) {
  const std::int64_t* const step[] = {strides};
  for_each_position(rank, sizes, step, 0, number_of_positions(rank, sizes), [&](const std::int64_t* at) { f(*at); });
}

struct Walk {
  int rank = 0;
  int operands = 0;
  std::int64_t sizes[max_axes] = {};
  char* base[max_operands] = {};
  std::int64_t bytes[max_operands] = {};              // of one element
  std::int64_t strides[max_operands][max_axes] = {};  // in bytes; 0 on a broadcast axis
};

/// n elements of every operand, each stored contiguously; the first operand is written.
using Run = void (*)(std::int64_t n, char* const* p, const void* context);

/// Calls `run` for pieces of the whole index space, on several threads if there is enough work. The first
/// operand must be contiguous.
void walk(Walk w, Run run, const void* context);

/// Copies the second operand to the first, whatever their strides (no stride 0 in the first).
void copy(Walk w);

}  // namespace tapehead::kernels
