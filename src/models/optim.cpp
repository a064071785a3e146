#include "tapehead/models/optim.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>

#include "kernels/adam.hpp"
#include "kernels/parallel.hpp"
#include "kernels/require.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tensor/copy.hpp"

namespace tapehead {

namespace detail {

void throw_unwatched(const char* op, const std::string& name) {
  raise<GradientError>(
      "{}: there is no gradient of parameter {}, because the tape did not watch it as it is now; each step "
      "puts new tensors in the parameters' place, so begin every step with a new tape and "
      "tape.watch(model.parameters()), or tape.watch({{w, b}}), before the forward pass",
      op, name);
}

template <class T> void check_updates(const char* op, const std::vector<Update<T>>& updates) {
  std::set<std::string> names;
  for (const Update<T>& u : updates) {
    require<ValueError>(names.insert(u.name).second,
                        "{}: two parameters are called {}; the model's members() must give each a name of its own", op,
                        u.name);
    require<ShapeError>(u.gradient.shape() == u.members[0]->shape(),
                        "{}: parameter {} has shape {} and its gradient {}; they must be equal", op, u.name,
                        u.members[0]->shape(), u.gradient.shape());
  }
}

// The length of all gradients as one vector.
template <class T> double gradient_norm(const std::vector<Update<T>>& updates) {
  double length = 0;
  for (const Update<T>& u : updates) {
    const auto part = static_cast<double>(norm(detach(u.gradient)).item());
    require<ValueError>(std::isfinite(part),
                        "clip_grad_norm: the gradient of parameter {} is not finite (its norm is {}); clipping cannot "
                        "help: look for the operation that made it",
                        u.name, part);
    length = std::hypot(length, part);  // squares of large norms would overflow
  }
  return length;
}

double clip_factor(double norm, double max_norm) {
  require<ValueError>(max_norm >= 0, "clip_grad_norm: max_norm {}; it must be 0 or more", max_norm);
  return std::min(1.0, max_norm / (norm + 1e-6));
}

template <class T> Tensor<T> times(const Tensor<T>& x, double factor) { return detach(x) * factor; }

}  // namespace detail

using detail::Update;

namespace {

struct Setting {
  const char* name;
  double value;
};
// All of them must be 0 or more, and finite as numbers of T.
template <class T> void check_settings(const char* op, std::initializer_list<Setting> settings) {
  for (const auto& [name, value] : settings) {
    require<ValueError>(value >= 0, "{}: {} is {}; it must be 0 or more", op, name, value);
    require<ValueError>(std::isfinite(static_cast<T>(value)), "{}: {} is {}; it must be finite as a {}", op, name,
                        value, dtype_name<T>());
  }
}

// The elements of x for writing, if no copy, no view and no tape could see that.
template <class T> T* writable(const Tensor<T>& x) {
  return detail::unshared(x) && x.is_contiguous() ? const_cast<T*>(x.data()) : nullptr;
}

// A parameter's old and next value, its gradient, and the running means that the optimiser keeps of it: zeros at
// first, updated in place if nothing else holds them, otherwise in a copy. All memory is taken before the first
// number changes: where it runs out, nothing has changed.
template <class T> struct Step {
  Step(const char* op, const Update<T>& u, const std::vector<Tensor<T>*>& keeps)
      : update(&u), old(detail::dense(*u.members[0])), gradient(detail::dense(u.gradient)), next(old.shape(), op) {
    for (Tensor<T>* kept : keeps) {
      const bool begins = kept->header().storage == nullptr;
      require<ShapeError>(
          begins || kept->shape() == old.shape(),
          "{}: parameter {} has shape {}, and what is remembered of it {}; use one optimiser for one model", op, u.name,
          old.shape(), kept->shape());
      if (begins || writable(*kept) == nullptr) *kept = begins ? zeros<T>(old.shape()) : detail::copied(*kept);
      means.push_back(writable(*kept));
    }
  }
  void finish() {
    const Tensor<T> made = std::move(next);
    for (Tensor<T>* member : update->members) *member = made;
  }
  const Update<T>* update;
  Tensor<T> old, gradient;
  Buffer<T> next;
  std::vector<T*> means;
};

}  // namespace

template <Floating T> void SGD<T>::update(const std::vector<Update<T>>& updates) {
  check_settings<T>("SGD", {{"lr", lr}, {"momentum", momentum}, {"weight_decay", weight_decay}});
  require<ValueError>(!nesterov || momentum > 0, "SGD: momentum is {}; it must be more than 0 with nesterov", momentum);
  std::vector<Step<T>> steps;
  steps.reserve(updates.size());
  for (const Update<T>& u : updates) {
    Tensor<T>& b = velocity[u.name];
    steps.emplace_back("SGD", u, momentum > 0 ? std::vector{&b} : std::vector<Tensor<T>*>());
  }
  const T rate = static_cast<T>(lr), mu = static_cast<T>(momentum), decay = static_cast<T>(weight_decay);
  for (Step<T>& s : steps) {
    const T *p = s.old.data(), *g = s.gradient.data();
    T *next = s.next.data(), *b = s.means.empty() ? nullptr : s.means[0];
    kernels::parallel_pieces(s.old.numel(), 8, [=, this](std::int64_t begin, std::int64_t n) {
      for (std::int64_t i = begin; i < begin + n; ++i) {
        const T d = g[i] + decay * p[i], mean = b != nullptr ? b[i] = mu * b[i] + d : d;
        next[i] = p[i] - rate * (nesterov ? d + mu * mean : mean);
      }
    });
  }
  for (Step<T>& s : steps) s.finish();
}

template <Floating T, bool decoupled> void AdamOptimizer<T, decoupled>::update(const std::vector<Update<T>>& updates) {
  const char* op = decoupled ? "AdamW" : "Adam";
  check_settings<T>(op, {{"lr", lr}, {"eps", eps}, {"weight_decay", weight_decay}});
  for (const auto& [name, beta] : {Setting{"beta1", beta1}, Setting{"beta2", beta2}})
    require<ValueError>(beta >= 0 && beta < 1, "{}: {} is {}; it must be 0 or more and less than 1", op, name, beta);
  std::vector<Step<T>> steps;
  steps.reserve(updates.size());
  for (const Update<T>& u : updates) {
    State& before = state[u.name];
    steps.emplace_back(op, u, std::vector{&before.m, &before.v});
  }
  for (Step<T>& s : steps) {
    const auto t = static_cast<double>(state[s.update->name].steps + 1);
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
      kernels::adam_n(n, step, s.old.data() + i, s.gradient.data() + i, s.means[0] + i, s.means[1] + i,
                      s.next.data() + i);
    });
  }
  for (Step<T>& s : steps) s.finish(), ++state[s.update->name].steps;
}

#define TAPEHEAD_OPTIM(T)                                                          \
  template struct SGD<T>;                                                          \
  template struct AdamOptimizer<T, false>;                                         \
  template struct AdamOptimizer<T, true>;                                          \
  template void detail::check_updates(const char*, const std::vector<Update<T>>&); \
  template double detail::gradient_norm(const std::vector<Update<T>>&);            \
  template Tensor<T> detail::times(const Tensor<T>&, double);
TAPEHEAD_REALS(TAPEHEAD_OPTIM)

}  // namespace tapehead
