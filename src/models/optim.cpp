#include "tapehead/models/optim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/adam.hpp"
#include "kernels/parallel.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace detail {

void throw_unwatched(const char* op, const std::string& name) {
  throw GradientError(fmt::format(
      "{}: there is no gradient of parameter {}: it was not watched; call tape.watch(model.parameters()) "
      "before the forward pass, on a new tape after each step",
      op, name));
}

template <class T>
void check_updates(const char* op, const std::vector<Update<T>>& updates) {
  std::set<std::string> names;
  for (const Update<T>& u : updates) {
    if (!names.insert(u.name).second)
      throw ValueError(fmt::format(
          "{}: two parameters are called {}; the model's members() must give each a name of its own", op,
          u.name));
    if (u.gradient.shape() != u.parameter->shape())
      throw ShapeError(fmt::format("{}: parameter {} has shape {} and its gradient {}; they must be equal",
                                   op, u.name, u.parameter->shape().str(), u.gradient.shape().str()));
  }
}

// The length of all gradients as one vector.
template <class T>
double gradient_norm(const std::vector<Update<T>>& updates) {
  double squares = 0;
  for (const Update<T>& u : updates) {
    const auto length = static_cast<double>(norm(detach(u.gradient)).item());
    if (!std::isfinite(length))
      throw ValueError(
          fmt::format("clip_grad_norm: the gradient of parameter {} is not finite (its norm is {}); clipping "
                      "cannot help: look "
                      "for the operation that made it",
                      u.name, length));
    squares += length * length;
  }
  return std::sqrt(squares);
}

double clip_factor(double norm, double max_norm) {
  if (!(max_norm >= 0))
    throw ValueError(fmt::format("clip_grad_norm: max_norm {}; it must be 0 or more", max_norm));
  return std::min(1.0, max_norm / (norm + 1e-6));
}

template <class T>
Tensor<T> times(const Tensor<T>& x, double factor) {
  return detach(x) * factor;
}

}  // namespace detail

using detail::Update;

namespace {

void check(const char* op, const char* name, double value, bool right, const char* wanted) {
  if (!right) throw ValueError(fmt::format("{}: {} is {}; it must be {}", op, name, value, wanted));
}

// Calls f(i) for i in 0 … n-1, in pieces that several threads share.
template <class F>
void each_element(std::int64_t n, const F& f) {
  constexpr std::int64_t piece = 16'384;
  kernels::parallel_for((n + piece - 1) / piece, 8 * n, [&](std::int64_t p) {
    for (std::int64_t i = p * piece, end = std::min(n, i + piece); i < end; ++i) f(i);
  });
}

// Whether nothing is remembered of a parameter yet.
template <class T>
bool begins(const char* op, const Update<T>& u, const Tensor<T>& before) {
  if (before.header().storage == nullptr) return true;
  if (before.shape() != u.parameter->shape())
    throw ShapeError(fmt::format(
        "{}: parameter {} has shape {}, and what is remembered of it {}; use one optimiser for one model", op,
        u.name, u.parameter->shape().str(), before.shape().str()));
  return false;
}

// A parameter's old and next value, and its gradient, row after row.
template <class T>
struct Step {
  explicit Step(const Update<T>& u)
      : target(u.parameter),
        old(contiguous(detach(*u.parameter))),
        gradient(contiguous(detach(u.gradient))),
        next(old.shape(), "step") {}
  Tensor<T>* target;
  Tensor<T> old, gradient;
  Buffer<T> next;
};

// The elements of x for writing, where nobody could tell: no copy, no view and no tape holds them.
template <class T>
T* unshared(Tensor<T>& x) {
  const detail::Header& h = x.header();
  const bool alone = h.storage != nullptr && h.owners.load(std::memory_order_acquire) == 1 &&
                     h.storage->owners.load(std::memory_order_acquire) == 1;
  return alone && h.contiguous ? static_cast<T*>(h.data) : nullptr;
}

// A running mean of a parameter, zeros at first: updated in place where nobody else holds it, otherwise in a
// copy that takes its place in the end.
template <class T>
class Moment {
 public:
  Moment(const char* op, Tensor<T>& kept, const Shape& shape)
      : kept_(kept), data_(unshared(kept)), fresh_(data_ == nullptr ? shape : Shape{0}, op) {
    if (data_ != nullptr) return;
    data_ = fresh_.data();
    if (kept.header().storage == nullptr)
      std::fill_n(data_, fresh_.numel(), T{});
    else
      std::copy_n(contiguous(detach(kept)).data(), fresh_.numel(), data_);
  }
  T* data() { return data_; }
  void keep() {
    if (data_ == fresh_.data()) kept_ = std::move(fresh_);
  }

 private:
  Tensor<T>& kept_;
  T* data_;
  Buffer<T> fresh_;
};

}  // namespace

template <std::floating_point T>
void SGD<T>::update(const std::vector<Update<T>>& updates) {
  check("SGD", "lr", lr, lr >= 0, "0 or more");
  check("SGD", "momentum", momentum, momentum >= 0, "0 or more");
  check("SGD", "weight_decay", weight_decay, weight_decay >= 0, "0 or more");
  check("SGD", "momentum", momentum, !nesterov || momentum > 0, "more than 0 with nesterov");
  struct Next : Step<T> {
    Next(const Update<T>& u, bool keeps)
        : Step<T>(u), velocity(keeps ? this->old.shape() : Shape{0}, "SGD") {}
    Buffer<T> velocity;
  };
  const bool keeps = momentum > 0;
  std::vector<Next> steps;
  steps.reserve(updates.size());
  for (const Update<T>& u : updates) {
    steps.emplace_back(u, keeps);
    Next& s = steps.back();
    const Tensor<T>& before = velocity[u.name];
    const bool first = begins("SGD", u, before);
    const T *p = s.old.data(), *g = s.gradient.data(), *b = before.data();
    T *p_next = s.next.data(), *b_next = s.velocity.data();
    const T rate = static_cast<T>(lr), mu = static_cast<T>(momentum), decay = static_cast<T>(weight_decay);
    each_element(s.old.numel(), [=, this](std::int64_t i) {
      const T d = g[i] + decay * p[i], now = first ? d : mu * b[i] + d;
      if (keeps) b_next[i] = now;
      p_next[i] = p[i] - rate * (nesterov ? d + mu * now : keeps ? now : d);
    });
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    *steps[i].target = std::move(steps[i].next);
    velocity[updates[i].name] = keeps ? Tensor<T>(std::move(steps[i].velocity)) : Tensor<T>();
  }
}

template <std::floating_point T, bool decoupled>
void AdamOptimizer<T, decoupled>::update(const std::vector<Update<T>>& updates) {
  const char* op = decoupled ? "AdamW" : "Adam";
  check(op, "lr", lr, lr >= 0, "0 or more");
  check(op, "beta1", beta1, beta1 >= 0 && beta1 < 1, "0 or more and less than 1");
  check(op, "beta2", beta2, beta2 >= 0 && beta2 < 1, "0 or more and less than 1");
  check(op, "eps", eps, eps >= 0, "0 or more");
  check(op, "weight_decay", weight_decay, weight_decay >= 0, "0 or more");
  // First all memory that it takes, then the numbers: where memory runs out, nothing has changed.
  struct Next : Step<T> {
    Next(const char* name, const Update<T>& u, State& st)
        : Step<T>(u), state(&st), m(name, st.m, this->old.shape()), v(name, st.v, this->old.shape()) {}
    State* state;
    Moment<T> m, v;
  };
  std::vector<Next> steps;
  steps.reserve(updates.size());
  for (const Update<T>& u : updates) {
    State& before = state[u.name];
    begins(op, u, before.m), begins(op, u, before.v);
    steps.emplace_back(op, u, before);
  }
  for (Next& s : steps) {
    const auto t = static_cast<double>(s.state->steps + 1);
    const double decays = decay_vectors || s.old.rank() >= 2 ? weight_decay : 0;
    const kernels::AdamStep<T> step{
        .beta1 = static_cast<T>(beta1),
        .rest1 = static_cast<T>(1 - beta1),
        .beta2 = static_cast<T>(beta2),
        .rest2 = static_cast<T>(1 - beta2),
        .rate = static_cast<T>(lr / (1 - std::pow(beta1, t))),
        .root = static_cast<T>(std::sqrt(1 - std::pow(beta2, t))),
        .eps = static_cast<T>(eps),
        .into_gradient = static_cast<T>(decoupled ? 0 : decays),
        .shrink = static_cast<T>(decoupled ? 1 - lr * decays : 1),
    };
    kernels::parallel_pieces(s.old.numel(), 8, [&](std::int64_t i, std::int64_t n) {
      kernels::adam_n(n, step, s.old.data() + i, s.gradient.data() + i, s.m.data() + i, s.v.data() + i,
                      s.next.data() + i);
    });
  }
  for (Next& s : steps) {
    *s.target = std::move(s.next);
    s.m.keep(), s.v.keep(), ++s.state->steps;
  }
}

#define TAPEHEAD_OPTIM(T)                                                          \
  template struct SGD<T>;                                                          \
  template struct AdamOptimizer<T, false>;                                         \
  template struct AdamOptimizer<T, true>;                                          \
  template void detail::check_updates(const char*, const std::vector<Update<T>>&); \
  template double detail::gradient_norm(const std::vector<Update<T>>&);            \
  template Tensor<T> detail::times(const Tensor<T>&, double);
TAPEHEAD_OPTIM(float)
TAPEHEAD_OPTIM(double)

}  // namespace tapehead
