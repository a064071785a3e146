#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapehead/autograd/tape.hpp"

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

/// Gradients that one run gives together, f(dy): it is done once in each walk back over a tape (the next may
/// bring another dy, or other tapes that record), and each input's pullback fetches its part.
template <class T, class F>
class Joint {
 public:
  explicit Joint(const F& f) : f_(f) {}
  Tensor<T> part(std::size_t i, const Tensor<T>& dy) {
    if (walk_ != Tape<T>::walk() || parts_[i].header().storage == nullptr) parts_ = f_(dy);
    walk_ = Tape<T>::walk();
    return std::exchange(parts_[i], Tensor<T>());
  }
  const F& run() const { return f_; }

 private:
  F f_;
  std::vector<Tensor<T>> parts_;
  std::int64_t walk_ = 0;
};
template <class T, class F>
std::shared_ptr<Joint<T, F>> joint(const F& f) {
  return std::make_shared<Joint<T, F>>(f);
}

}  // namespace tapehead::detail
