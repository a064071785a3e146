#include "tapehead/autograd/tape.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "kernels/require.hpp"
#include "tapehead/autograd/accumulate.hpp"

namespace tapehead {

namespace {
std::vector<const Op*>& operations() {
  static std::vector<const Op*> all;
  return all;
}
}  // namespace

Op::Op(const char* op_name, const char* op_formula, const char* op_pullback, const char* op_shapes, const char* op_file)
    : name(op_name), formula(op_formula), pullback(op_pullback), shapes(op_shapes), file(op_file) {
  operations().push_back(this);
}
Op::~Op() { std::erase(operations(), this); }
const std::vector<const Op*>& all_operations() { return operations(); }

namespace detail {

Arena::~Arena() {
  while (chunk_ != nullptr) {
    Chunk* before = chunk_->before;
    release(chunk_, chunk_->bytes);
    chunk_ = before;
  }
}

void* Arena::take(std::size_t bytes) {
  bytes = (bytes + 15) / 16 * 16;
  if (static_cast<std::size_t>(end_ - next_) < bytes) grow(bytes);
  return std::exchange(next_, next_ + bytes);
}

void Arena::grow(std::size_t bytes) {
  constexpr std::size_t first = 4096,
                        largest = 65'536;  // a small tape stays small; chunks come from the kept blocks
  const std::size_t size = std::max(bytes + 64, chunk_ == nullptr ? first : std::min(largest, 2 * chunk_->bytes));
  chunk_ = new (allocate(size)) Chunk{chunk_, size};
  next_ = reinterpret_cast<char*>(chunk_) + 64;
  end_ = reinterpret_cast<char*>(chunk_) + size;
}

}  // namespace detail

template <class T> const Tensor<T>& Gradients<T>::operator[](const Tensor<T>& x) const& {
  const auto at = std::lower_bound(by_id_.begin(), by_id_.end(), x.id(),
                                   [](const auto& entry, std::int64_t id) { return entry.first < id; });
  require<GradientError>(
      at != by_id_.end() && at->first == x.id(),
      "gradients: a tensor of shape {} was not watched; call tape.watch(x) on it before it is used "
      "(also on a result, to keep its gradient), and ask with that same tensor (a step or w -= … puts a new tensor "
      "in its place)",
      x.shape());
  return at->second;
}

template <class T> const Tape<T>& Gradients<T>::tape() const {
  for (const Tape<T>* tape = Tape<T>::innermost(); tape != nullptr; tape = tape->outer())
    if (tape == tape_ && tape->first_id_ == tape_id_) return *tape;
  raise<GradientError>("gradients: the tape they came by is gone (or on another thread); look at them while it lives");
}

template <class T> constinit thread_local Tape<T>* Tape<T>::innermost_ = nullptr;
template <class T> constinit thread_local std::vector<Tensor<T>>* Tape<T>::shared_ = nullptr;

template <class T> Tape<T>::Tape() : outer_(innermost_), first_id_(detail::next_id()) { innermost_ = this; }

template <class T> Tape<T>::~Tape() {
  Tape** link = &innermost_;
  while (*link != nullptr && *link != this) link = &(*link)->outer_;
  if (*link == this) *link = outer_;
  for (const Watched& w : watched_) w.tensor.header().storage->watchers.fetch_sub(1, std::memory_order_relaxed);
  for (const detail::Node<T>& node : nodes_)
    for (detail::Edge<T>* edge = node.edges; edge != nullptr;) std::destroy_at(std::exchange(edge, edge->next));
}

// Tensors made since the tape began are found by index, older ones in the short sorted list of those watched.
template <class T> int Tape<T>::find(const Tensor<T>& x) const {
  const std::int64_t since = x.id() - first_id_;
  int node = -1;
  if (since >= 0) {
    if (since < static_cast<std::int64_t>(node_of_.size())) node = node_of_[static_cast<std::size_t>(since)];
  } else {
    const auto at = std::lower_bound(early_.begin(), early_.end(), std::pair(x.id(), -1));
    if (at != early_.end() && at->first == x.id()) node = at->second;
  }
  if (node < 0) {
    const detail::Storage* storage = x.header().storage;
    if (storage != nullptr && storage->watchers.load(std::memory_order_relaxed) > 0) check_stale_view(x);
  }
  return node;
}

// Whether all elements of `part` lie between the first and the last of `whole`, in the same storage.
template <class T> bool lies_within(const Tensor<T>& part, const Tensor<T>& whole) {
  if (part.header().storage != whole.header().storage || part.numel() == 0 || whole.numel() == 0) return false;
  const auto range = [](const Tensor<T>& x) {
    const T *first = x.data(), *last = x.data();
    for (int axis = 0; axis < x.rank(); ++axis) {
      const std::int64_t reach = (x.shape()[axis] - 1) * x.strides()[axis];
      (reach < 0 ? first : last) += reach;
    }
    return std::pair(first, last);
  };
  return range(whole).first <= range(part).first && range(part).second <= range(whole).second;
}

// A view taken before its base was watched shares the base's elements and none of its records: the gradient
// through it would be lost without a word.
template <class T> void Tape<T>::check_stale_view(const Tensor<T>& x) const {
  if (x.header().detached) return;
  for (const Watched& w : watched_)
    if (x.id() < w.since && lies_within(x, w.tensor))
      raise<GradientError>(
          "tape: a view of shape {} was taken before its base{} of shape {} was watched, so its gradient "
          "would be lost; take the view after watch() (or detach() it to say that none is wanted)",
          x.shape(), w.name.empty() ? "" : " " + w.name, w.tensor.shape());
}

// Two names (or two places of a list) for one tensor would silently share its gradient.
template <class T> void Tape<T>::check_distinct(const Named<T>* first, const Named<T>* last) const {
  const auto refuse = [](const std::string& a, const std::string& b) {
    raise<GradientError>("watch: {} and {} are one tensor; give each its own with clone()", a, b);
  };
  const auto called = [&](const Named<T>* x) { return x->name.empty() ? fmt::format("list[{}]", x - first) : x->name; };
  for (const Named<T>* x = first; x != last; ++x) {
    for (const Named<T>* before = first; before != x; ++before)
      if (before->tensor.id() == x->tensor.id()) refuse(called(before), called(x));
    for (const Watched& w : watched_)
      if (w.tensor.id() == x->tensor.id() && !w.name.empty() && !x->name.empty() && w.name != x->name)
        refuse(w.name, x->name);
  }
}

template <class T> void Tape<T>::watch(const std::vector<Tensor<T>>& list, const std::string& name) {
  std::vector<Named<T>> named(list.begin(), list.end());
  for (std::size_t i = 0; i < list.size() && !name.empty(); ++i) named[i].name = fmt::format("{}[{}]", name, i);
  check_distinct(named.data(), named.data() + named.size());
  watch(named);
}

template <class T> void Tape<T>::watch_one(const Named<T>& x) {
  require<GradientError>(x.tensor.header().storage != nullptr,
                         "watch: a default tensor has no elements to differentiate by");
  int node = find(x.tensor);
  const int kept = node >= 0 ? nodes_[static_cast<std::size_t>(node)].kept : -1;
  if (kept >= 0) {
    std::string& name = watched_[static_cast<std::size_t>(kept)].name;
    if (name.empty()) name = x.name;
    return;
  }
  watched_.reserve(watched_.size() + 1);
  if (node < 0) node = enter(nullptr, x.tensor);
  nodes_[static_cast<std::size_t>(node)].kept = static_cast<int>(watched_.size());
  watched_.push_back({detail::next_id(), x.name, x.tensor});
  x.tensor.header().storage->watchers.fetch_add(1, std::memory_order_relaxed);
}

// Adds a node, and notes that it stands for x, which this tape does not know yet.
template <class T> int Tape<T>::enter(const Op* op, const Tensor<T>& x) {
  require<Error>(nodes_.size() < static_cast<std::size_t>(std::numeric_limits<int>::max()),
                 "tape: more than 2^31 - 1 records; use a shorter tape");
  const Shape& shape = x.shape();
  detail::Node<T> node;
  node.op = op, node.rank = shape.rank();
  if (!nodes_.empty() && nodes_.back().shape() == shape) {
    node.sizes = nodes_.back().sizes;
  } else {
    auto* sizes =
        static_cast<std::int64_t*>(arena_.take(static_cast<std::size_t>(shape.rank()) * sizeof(std::int64_t)));
    node.sizes = std::copy(shape.begin(), shape.end(), sizes) - shape.rank();
  }
  nodes_.push_back(node);
  const auto made = static_cast<int>(nodes_.size()) - 1;
  if (x.id() < first_id_) {
    const auto entry = std::pair(x.id(), made);
    early_.insert(std::lower_bound(early_.begin(), early_.end(), entry), entry);
    return made;
  }
  const auto since = static_cast<std::size_t>(x.id() - first_id_);
  if (since >= node_of_.size()) {
    if (since >= node_of_.capacity()) node_of_.reserve(std::max(since + 1, 2 * node_of_.capacity()));
    node_of_.resize(since + 1, -1);
  }
  return node_of_[since] = made;
}

template <class T> void Tape<T>::connect(int node, detail::Edge<T>* edge) {
  detail::Edge<T>** link = &nodes_[static_cast<std::size_t>(node)].edges;
  while (*link != nullptr) link = &(*link)->next;
  *link = edge;
}

template <class T> std::size_t Tape<T>::checked(std::int64_t record) const {
  require<IndexError>(record >= 0 && record < size(), "tape: record {}; there are {}, from number 0", record, size());
  return static_cast<std::size_t>(record);
}

template <class T> const std::string& Tape<T>::name(std::int64_t i) const {
  static const std::string none;
  const int kept = node(i).kept;
  return kept >= 0 ? watched_[static_cast<std::size_t>(kept)].name : none;
}

template <class T> Gradients<T> Tape<T>::backward(const Tensor<T>& y) const {
  require<GradientError>(y.numel() == 1,
                         "backward: the output has shape {}; only one element has a gradient on its own: give the "
                         "gradient that arrives, backward(y, dy), or sum(y) first",
                         y.shape());
  return backward(y, ones_like(y));
}

// The error names its cause and the right call, as far as the tape can tell.
template <class T> void Tape<T>::raise_unknown(const Tensor<T>& y) const {
  const char* cause =
      "nothing that was watched went into it (detach() and other threads stop recording); compute it from "
      "the very tensors that tape.watch() was given";
  if (watched_.empty())
    cause = "it watches nothing; call tape.watch(x) before computing with x";
  else if (y.id() < watched_[0].since)
    cause = "it was computed before watch(); call tape.watch(x) first, then compute";
  else if (walked_)
    cause =
        "nothing that was watched went into it. A tape does not record its own backward pass: for a second "
        "derivative let an outer tape watch x too, outer.backward(sum(inner.backward(y)[x])). And an "
        "optimiser's step makes new parameters: begin a new tape for each step and watch them on it";
  raise<GradientError>("backward: the output of shape {} is not on this tape: {}", y.shape(), cause);
}

template <class T> Gradients<T> Tape<T>::backward(const Tensor<T>& y, const Tensor<T>& dy) const {
  require<ShapeError>(dy.shape() == y.shape(),
                      "backward: the arriving gradient has shape {}, the output {}; they must be equal", dy.shape(),
                      y.shape());
  const int from = find(y);
  if (from < 0) raise_unknown(y);
  walked_ = true;
  std::vector<Tensor<T>> kept(watched_.size());
  replay(from, dy, [&](int i, const Tensor<T>& gradient) {
    const int which = nodes_[static_cast<std::size_t>(i)].kept;
    if (which >= 0) kept[static_cast<std::size_t>(which)] = gradient;
  });
  Gradients<T> gradients;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].header().storage == nullptr) kept[i] = zeros<T>(watched_[i].tensor.shape());
    // A tape that knows y, but not this gradient of it, knows it from now on as a constant.
    for (Tape* tape = innermost_; tape != nullptr; tape = tape->outer_)
      if (tape != this && !tape->suspended_ && tape->find(y) >= 0 && tape->find(kept[i]) < 0)
        tape->enter(nullptr, kept[i]);
    gradients.by_id_.emplace_back(watched_[i].tensor.id(), std::move(kept[i]));
  }
  std::sort(gradients.by_id_.begin(), gradients.by_id_.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  gradients.tape_ = this, gradients.tape_id_ = first_id_, gradients.from_ = from, gradients.dy_ = dy;
  return gradients;
}

// for (record : reversed(tape)) pass its gradient on to its inputs.
template <class T>
void Tape<T>::replay(int from, const Tensor<T>& dy, const std::function<void(int, const Tensor<T>&)>& visit) const {
  checked(from);
  struct Suspend {
    bool& flag;
    bool before = std::exchange(flag, true);
    std::vector<Tensor<T>> shared{};
    std::vector<Tensor<T>>* outer_shared = std::exchange(shared_, &shared);
    ~Suspend() {
      flag = before, shared_ = outer_shared;
      detail::tell(detail::TapeEvent::walk_ends);
    }
  } suspend{suspended_};
  detail::tell(detail::TapeEvent::walk_begins);

  const auto arrived = [](const Tensor<T>& part) { return part.header().storage != nullptr; };
  std::vector<Tensor<T>, detail::Counted<Tensor<T>>> gradient(static_cast<std::size_t>(from) + 1);
  gradient[static_cast<std::size_t>(from)] = dy;
  for (auto i = static_cast<std::size_t>(from) + 1; i-- > 0;) {
    if (!arrived(gradient[i])) continue;
    const detail::Node<T>& node = nodes_[i];
    visit(static_cast<int>(i), gradient[i]);
    for (const detail::Edge<T>* edge = node.edges; edge != nullptr; edge = edge->next) {
      const auto into = static_cast<std::size_t>(edge->into);
      try {
        Tensor<T> part = sum_to(edge->pull(gradient[i]), nodes_[into].shape());
        // A tensor that was used several times gets the sum of what arrives.
        gradient[into] = arrived(gradient[into]) ? add(gradient[into], part) : std::move(part);
      } catch (const Error& error) {
        raise<GradientError>("backward: in record {} ({}, shape {}): {}", i, node.op->name, node.shape(), error.what());
      }
    }
    suspend.shared.clear();
    gradient[i] = Tensor<T>();  // passed on; the next record reuses its memory
    if (node.op != nullptr) detail::tell(detail::TapeEvent::pulled, node.op);
  }
}

template <class T> Tape<T>::Paused::Paused() {
  for (const Tape* tape = innermost_; tape != nullptr; tape = tape->outer_)
    if (!std::exchange(tape->suspended_, true)) paused_.push_back(tape);
}
template <class T> Tape<T>::Paused::~Paused() {
  for (const Tape* tape : paused_) tape->suspended_ = false;
}

template <class T> bool is_recorded(const Tensor<T>& x) {
  for (const Tape<T>* tape = Tape<T>::innermost(); tape != nullptr; tape = tape->outer())
    if (!tape->suspended() && tape->knows(x)) return true;
  return false;
}

template class Gradients<float>;
template class Gradients<double>;
template class Tape<float>;
template class Tape<double>;
template bool is_recorded(const Tensor<float>&);
template bool is_recorded(const Tensor<double>&);

}  // namespace tapehead
