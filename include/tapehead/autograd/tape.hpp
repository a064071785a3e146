#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tapehead/kernels/error.hpp"
#include "tapehead/tensor/tensor.hpp"

// Reverse-mode automatic differentiation. While a Tape lives on a thread, every operation that touches a
// tensor it knows appends one record: what it was, and one pullback for each input the tape knows. backward()
// walks the list once in reverse. Pullbacks are written in the same differentiable operations, so that an
// outer tape records them too: gradients of gradients come from nesting.

namespace tapehead {

/// An operation's name and its mathematics, as the tape and the table of rules print them. Each is defined once,
/// beside the operation, and lives as long as the program.
struct Op {
  Op(const char* op_name, const char* op_formula, const char* op_pullback, const char* op_shapes = "",
     const char* op_file = __builtin_FILE());
  const char* name;
  const char* formula;   // "C = A B"
  const char* pullback;  // "dA = dC Bᵀ, dB = Aᵀ dC"
  const char* shapes;    // "(…, m, k) (…, k, n) → (…, m, n)"
  const char* file;      // where it is defined
};
/// Every operation there is, in no particular order.
const std::vector<const Op*>& all_operations();

template <class T>
class Tape;

namespace detail {

// Called, where set, when an operation has been recorded, around each way back, and when a record's pullbacks
// have run: what a Profile listens to.
enum class TapeEvent { recorded, walk_begins, pulled, walk_ends };
using TapeWatch = void (*)(TapeEvent, const Op*);
inline constinit thread_local TapeWatch tape_watch = nullptr;
inline constinit thread_local void* tape_listener = nullptr;

// Memory that is only ever added to and freed at once: where a tape's records stand, side by side.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();
  void* take(std::size_t bytes);  // 16-byte aligned

 private:
  struct Chunk {
    Chunk* before;
    std::size_t bytes;
  };
  void grow(std::size_t bytes);
  Chunk* chunk_ = nullptr;
  char* next_ = nullptr;
  char* end_ = nullptr;
};

// Called with the header of each tensor that a pullback saves.
using SavedVisitor = std::function<void(const Header&)>;
template <class E>
void visit_saved(const SavedVisitor& visit, const Tensor<E>& saved) {
  visit(saved.header());
}
// A kernel run that several pullbacks share names the tensors that it saves itself.
template <class Run>
void visit_saved(const SavedVisitor& visit, const std::shared_ptr<Run>& run) {
  run->each_saved(visit);
}

// The path from a record's output back to one of its inputs.
template <class T>
struct Edge {
  explicit Edge(int into_node) : into(into_node) {}
  virtual ~Edge() = default;
  virtual Tensor<T> pull(const Tensor<T>& dy) const = 0;
  virtual void each_saved(const SavedVisitor& visit) const = 0;
  Edge* next = nullptr;
  int into;
};
template <class T, class F, class... Saved>
struct EdgeWith final : Edge<T> {
  EdgeWith(int into_node, const F& f, const Saved&... tensors)
      : Edge<T>(into_node), pullback(f), saved(tensors...) {}
  Tensor<T> pull(const Tensor<T>& dy) const override {
    return std::apply([&](const Saved&... tensors) { return pullback(dy, tensors...); }, saved);
  }
  void each_saved(const SavedVisitor& visit) const override {
    std::apply([&](const Saved&... tensors) { (visit_saved(visit, tensors), ...); }, saved);
    if constexpr (requires { pullback.each_saved(visit); }) pullback.each_saved(visit);
  }
  [[no_unique_address]] F pullback;
  [[no_unique_address]] std::tuple<Saved...> saved;
};

// One line of the tape: a watched tensor (no operation) or a recorded result.
template <class T>
struct Node {
  const Op* op = nullptr;
  Edge<T>* edges = nullptr;             // in the order of the inputs
  const std::int64_t* sizes = nullptr;  // of the result
  int rank = 0;
  int kept = -1;  // which watched tensor this is, or -1
  Shape shape() const { return Shape(sizes, sizes + rank); }
};

}  // namespace detail

/// One input of an operation, with the pullback that leads back to it: pullback(dy, saved…) gives the gradient
/// of the input from the gradient of the output. The result may have the output's shape where the input was
/// broadcast: backward() sums it to the input's. The pullback saves the tensors listed after it, and nothing
/// else: the operation's inputs, its output, and bool or integer constants; never a float computed inside the
/// forward pass, which would lose its part of the second derivative. The lambda itself captures only numbers.
///   wrt(A, [](const auto& dC, const auto& B) { return matmul(dC, mT(B)); }, B)
template <class T, class F, class... Saved>
struct Wrt {
  const Tensor<T>& input;
  F pullback;
  std::tuple<const Saved&...> saved;
};
template <class T, class F, class... Saved>
Wrt<T, F, Saved...> wrt(const Tensor<T>& input, F pullback, const Saved&... saved) {
  return {input, std::move(pullback), {saved...}};
}

/// A tensor to watch, with a name for the tape's prints. Converts from a tensor alone.
template <class T>
struct Named {
  Named(const Tensor<T>& t) : tensor(t) {}
  Named(std::string n, const Tensor<T>& t) : name(std::move(n)), tensor(t) {}
  std::string name;
  Tensor<T> tensor;
};

/// What backward() returns: the gradient of each watched tensor.
template <class T>
class Gradients {
 public:
  /// The gradient with respect to x, of x's shape: zeros when the output does not depend on x. Throws
  /// GradientError for a tensor that was not watched.
  const Tensor<T>& operator[](const Tensor<T>& x) const;

  /// Where backward() began: the record, and the gradient that arrived there.
  int from() const { return from_; }
  const Tensor<T>& dy() const { return dy_; }
  /// The tape that they came by, while it lives on this thread; throws GradientError after that.
  const Tape<T>& tape() const;

 private:
  friend class Tape<T>;
  std::vector<std::pair<std::int64_t, Tensor<T>>> by_id_;  // sorted
  const Tape<T>* tape_ = nullptr;
  std::int64_t tape_id_ = 0;
  int from_ = -1;
  Tensor<T> dy_;
};

/// The record of a computation, for float or double tensors. Lives in a scope, on the thread that made it.
template <class T>
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Marks tensors to differentiate by: watch(x), watch({Q, K, V}), watch({{"Q", Q}, {"K", K}}), or a list
  /// made elsewhere (a model's parameters). Watching a recorded result keeps its gradient too.
  void watch(const Tensor<T>& x) { watch_one(Named<T>(x)); }
  void watch(std::initializer_list<Named<T>> list) {
    for (const auto& x : list) watch_one(x);
  }
  void watch(const std::vector<Named<T>>& list) {
    for (const auto& x : list) watch_one(x);
  }
  void watch(const std::vector<Tensor<T>>& list) {
    for (const auto& x : list) watch_one(Named<T>(x));
  }

  /// The gradients of y, which must have one element. Each call starts afresh. Throws GradientError where y
  /// has more elements, or where this tape does not know y.
  Gradients<T> backward(const Tensor<T>& y) const;
  /// The gradients of sum(y * dy). Throws ShapeError where dy has not y's shape.
  Gradients<T> backward(const Tensor<T>& y, const Tensor<T>& dy) const;

  /// The tape as a table, and with the norm of each record's gradient as in that backward pass; as a graph
  /// for Graphviz or Mermaid. See trace.hpp.
  std::string print() const;
  std::string print(const Gradients<T>& grad) const;
  std::string dot() const;
  std::string mermaid() const;

  /// The number of records, watched tensors among them.
  std::int64_t size() const { return static_cast<std::int64_t>(nodes_.size()); }
  /// Whether x was watched, or computed from what was.
  bool knows(const Tensor<T>& x) const { return find(x) >= 0; }

  // For record(), and for those who read the tape.
  static Tape* innermost() { return innermost_; }
  Tape* outer() const { return outer_; }
  bool suspended() const { return suspended_; }
  int find(const Tensor<T>& x) const;
  const detail::Node<T>& node(std::int64_t i) const { return nodes_[static_cast<std::size_t>(i)]; }
  const std::string& name(std::int64_t i) const;
  int append(const Op& op, const Tensor<T>& out);
  template <class F, class... Saved>
  void connect(int node, int into, const F& pullback, const Saved&... saved) {
    using E = detail::EdgeWith<T, F, Saved...>;
    static_assert(alignof(E) <= 16);
    connect(node, new (arena_.take(sizeof(E))) E(into, pullback, saved...));
  }
  template <class F, class... Saved>
  void connect(int node, int into, const Wrt<T, F, Saved...>& input) {
    std::apply([&](const Saved&... saved) { connect(node, into, input.pullback, saved...); }, input.saved);
  }
  /// Goes back from a record as backward() does, and calls visit(record, its gradient) for each that is
  /// reached.
  void replay(int from, const Tensor<T>& dy, const std::function<void(int, const Tensor<T>&)>& visit) const;
  /// What the pullbacks of the record that this thread walks back over share, for a SharedRun: empty until one
  /// of them fills it, and emptied when the walk leaves the record. Null where no walk is under way.
  static std::vector<Tensor<T>>* shared() { return shared_; }
  /// While one of these lives, no tape of this thread records.
  class Paused {
   public:
    Paused();
    ~Paused();
    Paused(const Paused&) = delete;
    Paused& operator=(const Paused&) = delete;

   private:
    std::vector<const Tape*> paused_;
  };

 private:
  friend class Gradients<T>;
  struct Watched {
    std::int64_t id;
    std::int64_t since;  // the id counter when it was watched
    int node;
    std::string name;
    Tensor<T> tensor;  // keeps the elements, so that views of them can be told
  };
  void watch_one(const Named<T>& x);
  void connect(int node, detail::Edge<T>* edge);
  int add_node(const Op* op, const Shape& shape);
  int find_early(const Tensor<T>& x) const;
  void check_stale_view(const Tensor<T>& x) const;
  template <class Visit>
  void walk_back(int from, const Tensor<T>& dy, const Visit& visit) const;

  // constinit: other files read them without asking for a start-up.
  static constinit thread_local Tape* innermost_;
  static constinit thread_local std::vector<Tensor<T>>* shared_;
  Tape* outer_;
  mutable bool suspended_ = false;
  std::int64_t first_id_;                            // tensors born since have this id or more
  std::deque<detail::Node<T>> nodes_;                // chunks: records never move
  std::vector<int> node_of_;                         // by id - first_id_; -1: not on this tape
  std::vector<std::pair<std::int64_t, int>> early_;  // (id, node) of watched tensors born before; sorted
  std::vector<Watched> watched_;
  detail::Arena arena_;
};
extern template class Tape<float>;
extern template class Tape<double>;

/// Appends the operation that made `out` to every live tape that knows one of its inputs, and returns `out`.
/// Each input is a wrt(…).
template <class T, class... Inputs>
Tensor<T> record(const Op& op, Tensor<T> out, const Inputs&... inputs) {
  for (Tape<T>* tape = Tape<T>::innermost(); tape != nullptr; tape = tape->outer()) {
    if (tape->suspended()) continue;
    int known[] = {tape->find(inputs.input)...};
    bool any = false;
    for (int node : known) any |= node >= 0;
    if (!any) continue;
    const int made = tape->append(op, out);
    int i = 0;
    ((known[i] >= 0 ? tape->connect(made, known[i], inputs) : void(), ++i), ...);
  }
  if (detail::tape_watch != nullptr) [[unlikely]]
    detail::tape_watch(detail::TapeEvent::recorded, &op);
  return out;
}
/// The same for an operation with any number of inputs: pullback(i) gives the pullback of inputs[i].
template <class T, class F>
Tensor<T> record_all(const Op& op, Tensor<T> out, const std::vector<Tensor<T>>& inputs, const F& pullback) {
  for (Tape<T>* tape = Tape<T>::innermost(); tape != nullptr; tape = tape->outer()) {
    if (tape->suspended()) continue;
    int made = -1;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const int known = tape->find(inputs[i]);
      if (known < 0) continue;
      if (made < 0) made = tape->append(op, out);
      tape->connect(made, known, pullback(i));
    }
  }
  if (detail::tape_watch != nullptr) [[unlikely]]
    detail::tape_watch(detail::TapeEvent::recorded, &op);
  return out;
}

/// Whether any live tape of this thread knows x: whether an operation on it would be recorded.
template <class T>
bool is_recorded(const Tensor<T>& x);

/// The same values, known to no tape: gradients stop here.
template <class T>
Tensor<T> detach(const Tensor<T>& x) {
  return x.unrecorded();
}

}  // namespace tapehead
