#pragma once
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapehead/autograd/record.hpp"

namespace tapehead::detail {

/// record() where the element type has gradients; bool and int64 tensors pass through.
template <class E, class... W> Tensor<E> recorded(const Op& op, Tensor<E> out, const W&... inputs) {
  if constexpr (std::is_floating_point_v<E>)
    return record(op, std::move(out), inputs...);
  else
    return out;
}

/// One kernel run that gives the gradients of several inputs together: f(dy, saved…). In a walk back over a
/// tape the first pullback that asks runs it, and each fetches its own result. Nothing outlives the record's
/// turn in the walk.
template <class T, class F, class... Saved> class SharedRun {
 public:
  SharedRun(const F& f, const Saved&... saved) : f_(f), saved_(saved...) {}
  Tensor<T> result(std::size_t i, const Tensor<T>& dy) const {
    std::vector<Tensor<T>> own, *results = Tape<T>::shared();
    if (results == nullptr) results = &own;
    if (results->empty()) *results = std::apply([&](const Saved&... saved) { return f_(dy, saved...); }, saved_);
    return std::exchange((*results)[i], Tensor<T>());
  }
  void each_saved(const SavedVisitor& visit) const {
    std::apply([&](const Saved&... saved) { (visit_saved(visit, saved), ...); }, saved_);
  }

 private:
  F f_;
  std::tuple<Saved...> saved_;
};
template <class T, class F, class... Saved>
std::shared_ptr<SharedRun<T, F, Saved...>> shared_run(const F& f, const Saved&... saved) {
  return std::make_shared<SharedRun<T, F, Saved...>>(f, saved...);
}

}  // namespace tapehead::detail
