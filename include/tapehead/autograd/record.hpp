#pragma once
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "tapehead/autograd/tape.hpp"

// How an operation records itself: record(op, result, wrt(input, pullback, saved…), …).
// A complete operation. The forward pass works on raw elements; the pullbacks are written in recorded operations, so that
// they can be differentiated again. Here they save inputs and the output.
//
//   // y = c tanh(x / c), which lies between -c and c. c is a tensor with one element.
//   static const Op soft_cap_op{"soft_cap", "y = c tanh(x / c)", "dx = dy (1 - (y/c)²), dc = (y dy - x dx) / c"};
//   Tensor<double> soft_cap(const Tensor<double>& x, const Tensor<double>& c) {
//     const auto in = contiguous(detach(x));
//     Buffer<double> out(x.shape());
//     for (std::int64_t i = 0; i < out.numel(); ++i) out[i] = c.item() * std::tanh(in.data()[i] / c.item());
//     const Tensor<double> y = std::move(out);
//     const auto dx = [](auto& dy, auto& Y, auto& C) { return dy * (1 - pow(Y / C, 2)); };
//     const auto dc = [](auto& dy, auto& X, auto& Y, auto& C) { return dy * (Y - X * (1 - pow(Y / C, 2))) / C; };
//     return record(soft_cap_op, y, wrt(x, dx, y, c), wrt(c, dc, x, y, c));
//   }
//
// gradcheck(soft_cap, {{"x", x}, {"c", c}}, {.order = 2}) checks first and second derivatives.
// chapters/from-pytorch/custom_operations.md explains each line, and shows what gradcheck says of wrong versions.

namespace tapehead {
namespace detail {

template <class E> void visit_saved(const SavedVisitor& visit, const Tensor<E>& saved) { visit(saved.header()); }
// A kernel run that several pullbacks share names the tensors that it saves itself.
template <class Run> void visit_saved(const SavedVisitor& visit, const std::shared_ptr<Run>& run) {
  run->each_saved(visit);
}

}  // namespace detail

/// One input of an operation, with the pullback that leads back to it: pullback(dy, saved…) gives the gradient
/// of the input from the gradient of the output. The result may have the output's shape where the input was
/// broadcast: backward() sums it to the input's. The pullback saves the tensors listed after it, and nothing
/// else: the operation's inputs, its output, and bool or integer constants; never a float computed inside the
/// forward pass, which would lose its part of the second derivative. The lambda itself captures only numbers.
///   wrt(A, [](const auto& dC, const auto& B) { return matmul(dC, mT(B)); }, B)
template <class T, class F, class... Saved> struct Wrt {
  const Tensor<T>& input;
  F pullback;
  std::tuple<const Saved&...> saved;

  // What a tape keeps of it.
  struct Edge final : detail::Edge<T> {
    Edge(int node, const Wrt& w) : detail::Edge<T>(node), pullback(w.pullback), saved(w.saved) {}
    Tensor<T> pull(const Tensor<T>& dy) const override {
      return std::apply([&](const Saved&... tensors) { return pullback(dy, tensors...); }, saved);
    }
    void each_saved(const detail::SavedVisitor& visit) const override {
      std::apply([&](const Saved&... tensors) { (detail::visit_saved(visit, tensors), ...); }, saved);
    }
    [[no_unique_address]] F pullback;
    [[no_unique_address]] std::tuple<Saved...> saved;
  };
};
template <class T, class F, class... Saved>
Wrt<T, F, Saved...> wrt(const Tensor<T>& input, F pullback, const Saved&... saved) {
  return {input, std::move(pullback), {saved...}};
}

/// Appends the operation that made `out` to every live tape that knows one of its inputs, and returns `out`. Each input
/// is a wrt(…). Where `out` is an input itself, or known to a tape, the result is the same values under an identity of
/// its own. The tapes refer to `op`, which therefore must not be a temporary.
template <class T, class... Inputs> Tensor<T> record(const Op& op, Tensor<T> out, const Inputs&... inputs) {
  if (((out.id() == inputs.input.id()) || ...) || !Tape<T>::is_new(out)) [[unlikely]]
    out = out.view(out.shape(), out.strides(), out.data());
  for (Tape<T>* tape = Tape<T>::innermost(); tape != nullptr; tape = tape->outer()) {
    if (tape->suspended()) continue;
    const int known[] = {tape->find(inputs.input)...};
    bool any = false;
    for (const int node : known) any |= node >= 0;
    if (!any) continue;
    const int made = tape->append(op, out);
    int i = 0;
    ((known[i] >= 0 ? tape->template connect<typename Inputs::Edge>(made, known[i], inputs) : void(), ++i), ...);
  }
  detail::tell(detail::TapeEvent::recorded, &op);
  return out;
}
template <class T, class... Inputs>
Tensor<T> record(const Op&& op, Tensor<T> out,
                 const Inputs&... inputs) = delete;  // the tape refers to op: make it static

/// The same for an operation with any number of inputs: input(i) gives wrt(inputs[i], pullback, saved…).
template <class T, class F>
Tensor<T> record_all(const Op& op, Tensor<T> out, const std::vector<Tensor<T>>& inputs, const F& input) {
  bool is_input = false;
  for (const auto& x : inputs) is_input |= x.id() == out.id();
  if (is_input || !Tape<T>::is_new(out)) out = out.view(out.shape(), out.strides(), out.data());
  for (Tape<T>* tape = Tape<T>::innermost(); tape != nullptr; tape = tape->outer()) {
    if (tape->suspended()) continue;
    int made = -1;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const int known = tape->find(inputs[i]);
      if (known < 0) continue;
      if (made < 0) made = tape->append(op, out);
      const auto way = input(i);
      tape->template connect<typename std::remove_const_t<decltype(way)>::Edge>(made, known, way);
    }
  }
  detail::tell(detail::TapeEvent::recorded, &op);
  return out;
}
template <class T, class F> Tensor<T> record_all(const Op&& op, Tensor<T>, const std::vector<Tensor<T>>&,
                                                 const F&) = delete;  // make op static

}  // namespace tapehead
