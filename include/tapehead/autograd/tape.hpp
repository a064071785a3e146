#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
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
  Op(const Op&) = delete;
  ~Op();
  const char* name;
  const char* formula;   // "C = A B"
  const char* pullback;  // "dA = dC Bᵀ, dB = Aᵀ dC"
  const char* shapes;    // "(…, m, k) (…, k, n) → (…, m, n)"
  const char* file;      // where it is defined
};
/// Every operation there is, in no particular order.
const std::vector<const Op*>& all_operations();

template <class T> class Tape;

namespace detail {

// Called, where set, when an operation has been recorded, before and after each walk back, and when a record's
// pullbacks have run: a Profile listens to it.
enum class TapeEvent { recorded, walk_begins, pulled, walk_ends };
using TapeWatch = void (*)(TapeEvent, const Op*);
inline constinit thread_local TapeWatch tape_watch = nullptr;
inline constinit thread_local void* tape_listener = nullptr;
inline void tell(TapeEvent event, const Op* op = nullptr) {
  if (tape_watch != nullptr) [[unlikely]]
    tape_watch(event, op);
}

// Makes standard containers take the library's memory, which memory_use() counts and whose lack is an Error.
template <class E> struct Counted {
  using value_type = E;
  Counted() = default;
  template <class U> Counted(const Counted<U>&) {}
  E* allocate(std::size_t n) { return static_cast<E*>(detail::allocate(n * sizeof(E))); }
  void deallocate(E* block, std::size_t n) noexcept { release(block, n * sizeof(E)); }
  friend bool operator==(const Counted&, const Counted&) { return true; }
};

// Memory for a tape's edges, one after the other, which is freed as a whole.
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

// The path from a record's output back to one of its inputs.
template <class T> struct Edge {
  explicit Edge(int into_node) : into(into_node) {}
  virtual ~Edge() = default;
  virtual Tensor<T> pull(const Tensor<T>& dy) const = 0;
  virtual void each_saved(const SavedVisitor& visit) const = 0;
  Edge* next = nullptr;
  int into;
};

// One line of the tape: a watched tensor (no operation) or a recorded result.
template <class T> struct Node {
  const Op* op = nullptr;
  Edge<T>* edges = nullptr;             // in the order of the inputs
  const std::int64_t* sizes = nullptr;  // of the result
  int rank = 0;
  int kept = -1;  // which watched tensor this is, or -1
  Shape shape() const { return Shape(sizes, sizes + rank); }
};

}  // namespace detail

/// A tensor to watch, with a name for the tape's prints. Converts from a tensor alone.
template <class T> struct Named {
  template <class U> Named(const Tensor<U>& t) : tensor(t) {}
  Named(std::string n, const Tensor<T>& t) : name(std::move(n)), tensor(t) {}
  std::string name;
  Tensor<T> tensor;
};

/// What backward() returns: the gradient of each watched tensor.
template <class T> class Gradients {
 public:
  /// The gradient with respect to x, of x's shape: zeros when the output does not depend on x. Throws
  /// GradientError for a tensor that was not watched.
  const Tensor<T>& operator[](const Tensor<T>& x) const&;
  Tensor<T> operator[](const Tensor<T>& x) const&& { return std::as_const(*this)[x]; }

  /// Where backward() began: the record, and the gradient that arrived there.
  int from() const { return from_; }
  const Tensor<T>& dy() const& { return dy_; }
  Tensor<T> dy() const&& { return dy_; }
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
template <class T> class Tape {
  static_assert(Floating<T>);

 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Marks tensors to differentiate by: watch(x), watch(x, "x"), watch({Q, K, V}), watch({{"Q", Q}, {"K", K}}), or a
  /// vector; watch(w, "w") names its tensors w[0], w[1], …. Watching a recorded result keeps its gradient too. Throws
  /// GradientError where two names or places of a list mean one tensor, which would have one gradient for both: give
  /// each a clone(). Only in a vector with names, a model's parameters, is a tied tensor watched under its first name.
  void watch(const Tensor<T>& x, const std::string& name = "") { watch({Named<T>(name, x)}); }
  void watch(std::initializer_list<Named<T>> list) {
    check_distinct(list.begin(), list.end());
    for (const auto& x : list) watch_one(x);
  }
  void watch(const std::vector<Named<T>>& list) {
    for (const auto& x : list) watch_one(x);
  }
  void watch(const std::vector<Tensor<T>>& list, const std::string& name = "");

  /// The gradients of y, which must have one element. Each call starts afresh. Throws GradientError where y has more
  /// elements, and where this tape does not know y because nothing that it watches went into it. The gradients of a
  /// known y are known to the other tapes that know y, so that a second derivative that is 0 comes out as zeros.
  Gradients<T> backward(const Tensor<T>& y) const;
  /// The gradients of sum(y * dy). Throws ShapeError where dy does not have y's shape.
  Gradients<T> backward(const Tensor<T>& y, const Tensor<T>& dy) const;

  /// The tape as a table, and with the norm of each record's gradient as in that backward pass; as a graph
  /// for Graphviz or Mermaid (dot and mermaid are defined in the figures room). See trace.hpp and tape_graph.hpp.
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
  const detail::Node<T>& node(std::int64_t i) const { return nodes_[checked(i)]; }
  const std::string& name(std::int64_t i) const;
  /// Appends the record of an operation, and returns its number. `out` is new to this tape: see is_new().
  int append(const Op& op, const Tensor<T>& out) { return enter(&op, out); }
  /// Adds the edge that E makes of these arguments to a record.
  template <class E, class... A> void connect(int node, const A&... arguments) {
    static_assert(alignof(E) <= 16);
    connect(node, new (arena_.take(sizeof(E))) E(arguments...));
  }
  /// Whether no tape of this thread knows x or began after x was made.
  static bool is_new(const Tensor<T>& x) {
    for (const Tape* tape = innermost_; tape != nullptr; tape = tape->outer_) {
      const auto since = static_cast<std::size_t>(x.id() - tape->first_id_);
      if (x.id() < tape->first_id_ || (since < tape->node_of_.size() && tape->node_of_[since] >= 0)) return false;
    }
    return true;
  }
  /// Walks back from a record as backward() does, and calls visit(record, its gradient) for each record that a gradient
  /// reaches. The outer tapes go on recording; this one is suspended.
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
    std::int64_t since;  // the id counter when it was watched
    std::string name;
    Tensor<T> tensor;  // keeps the elements, so that views of them are recognised
  };
  void check_distinct(const Named<T>* first, const Named<T>* last) const;
  void watch_one(const Named<T>& x);
  std::size_t checked(std::int64_t record) const;  // throws IndexError for one that is not on this tape
  void connect(int node, detail::Edge<T>* edge);
  int enter(const Op* op, const Tensor<T>& x);
  [[noreturn]] void raise_unknown(const Tensor<T>& y) const;
  void check_stale_view(const Tensor<T>& x) const;

  // constinit: other files read them without asking for a start-up.
  static constinit thread_local Tape* innermost_;
  static constinit thread_local std::vector<Tensor<T>>* shared_;
  Tape* outer_;
  mutable bool suspended_ = false;
  mutable bool walked_ = false;  // backward() has been called
  std::int64_t first_id_;        // tensors made since have this id or a larger one
  std::deque<detail::Node<T>, detail::Counted<detail::Node<T>>> nodes_;  // chunks: records never move
  std::vector<int, detail::Counted<int>> node_of_;                       // by id - first_id_; -1: not on this tape
  std::vector<std::pair<std::int64_t, int>> early_;  // (id, node) of tensors made before the tape; sorted
  std::vector<Watched> watched_;
  detail::Arena arena_;
};
extern template class Tape<float>;
extern template class Tape<double>;

/// Whether any live tape of this thread knows x: whether an operation on it would be recorded.
template <class T> bool is_recorded(const Tensor<T>& x);

/// The same values, known to no tape: gradients stop here.
template <class T> Tensor<T> detach(const Tensor<T>& x) { return x.unrecorded(); }

}  // namespace tapehead
