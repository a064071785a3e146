#pragma once
#include <type_traits>

#include "tapehead/tape.hpp"

namespace tapehead::detail {

/// record() where the element type has gradients; bool and int64 tensors pass through.
template <class E, class... W>
Tensor<E> recorded(const Op& op, Tensor<E> out, const W&... inputs) {
  if constexpr (std::is_floating_point_v<E>)
    return record(op, std::move(out), inputs...);
  else
    return out;
}

/// Whether no live tape knows any of these. Then nobody will differentiate what is computed from them, and a
/// pullback may take one pass through memory where recorded operations would take several.
template <class... T>
bool nobody_records(const Tensor<T>&... inputs) {
  return !(is_recorded(inputs) || ...);
}

}  // namespace tapehead::detail
